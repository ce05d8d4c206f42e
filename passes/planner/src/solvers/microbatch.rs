//! Plans of a queue with any number of launches: inputs pass in micro-batches, so that launches of different tasks
//! overlap while weights stay where they are.
//!
//! First patterns are searched: the devices that hold each task's weights, and the size of its micro-batches. Their
//! schedule follows from a simulation. For a long queue the search simulates its first inputs only, since the pattern
//! repeats; the result is simulated once for all. Then single launches are searched where there are few enough.

mod launches;
mod model;
mod pattern;
mod recipe;
mod reorder;
mod search;
mod starts;

use std::time::Instant;

use crate::model::budget::Budget;
use crate::model::instance::Instance;
use crate::model::observer::Observer;
use crate::model::options::Options;
use crate::model::plan::{Batch, Limit, closes};
use crate::model::units::Micros;
use crate::solvers::chains::Allowance;
use crate::solvers::expected;
use crate::solvers::timing;

use model::Model;
use pattern::{Pattern, Simulator};
use recipe::Line;
use starts::Start;

/// Default product of trials and micro-batches: some seconds on two cores.
const EFFORT: u64 = 50_000_000;
const MOST_TRIALS: u64 = 200_000;
/// Default number of trials of the search over launches.
const LAUNCH_TRIALS: u64 = 400_000;
/// Maximum number of micro-batches that the search over patterns simulates.
const MOST_JOBS: usize = 8_000;
/// Maximum number of micro-batches for which initial patterns are compared.
const MOST_COMPARED_JOBS: usize = 40_000;
/// Number of patterns that are searched from.
const BEST_PATTERNS: usize = 2;
/// Share of the time for initial patterns, also if there are too many launches to search them one by one, and share of that
/// for those that are listed; recipes are searched in the rest.
const START_SHARE: (f64, f64) = (0.35, 0.7);
const LISTED_SHARE: f64 = 0.25;
/// Default product of recipes and micro-batches, and maximum number of recipes.
const RECIPE_EFFORT: u64 = 40_000_000;
const MOST_RECIPES: u64 = 2_000;
/// Share of the time for patterns.
const PATTERN_SHARE: f64 = 0.4;
/// Number of launches above which patterns are searched longer.
const MOST_SEARCHED: u64 = 2_000;
/// Number of rounds of the searches over the order of launches, and over launches.
const ROUNDS: u32 = 2;

/// A schedule with any number of launches.
#[derive(Clone, Debug)]
pub(crate) struct Flow {
    pub(crate) value: Micros,
    pub(crate) launches: Vec<Batch>,
}

/// Best schedule of a search, which stops as soon as the schedule is optimal.
struct Best<'a> {
    instance: &'a Instance,
    flow: Option<Flow>,
    /// Cost of the schedule; infinite without one.
    cost: Micros,
    bound: Micros,
    options: &'a Options,
}

impl Best<'_> {
    fn take(&mut self, found: Option<Flow>) {
        let Some(found) = found else { return };
        let cost = expected::cost(self.instance, self.options, found.value, &found.launches);
        if expected::is_better(self.options, cost, self.cost) {
            self.options.observer.plan(found.value);
            (self.flow, self.cost) = (Some(found), cost);
        }
    }

    fn is_optimal(&self) -> bool {
        closes(self.bound, self.cost)
    }
}

/// Results of other solvers.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Known<'a> {
    /// Launches of plans.
    pub(crate) plans: &'a [Vec<Batch>],
    /// Device of each task, such as that of its stage in a pipeline.
    pub(crate) placements: &'a [Vec<usize>],
}

/// Returns the best schedule of the known plans and of initial patterns; `None` if nothing fits.
pub(crate) fn start(instance: &Instance, known: Known<'_>, bound: Micros, options: &Options) -> Option<Flow> {
    let mut best = best_known(instance, known, bound, options);
    if let Some(model) = Model::new(instance, options.is_executed) {
        let chosen = starts(&model, known, Instant::now(), options);
        chosen.iter().for_each(|start| best.take(complete(&model, &start.pattern)));
    }
    best.flow
}

/// Returns the best schedule in which inputs pass in micro-batches of one size through the known placements; `None` if
/// nothing fits. Nothing is searched.
pub(crate) fn through(instance: &Instance, known: Known<'_>, bound: Micros, options: &Options) -> Option<Flow> {
    let mut best = best_known(instance, known, bound, options);
    if let Some(model) = Model::new(instance, options.is_executed) {
        let inputs = simulated(&model);
        let found = starts::all(&model, &[], known, inputs, &Budget::new(None, Instant::now(), u64::MAX));
        found.iter().take(BEST_PATTERNS).for_each(|start| best.take(complete(&model, &start.pattern)));
    }
    best.flow
}

/// Returns the best of the known plans with launches as early as possible.
fn best_known<'a>(instance: &'a Instance, known: Known<'_>, bound: Micros, options: &'a Options) -> Best<'a> {
    let mut best = Best { instance, flow: None, cost: Micros::INFINITY, bound, options };
    for launches in known.plans {
        let mut launches = launches.clone();
        let value = timing::retime(instance, &mut launches).filter(|_| instance.fits_launches(&launches));
        best.take(value.map(|value| Flow { value, launches }));
    }
    best
}

/// Returns the best schedule found, from patterns of its own and from what is known; `None` if nothing fits. The search
/// stops at a schedule whose value is `bound`.
pub(crate) fn solve(instance: &Instance, known: Known<'_>, bound: Micros, options: &Options) -> Option<Flow> {
    let started = Instant::now();
    let mut best = best_known(instance, known, bound, options);
    let Some(model) = Model::new(instance, options.is_executed) else { return best.flow };
    let smallest = u64::from(model.sizes[0]);
    let is_large = instance.tasks() as u64 * u64::from(model.inputs) / smallest > MOST_SEARCHED;
    let share = if is_large { START_SHARE.1 } else { START_SHARE.0 };
    let chosen = starts(&model, known, started, &options.share_since(started, share));
    chosen.iter().for_each(|start| best.take(complete(&model, &start.pattern)));
    let chosen: Vec<Pattern> = chosen.into_iter().map(|start| start.pattern).collect();
    for (done, pattern) in chosen.iter().enumerate() {
        if best.is_optimal() {
            break;
        }
        let parts = chosen.len() - done;
        let smallest = pattern.size.iter().copied().min().unwrap_or(1);
        let inputs = simulated_inputs(&model, MOST_JOBS, (smallest, smallest));
        let jobs = instance.tasks() * inputs.div_ceil(smallest) as usize;
        let options = options.share_since(started, PATTERN_SHARE / parts as f64);
        let trials = (EFFORT / jobs.max(1) as u64).min(MOST_TRIALS);
        let allowance = Allowance::new(&options, trials).share(1.0 / chosen.len() as f64);
        let improved = search::improve(&model, inputs, pattern, &allowance);
        best.take(improved.and_then(|(_, pattern)| complete(&model, &pattern)));
    }
    for round in 0..ROUNDS {
        let share = 1.0 / f64::from(2 * (ROUNDS - round));
        let Some(start) = best.flow.clone().filter(|_| !best.is_optimal()) else { break };
        let options = options.share_since(started, share);
        best.take(reorder::improve(instance, &start, &options));
        let is_done = options.is_executed || best.is_optimal();
        let Some(start) = best.flow.clone().filter(|_| !is_done) else { break };
        let allowance = Allowance::new(&options, LAUNCH_TRIALS).share(1.0 / f64::from(ROUNDS));
        best.take(launches::improve(instance, &start, &allowance));
    }
    best.flow
}

/// Returns the number of first inputs for which initial patterns are compared.
fn simulated(model: &Model<'_>) -> u32 {
    simulated_inputs(model, MOST_COMPARED_JOBS, (model.sizes[0], model.sizes[model.sizes.len() - 1]))
}

/// Returns the number of first inputs that are simulated, in micro-batches of sizes in a range: about `most_jobs`
/// micro-batches of the smallest size, but several of the largest size on each device.
fn simulated_inputs(model: &Model<'_>, most_jobs: usize, (smallest, largest): (u32, u32)) -> u32 {
    let most = (most_jobs / model.instance.tasks().max(1)) as u32 * smallest;
    model.inputs.min(most.max(2 * model.instance.devices() as u32 * largest))
}

/// Returns the best initial patterns, and the best recipe that a search finds.
fn starts(model: &Model<'_>, known: Known<'_>, started: Instant, options: &Options) -> Vec<Start> {
    let inputs = simulated(model);
    let lines: Vec<Line<'_>> = model.sizes.iter().map(|size| Line::new(model, *size)).collect();
    let budget = Budget::new(options.limit, started, u64::MAX).share_of_time(LISTED_SHARE);
    let mut found = starts::all(model, &lines, known, inputs, &budget);
    found.truncate(BEST_PATTERNS);
    let Some(smallest) = found.first().and_then(|best| best.pattern.size.iter().min()) else { return found };
    let jobs = model.instance.tasks() * inputs.div_ceil(*smallest) as usize;
    let trials = (RECIPE_EFFORT / jobs.max(1) as u64).min(MOST_RECIPES);
    let mut options = options.left_since(started);
    if let Some(Limit::Iterations(iterations)) = &mut options.limit {
        *iterations = trials.min(*iterations);
    }
    // The first inputs alone are no plan of the queue.
    options.observer = Observer::default();
    if let Some(better) = starts::search(model, &lines, &found, inputs, &Allowance::new(&options, trials)) {
        found.insert(0, better);
        found.truncate(BEST_PATTERNS);
    }
    found
}

/// Returns the schedule of a pattern for all inputs, with as many in flight as memory allows.
fn complete(model: &Model<'_>, pattern: &Pattern) -> Option<Flow> {
    let mut simulator = Simulator::new(model, model.inputs);
    let mut window = model.inputs;
    loop {
        let pattern = Pattern { window, ..pattern.clone() };
        let value = simulator.run(&pattern);
        let launches = simulator.launches(&pattern);
        if value.is_finite() && (!model.is_tight || model.instance.fits_launches(&launches)) {
            return Some(Flow { value, launches });
        }
        if window <= 1 {
            return None;
        }
        window /= 2;
    }
}
