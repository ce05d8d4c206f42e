//! Baseline list schedulers of DiviML's section V-A, for one input and for a queue of inputs.

mod batch;
mod feasible;
mod latency;
mod memory;

use std::time::Instant;

use crate::model::budget::Budget;
use crate::model::error::Error;
use crate::model::instance::Instance;
use crate::model::options::Options;
use crate::model::plan::{Bound, Limit, Objective, Schedule};
use crate::model::problem::Problem;
use crate::model::units::Micros;
use crate::solvers::Solution;
use crate::solvers::incumbent::Incumbent;
use crate::solvers::list;

type Lister = fn(&Problem, Objective, &Effort) -> Result<Solution, Error>;

const ALL: [(&str, Lister); 4] =
    [("heft", heft_within), ("greedy", greedy_within), ("met", met_within), ("single", single_within)];

/// Effort of a list scheduler.
#[derive(Clone, Copy)]
struct Effort {
    /// Share of the default effort to find any placement where the scheduler's choices fail.
    share: f64,
    /// Time at which the scheduler of a queue stops. Users do not limit baselines.
    deadline: Option<Instant>,
}

impl Effort {
    fn of(options: &Options) -> Self {
        Self { share: options.effort, deadline: None }
    }
}

/// Returns the best schedule of all baselines and the name of the baseline that found it. If none finds a schedule,
/// falls back to a local search for any feasible one; if that fails too, returns the first baseline's error.
pub(crate) fn best(problem: &Problem, objective: Objective) -> Result<(Schedule, &'static str), Error> {
    best_within(problem, objective, None)
}

/// The same within a limit in seconds: baselines for queues stop without a schedule when time is over.
pub(crate) fn best_within(
    problem: &Problem,
    objective: Objective,
    limit: Option<Limit>,
) -> Result<(Schedule, &'static str), Error> {
    let budget = Budget::new(limit, Instant::now(), 0);
    let effort = Effort { share: 1.0, deadline: budget.deadline };
    let mut best = Incumbent::new(Bound::none());
    let mut failure = None;
    // A price on memory gains nothing where memory is not scarce.
    let is_scarce = || {
        objective == Objective::Batch && Instance::new(problem, objective).is_ok_and(|instance| instance.memory_binds())
    };
    for (name, solver) in ALL.into_iter().chain(is_scarce().then_some(("priced", priced_within as Lister))) {
        match solver(problem, objective, &effort) {
            Ok(Solution { schedule, .. }) => {
                best.take(schedule.value(), schedule, name);
            }
            Err(error) => failure = failure.or(Some(error)),
        }
    }
    if best.solution().is_none()
        && !budget.is_late()
        && matches!(failure, Some(Error::NotFound(_)))
        && let Some(schedule) = feasible::schedule(&Instance::new(problem, objective)?, objective)
    {
        return Ok((schedule, "frugal"));
    }
    let (none, by) = (|| Error::NotFound("no list scheduler has found a plan".to_owned()), best.by());
    best.into_parts().0.map(|schedule| (schedule, by)).ok_or_else(|| failure.unwrap_or_else(none))
}

/// Share of the default search effort for checks of feasibility alone.
const TRIAL_EFFORT: f64 = 0.02;

/// Returns true if any baseline finds a schedule with little effort.
pub(crate) fn has_plan(problem: &Problem, objective: Objective) -> bool {
    let effort = Effort { share: TRIAL_EFFORT, deadline: None };
    ALL.iter().rev().any(|(_, solver)| solver(problem, objective, &effort).is_ok())
}

/// Rule of a list scheduler: the order of tasks, the choice of a device, and whether gaps are filled.
struct Rule {
    order: Vec<usize>,
    choice: Choice,
    insertion: bool,
    effort: Effort,
}

/// Criterion of a scheduler for the device of a task.
#[derive(Clone, Copy)]
enum Choice {
    /// Prefers one device for every task that it can run.
    Device(usize),
    /// Device with the shortest execution time.
    Time,
    /// Device with the earliest finish time.
    End,
}

impl Choice {
    /// Lexicographic cost of running a task on a device; smaller is better.
    fn key(self, device: usize, time: Micros, end: Micros) -> (Micros, Micros) {
        match self {
            Self::Device(only) => (if device == only { Micros::ZERO } else { Micros(1.0) }, time),
            Self::Time => (time, end),
            Self::End => (end, time),
        }
    }
}

/// Runs everything on the single device for which that is fastest. Tasks that the device cannot run, or has no memory
/// for, go to the device that runs them fastest.
pub(crate) fn single(problem: &Problem, objective: Objective, options: &Options) -> Result<Solution, Error> {
    single_within(problem, objective, &Effort::of(options))
}

fn single_within(problem: &Problem, objective: Objective, effort: &Effort) -> Result<Solution, Error> {
    let instance = Instance::new(problem, objective)?;
    let mut best = Incumbent::new(Bound::none());
    let mut failure = None;
    for device in 0..instance.devices() {
        let order = list::breadth_first(&instance);
        let rule = Rule { order, choice: Choice::Device(device), insertion: false, effort: *effort };
        match run(&instance, objective, &rule) {
            Ok(solution) => {
                best.take(solution.schedule.value(), solution, "single");
            }
            Err(error) => failure = Some(error),
        }
    }
    let none = || Error::NotFound("there is no device".to_owned());
    best.into_parts().0.ok_or_else(|| failure.unwrap_or_else(none))
}

/// Minimum execution time: runs each task on its fastest device, regardless of that device's load.
pub(crate) fn met(problem: &Problem, objective: Objective, options: &Options) -> Result<Solution, Error> {
    met_within(problem, objective, &Effort::of(options))
}

fn met_within(problem: &Problem, objective: Objective, effort: &Effort) -> Result<Solution, Error> {
    let instance = Instance::new(problem, objective)?;
    let order = list::breadth_first(&instance);
    run(&instance, objective, &Rule { order, choice: Choice::Time, insertion: false, effort: *effort })
}

/// Runs each task on the device with the earliest finish time, given the tasks scheduled before it.
pub(crate) fn greedy(problem: &Problem, objective: Objective, options: &Options) -> Result<Solution, Error> {
    greedy_within(problem, objective, &Effort::of(options))
}

fn greedy_within(problem: &Problem, objective: Objective, effort: &Effort) -> Result<Solution, Error> {
    let instance = Instance::new(problem, objective)?;
    let order = list::breadth_first(&instance);
    run(&instance, objective, &Rule { order, choice: Choice::End, insertion: false, effort: *effort })
}

/// Schedules a queue with a price on memory (see [`batch::priced`]); falls back to [`greedy`] if that finds no
/// schedule.
pub(crate) fn priced(problem: &Problem, objective: Objective, options: &Options) -> Result<Solution, Error> {
    priced_within(problem, objective, &Effort::of(options))
}

fn priced_within(problem: &Problem, objective: Objective, effort: &Effort) -> Result<Solution, Error> {
    match batch::priced::schedule(&Instance::new(problem, objective)?, effort.deadline) {
        Some(schedule) => Ok(Solution { schedule, bound: None }),
        None => greedy_within(problem, objective, effort),
    }
}

/// Heterogeneous earliest finish time (HEFT): tasks by upward rank, each on the device with the earliest finish time,
/// with insertion into gaps.
pub(crate) fn heft(problem: &Problem, objective: Objective, options: &Options) -> Result<Solution, Error> {
    heft_within(problem, objective, &Effort::of(options))
}

fn heft_within(problem: &Problem, objective: Objective, effort: &Effort) -> Result<Solution, Error> {
    let instance = Instance::new(problem, objective)?;
    let order = list::by_upward_rank(&instance);
    run(&instance, objective, &Rule { order, choice: Choice::End, insertion: true, effort: *effort })
}

fn run(instance: &Instance, objective: Objective, rule: &Rule) -> Result<Solution, Error> {
    let schedule = match objective {
        Objective::Batch => batch::schedule(instance, rule)?,
        Objective::Latency | Objective::Pipeline => latency::schedule(instance, rule)?,
    };
    Ok(Solution { schedule, bound: None })
}

/// Busy intervals of each device.
struct Timeline {
    /// Ascending, for each device.
    taken: Vec<Vec<(Micros, Micros)>>,
    insertion: bool,
}

impl Timeline {
    fn new(devices: usize, insertion: bool) -> Self {
        Self { taken: vec![Vec::new(); devices], insertion }
    }

    /// Returns the earliest start at or after `ready` of a free interval of length `duration` on a device.
    fn earliest(&self, device: usize, ready: Micros, duration: Micros) -> Micros {
        let taken = &self.taken[device];
        if !self.insertion {
            return taken.last().map_or(ready, |(_, end)| ready.max(*end));
        }
        // Intervals that end before `ready` are skipped.
        let mut start = ready;
        for (from, until) in &taken[taken.partition_point(|(_, until)| *until < ready)..] {
            if start + duration <= *from {
                break;
            }
            start = start.max(*until);
        }
        start
    }

    fn take(&mut self, device: usize, start: Micros, end: Micros) {
        let taken = &mut self.taken[device];
        let place = taken.partition_point(|span| *span <= (start, end));
        taken.insert(place, (start, end));
    }
}
