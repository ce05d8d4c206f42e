//! Exact schedules of one input: which device runs what and when, so that the last task ends first.
//!
//! A dynamic program over partial schedules that grow in the order of starts. What the future of a partial schedule
//! depends on is which tasks are done, when devices are free and when operands arrive; of two with the same tasks done,
//! the one that is later in every respect is dropped, and so is one that a bound excludes. Networks are long and narrow,
//! so few sets of tasks can be done at the same time, and the program is small. Sweeps of growing width make it an
//! anytime method: narrow ones find good schedules, whose values cut the wide ones down, and the least bound of what was
//! given up for lack of width is a bound for all. A sweep that gives nothing up is a proof.
//!
//! Transfers do not get in each other's way here: with contention, the bound holds and the schedule is one without it.

pub(crate) mod bounds;
mod context;
mod extend;
pub(crate) mod graph;
mod layer;
mod masks;
mod multipliers;
pub(crate) mod search;
mod set;
mod solver;
mod sweep;
pub(crate) mod symmetry;
#[cfg(test)]
pub(crate) mod test;

use std::time::Instant;

use crate::model::budget::Budget;
use crate::model::instance::Instance;
use crate::model::observer::Observer;
use crate::model::plan::{Limit, Schedule, closes};
use crate::model::units::Micros;
use crate::solvers::chains::cores;
use crate::solvers::incumbent::SharedIncumbent;
use graph::{Footprint, Graph};
use search::{Found, Goal};
pub(crate) use solver::{exact, no_placement, solve_from_baseline};
use sweep::Effort;

/// Larger problems only get a bound.
pub(crate) const MOST_TASKS: usize = 1024;
const MOST_DEVICES: usize = 255;

/// Effort that is allowed.
#[derive(Clone, Debug)]
pub struct Limits {
    /// Number of times that a task may be put at the end of a partial schedule.
    pub extensions: u64,
    /// Results that depend on it are not reproducible.
    pub deadline: Option<Instant>,
    /// Number of threads that may work on independent parts; the result does not depend on it.
    pub threads: usize,
    /// Observer of schedules of the whole, and of bounds.
    pub observer: Observer,
    /// Incumbent of all searches, and whether it is optimal.
    pub incumbent: SharedIncumbent,
    pub pruning: Pruning,
}

/// Effort for keeping the number of partial schedules small. Results are exact with any.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pruning {
    /// Number of others that a state is compared with at most: comparing is a means to have fewer, not an end.
    pub rivals: usize,
    /// Number of tasks after the first undone one whose earliest starts are computed; behind them, tails are enough.
    pub horizon: usize,
}

impl Default for Pruning {
    fn default() -> Self {
        Self { rivals: 1000, horizon: 48 }
    }
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            extensions: 2_000_000,
            deadline: None,
            threads: 1,
            observer: Observer::default(),
            incumbent: SharedIncumbent::default(),
            pruning: Pruning::default(),
        }
    }
}

impl Limits {
    /// Effort that a user allows; without a limit, about a minute of one core at most.
    pub(crate) fn new(instance: &Instance, limit: Option<Limit>, observer: Observer) -> Self {
        // What an extension costs grows with the tasks that it looks ahead to, and with their devices.
        let cost = instance.tasks().clamp(1, 256) * instance.devices();
        let budget = Budget::new(limit, Instant::now(), 2_000_000_000 / cost as u64);
        Self { extensions: budget.iterations, deadline: budget.deadline, threads: cores(), observer, ..Self::default() }
    }

    /// A share of what is left.
    pub(crate) fn share(&self, share: f64) -> Self {
        let budget = self.budget().share_of_time(share);
        Self { extensions: (self.extensions as f64 * share) as u64, deadline: budget.deadline, ..self.clone() }
    }

    fn budget(&self) -> Budget {
        Budget { iterations: self.extensions, deadline: self.deadline }
    }

    /// The same for a part, of whose schedules nobody is told.
    pub(crate) fn quiet(&self) -> Self {
        Self { observer: Observer::default(), ..self.clone() }
    }

    /// True if there is no time left, or nothing better to be found.
    pub(crate) fn are_passed(&self) -> bool {
        self.incumbent.is_over() || self.budget().is_late()
    }
}

/// A schedule, if one was found, and what is proven about all.
#[derive(Clone, Debug, PartialEq)]
pub struct Answer {
    pub schedule: Option<Timetable>,
    /// No schedule ends before this; infinite if none fits.
    pub bound: Micros,
    /// Method that proves it.
    pub bound_by: &'static str,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Timetable {
    pub device: Vec<usize>,
    pub start: Vec<Micros>,
    /// When the last task ends.
    pub value: Micros,
}

impl Timetable {
    /// The same of a plan for one input; none of others.
    pub(crate) fn new(schedule: &Schedule) -> Option<Self> {
        let Schedule::Latency { device, start, makespan } = schedule else { return None };
        Some(Self { device: device.clone(), start: start.clone(), value: *makespan })
    }

    pub(crate) fn into_schedule(self) -> Schedule {
        Schedule::Latency { device: self.device, start: self.start, makespan: self.value }
    }
}

impl Answer {
    /// True if no schedule is better.
    pub fn is_optimal(&self) -> bool {
        self.schedule.as_ref().is_some_and(|schedule| closes(self.bound, schedule.value))
    }
}

/// Looks for the schedule that ends first, or before the shared incumbent does, which may be better than what is returned.
/// With more than 1024 tasks or 255 devices there is no search, only a bound.
pub fn solve(instance: &Instance, limits: &Limits) -> Answer {
    let graph = Graph::new(instance, instance.order(), Footprint::Least);
    // With limited memory, a schedule of this search may turn out not to fit.
    let limited = (0..instance.devices()).any(|device| instance.capacity_bytes(device).is_finite());
    let observer = if limited { limits.observer.of_bounds() } else { limits.observer.clone() };
    let found = search(&graph, Goal::Beat(&limits.incumbent), &Limits { observer, ..limits.clone() });
    let bound_by = if found.bound > found.relaxation { "exact" } else { "paths-and-loads" };
    let (bound, spent) = (found.bound, found.extensions);
    let of_tasks = |sequence: Vec<(usize, usize)>| -> Vec<(usize, usize)> {
        sequence.into_iter().map(|(place, device)| (instance.order()[place], device)).collect()
    };
    let mut schedule = found.sequence.map(|sequence| in_sequence(instance, &of_tasks(sequence)));
    if schedule.as_ref().is_some_and(|schedule| !fits(instance, schedule)) {
        // What must fit at the same time was only bounded from below; bounded from above, whatever is found fits.
        let graph = Graph::new(instance, instance.order(), Footprint::Most);
        let limits =
            Limits { extensions: limits.extensions.saturating_sub(spent).max(limits.extensions / 4), ..limits.clone() };
        let found = search(&graph, Goal::Beat(&limits.incumbent), &limits);
        schedule = found.sequence.map(|sequence| in_sequence(instance, &of_tasks(sequence)));
    }
    Answer { schedule, bound, bound_by }
}

/// True if the devices hold all that the schedule puts on them at the same time.
pub(crate) fn fits(instance: &Instance, schedule: &Timetable) -> bool {
    let held = match instance.memory_model() {
        crate::model::problem::MemoryModel::Static => instance.static_use(&schedule.device),
        crate::model::problem::MemoryModel::Liveness => instance.peak_use(&schedule.device, &schedule.start),
    };
    instance.fits(&held)
}

/// Tasks in the order of their starts.
pub(crate) fn by_start(instance: &Instance, schedule: &Timetable) -> Vec<usize> {
    let mut order = instance.order().to_vec();
    // Stable: tasks that take no time stay behind those they wait for.
    order.sort_by(|a, b| schedule.start[*a].total_cmp(&schedule.start[*b]));
    order
}

/// The schedule of tasks on devices in an order, which is topological, each as early as it can.
pub(crate) fn in_sequence(instance: &Instance, sequence: &[(usize, usize)]) -> Timetable {
    let mut device = vec![0; instance.tasks()];
    let mut start = vec![0.0; instance.tasks()];
    let mut free = vec![0.0; instance.devices()];
    for &(task, on) in sequence {
        let mut earliest: Micros = free[on];
        for arc in instance.predecessors(task) {
            let from = device[arc.task];
            let end = start[arc.task] + instance.time(arc.task, from).unwrap_or(f64::INFINITY);
            earliest = earliest.max(end + instance.transfer(arc.tensor, from, on));
        }
        (device[task], start[task]) = (on, earliest);
        free[on] = earliest + instance.time(task, on).unwrap_or(f64::INFINITY);
    }
    Timetable { device, start, value: free.into_iter().fold(0.0, f64::max) }
}

/// Searches with sets as large as the graph needs.
pub(crate) fn search(graph: &Graph, goal: Goal<'_>, limits: &Limits) -> Found {
    let effort = Effort { budget: limits.budget(), incumbent: &limits.incumbent, pruning: limits.pruning };
    let observer = &limits.observer;
    if graph.devices > MOST_DEVICES {
        return Found::nothing(bounds::longest_path(graph));
    }
    match graph.tasks {
        0..=64 => search::search::<1>(graph, goal, effort, observer),
        65..=128 => search::search::<2>(graph, goal, effort, observer),
        129..=256 => search::search::<4>(graph, goal, effort, observer),
        257..=512 => search::search::<8>(graph, goal, effort, observer),
        513..=MOST_TASKS => search::search::<16>(graph, goal, effort, observer),
        _ => Found::nothing(bounds::longest_path(graph)),
    }
}
