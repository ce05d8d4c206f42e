//! Integer programs for schedules (DiviML IV-A), solved by HiGHS: a plan, and a bound that holds for all.
//!
//! The program says which device runs what and in which order; exact times follow from that. What the program leaves out
//! (under the liveness model, what is alive at once) is checked afterwards: a plan that does not fit is forbidden and the
//! program solved again, and what was forbidden counts for the bound, since it might fit if some task waited.

mod latency;
mod paper;
mod queue;
mod symmetry;
mod times;
mod timetable;

use std::ops::ControlFlow;
use std::time::Instant;

use crate::baseline;
use crate::bounds;
use crate::error::{Error, Finding};
use crate::instance::Instance;
use crate::mip::{Column, Event, Limits, Program};
use crate::plan::{Batch, Bound, Limit, Objective, Schedule};
use crate::problem::{MemoryModel, Problem};
use crate::search;
use crate::solve::{Options, Solution};
use crate::units::Micros;
use crate::watch::Watch;

use latency::Latency;
use paper::Paper;
use queue::Queue;

/// What the bounds are called.
const NAME: &str = "milp";
/// What bounds may be off by, in horizons: tolerances of the solver, summed up over a schedule.
const SLACK: f64 = 1e-6;
/// A plan that is this close to its bound is the best there is.
const CLOSED: f64 = 1e-9;
/// What a time may be above the horizon by rounding.
const ROUNDING: f64 = 1e-9;
/// So many plans that do not fit are forbidden before the search ends.
const MOST_MISFITS: usize = 200;
/// More order variables than this take more memory than they are worth.
const MOST_PAIRS: usize = 200_000;
/// The same for variables that say where two groups of tasks are, together.
const MOST_FLOWS: usize = 1_000_000;
/// Simplex iterations when nothing else is said.
const ITERATIONS: u64 = 300_000;
/// Trial schedules a task, and seconds a task, for the plan to start from.
const START_TRIALS: u64 = 500;
const START_SECONDS: f64 = 0.0025;

/// A program whose solutions are schedules.
trait Formulation {
    /// The solution that a schedule is; none where the program has no room for it.
    fn solution(&self, program: &Program, launches: &[Batch]) -> Option<Vec<f64>>;

    /// The schedule that a solution is, with rounded times.
    fn launches(&self, values: &[f64]) -> Vec<Batch>;

    /// What makes a solution the schedule that it is, and whether it is so: places, and orders on each device if they are
    /// wanted.
    fn decisions(&self, values: &[f64], orders: bool) -> Vec<(Column, bool)>;
}

/// The tight program, from the best plan of a short search.
pub(crate) fn milp(problem: &Problem, objective: Objective, options: &Options) -> Result<Solution, Error> {
    let clock = Instant::now();
    let instance = Instance::new(problem, objective)?;
    let start = start(problem, objective, options, instance.tasks());
    let mut search = Search::new(&instance, objective, options, clock, start.as_ref().ok());
    if search.is_closed(bounds::best(&instance).value) {
        return search.answer(start);
    }
    let mut program = Program::default();
    if objective == Objective::Batch {
        let model = Queue::new(&instance, search.horizon, &mut program)?;
        search.run(program, &model)?;
    } else {
        let model = Latency::new(&instance, search.horizon, &mut program)?;
        search.run(program, &model)?;
    }
    search.answer(start)
}

/// DiviML's own program, from nothing: HEFT's plan is its horizon, and the answer where HiGHS has none.
pub(crate) fn paper(problem: &Problem, objective: Objective, options: &Options) -> Result<Solution, Error> {
    let clock = Instant::now();
    let instance = Instance::new(problem, objective)?;
    let start = baseline::heft(problem, objective, options).map(|solution| solution.schedule);
    let mut search = Search::new(&instance, objective, options, clock, start.as_ref().ok());
    let mut program = Program::default();
    let model = Paper::new(&instance, search.horizon, &mut program)?;
    search.run(program, &model)?;
    search.answer(start)
}

/// The best plan that a short search finds; within no time, the best baseline.
fn start(problem: &Problem, objective: Objective, options: &Options, tasks: usize) -> Result<Schedule, Error> {
    let trials = START_TRIALS * tasks as u64;
    let limit = match options.limit {
        None => Limit::Iterations(trials),
        Some(Limit::Iterations(count)) => Limit::Iterations(count.min(trials)),
        Some(Limit::Seconds(seconds)) => Limit::Seconds((seconds / 10.0).min(START_SECONDS * tasks as f64)),
    };
    let options = Options { limit: Some(limit), watch: options.watch.clone(), ..*options };
    search::neighbourhoods(problem, objective, &options).map(|solution| solution.schedule)
}

/// Rules out solutions that decide so.
fn forbid(program: &mut Program, decisions: &[(Column, bool)]) {
    let ones = decisions.iter().filter(|(_, one)| *one).count();
    let sign = |one: bool| if one { 1.0 } else { -1.0 };
    program.at_most(ones as f64 - 1.0, decisions.iter().map(|(column, one)| (*column, sign(*one))));
}

fn too_large(what: String) -> Error {
    Error::Unsupported(format!("an integer program would need {what}; milp-split, lns and anneal need none"))
}

/// What has been found so far.
struct Search<'a> {
    instance: &'a Instance,
    objective: Objective,
    limits: Limits,
    clock: Instant,
    /// No schedule that is looked for ends later.
    horizon: Micros,
    best: Option<(Micros, Vec<Batch>)>,
    bound: Micros,
    watch: Watch,
}

/// Whether a schedule fits into memory.
enum Seen {
    Fits,
    /// With its value, if it has one.
    Misfit(Option<Micros>),
}

impl<'a> Search<'a> {
    fn new(
        instance: &'a Instance,
        objective: Objective,
        options: &Options,
        clock: Instant,
        start: Option<&Schedule>,
    ) -> Self {
        let (iterations, seconds) = match options.limit {
            None => (ITERATIONS, None),
            Some(Limit::Iterations(count)) => (count, None),
            Some(Limit::Seconds(seconds)) => (u64::MAX, Some(seconds)),
        };
        let limits = Limits { seed: options.seed, iterations, seconds };
        let best = start.map(|start| (start.value(), timetable::launches(start)));
        let horizon = best.as_ref().map_or_else(|| times::longest(instance), |(value, _)| *value);
        let horizon = if horizon > 0.0 { horizon } else { 1.0 };
        Self { instance, objective, limits, clock, horizon, best, bound: 0.0, watch: options.watch.clone() }
    }

    fn is_closed(&self, bound: Micros) -> bool {
        self.best.as_ref().is_some_and(|(value, _)| bound >= value * (1.0 - CLOSED))
    }

    /// Solves, and solves again as long as what comes out does not fit.
    fn run(&mut self, mut program: Program, model: &dyn Formulation) -> Result<(), Error> {
        let is_static = self.instance.memory_model() == MemoryModel::Static;
        // The least value of what was forbidden although it might fit if some task waited.
        let mut forbidden = f64::INFINITY;
        for _ in 0..MOST_MISFITS {
            let Some(limits) = self.left() else { break };
            let start = self.best.as_ref().and_then(|(_, launches)| model.solution(&program, launches));
            let mut watch = |event: Event<'_>| {
                match event {
                    Event::Solution(values) => drop(self.see(model.launches(values))),
                    Event::Bound(bound) => self.watch.bound(self.in_micros(bound).min(forbidden), NAME),
                }
                ControlFlow::Continue(())
            };
            let outcome = program.solve(&limits, start.as_deref(), &mut watch)?;
            self.limits.iterations = self.limits.iterations.saturating_sub(outcome.iterations);
            let nothing_left = outcome.finished && outcome.values.is_none() && self.best.is_none();
            let proven = if nothing_left { f64::INFINITY } else { self.in_micros(outcome.bound) };
            self.bound = self.bound.max(proven.min(forbidden));
            let Some(values) = outcome.values else { break };
            let misfit = match self.see(model.launches(&values)) {
                Seen::Fits => {
                    if outcome.finished {
                        self.close(forbidden);
                    }
                    break;
                }
                Seen::Misfit(value) => value,
            };
            let orders = misfit.is_some() && !is_static;
            let decisions = model.decisions(&values, orders);
            forbid(&mut program, &decisions);
            forbidden = forbidden.min(misfit.filter(|_| orders).unwrap_or(f64::INFINITY));
        }
        Ok(())
    }

    /// A bound of the program, made safe.
    fn in_micros(&self, bound: f64) -> Micros {
        (bound.min(1.0) - SLACK) * self.horizon
    }

    /// Gives launches exact times, and keeps them if they are the best that fit.
    fn see(&mut self, mut launches: Vec<Batch>) -> Seen {
        let value = timetable::retime(self.instance, &mut launches);
        let Some(value) = value.filter(|_| timetable::fits(self.instance, &launches)) else {
            return Seen::Misfit(value);
        };
        if self.best.as_ref().is_none_or(|(best, _)| value < *best) {
            self.watch.plan(value);
            self.best = Some((value, launches));
        }
        Seen::Fits
    }

    /// What is left of the limits; none where that is nothing.
    fn left(&self) -> Option<Limits> {
        let seconds = self.limits.seconds.map(|seconds| seconds - self.clock.elapsed().as_secs_f64());
        let some = self.limits.iterations > 0 && seconds.is_none_or(|seconds| seconds > 0.0);
        some.then_some(Limits { seconds, ..self.limits })
    }

    /// A plan whose value the bound reaches up to rounding, when everything was looked at, is the best.
    fn close(&mut self, forbidden: Micros) {
        if let Some((value, _)) = &self.best
            && self.bound >= value - 3.0 * SLACK * self.horizon
        {
            self.bound = value.min(forbidden);
        }
    }

    fn answer(self, start: Result<Schedule, Error>) -> Result<Solution, Error> {
        let Some((value, launches)) = self.best else {
            if self.bound.is_infinite() {
                return Err(Error::Infeasible(vec![no_placement()]));
            }
            let none = |_| Error::NotFound("no schedule found that fits into memory".to_owned());
            return Err(start.map_or_else(|error| error, none));
        };
        let schedule = timetable::schedule(self.instance, launches, value, self.objective == Objective::Batch);
        Ok(Solution { schedule, bound: (self.bound > 0.0).then(|| Bound::new(self.bound, NAME)) })
    }
}

fn no_placement() -> Finding {
    let message = "no placement keeps to memory, links, pins and co-location together: the integer program has no \
                   solution; more memory, another link or fewer pins would help";
    Finding::new("devices", message)
}
