//! Plans of a queue with any number of launches: inputs pass in micro-batches, so that launches of different tasks
//! overlap while weights stay where they are.
//!
//! First patterns are searched: the devices that hold each task's weights, and the size of its micro-batches. Their
//! schedule follows from a simulation. For a long queue the search simulates its first inputs only, since the pattern
//! repeats; the result is simulated once for all. Then single launches are searched where there are few enough.

mod launches;
mod model;
mod pattern;
mod reorder;
mod search;
mod starts;

use std::time::Instant;

use crate::model::instance::Instance;
use crate::model::observer::Observer;
use crate::model::options::Options;
use crate::model::plan::{Batch, closes};
use crate::model::units::Micros;
use crate::solvers::chains::Allowance;
use crate::solvers::timing;

use model::Model;
use pattern::{Pattern, RULES, Simulator};

/// Default product of trials and micro-batches: some seconds on two cores.
const EFFORT: u64 = 200_000_000;
const MOST_TRIALS: u64 = 200_000;
/// Default number of trials of the search over launches.
const LAUNCH_TRIALS: u64 = 400_000;
/// Maximum number of micro-batches that the search over patterns simulates.
const MOST_JOBS: usize = 8_000;
/// Maximum number of micro-batches for which initial patterns are compared.
const MOST_COMPARED_JOBS: usize = 40_000;
/// Number of patterns that are searched from.
const BEST_PATTERNS: usize = 2;
/// Share of the time for patterns.
const PATTERN_SHARE: f64 = 0.4;
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
    flow: Option<Flow>,
    bound: Micros,
    observer: &'a Observer,
}

impl Best<'_> {
    fn take(&mut self, found: Option<Flow>) {
        let is_better = |found: &Flow| self.flow.as_ref().is_none_or(|best| found.value < best.value);
        if let Some(found) = found.filter(is_better) {
            self.observer.plan(found.value);
            self.flow = Some(found);
        }
    }

    fn is_optimal(&self) -> bool {
        self.flow.as_ref().is_some_and(|best| closes(self.bound, best.value))
    }
}

/// Returns the best schedule found, from patterns of its own and from other plans' launches; `None` if nothing fits. The
/// search stops at a schedule whose value is `bound`.
pub(crate) fn solve(instance: &Instance, others: &[Vec<Batch>], bound: Micros, options: &Options) -> Option<Flow> {
    let started = Instant::now();
    let mut best = Best { flow: None, bound, observer: &options.observer };
    for launches in others {
        let mut launches = launches.clone();
        let value = timing::retime(instance, &mut launches).filter(|_| instance.fits_launches(&launches));
        best.take(value.map(|value| Flow { value, launches }));
    }
    let Some(model) = Model::new(instance) else { return best.flow };
    let chosen: Vec<Pattern> =
        candidates(&model, others).into_iter().take(BEST_PATTERNS).map(|(_, pattern)| pattern).collect();
    chosen.iter().for_each(|pattern| best.take(complete(&model, pattern)));
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
        let Some(start) = best.flow.clone().filter(|_| !best.is_optimal()) else { break };
        let allowance = Allowance::new(&options, LAUNCH_TRIALS).share(1.0 / f64::from(ROUNDS));
        best.take(launches::improve(instance, &start, &allowance));
    }
    best.flow
}

/// Returns the number of first inputs that are simulated, in micro-batches of sizes in a range: about `most_jobs`
/// micro-batches of the smallest size, but several of the largest size on each device.
fn simulated_inputs(model: &Model<'_>, most_jobs: usize, (smallest, largest): (u32, u32)) -> u32 {
    let most = (most_jobs / model.instance.tasks().max(1)) as u32 * smallest;
    model.inputs.min(most.max(2 * model.instance.devices() as u32 * largest))
}

/// Returns patterns by their makespans, the best first.
fn candidates(model: &Model<'_>, others: &[Vec<Batch>]) -> Vec<(Micros, Pattern)> {
    let mut found: Vec<(Micros, Pattern)> = Vec::new();
    let sizes = (model.sizes[0], model.sizes[model.sizes.len() - 1]);
    let mut simulator = Simulator::new(model, simulated_inputs(model, MOST_COMPARED_JOBS, sizes));
    for &size in &model.sizes {
        let of_others = others.iter().map(|launches| starts::of_launches(model, size, launches));
        for pattern in starts::patterns(model, size).into_iter().chain(of_others) {
            if !pattern.weights_fit(model) {
                continue;
            }
            let ruled = RULES.map(|rule| Pattern { rule, ..pattern.clone() });
            let valued = ruled.map(|pattern| (simulator.run(&pattern), pattern));
            found.extend(valued.into_iter().min_by(|a, b| a.0.total_cmp(&b.0)).filter(|(value, _)| value.is_finite()));
        }
    }
    found.sort_by(|a, b| a.0.total_cmp(&b.0));
    found.dedup_by(|a, b| a.1.holders == b.1.holders && a.1.size == b.1.size);
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
