//! Exact schedules of one input: assigns tasks to devices and starts, minimizing the makespan.
//!
//! A dynamic program over partial schedules that grow in the order of starts. The future of a partial schedule depends
//! on the set of finished tasks, on when devices are free and on when operands arrive; of two states with the same set,
//! a dominated one is dropped, and so is one that a bound excludes. Networks are long and narrow, so few sets are
//! reachable and the program is small. Sweeps of growing width make it an anytime method: narrow ones find good
//! schedules, whose values are cutoffs for wide ones, and the least bound of the states dropped for lack of width is a
//! global lower bound. A sweep that drops none is a proof.
//!
//! Transfers do not contend here: with contention, the bound holds and the schedule has to be retimed.

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

/// Larger problems get a bound only.
pub(crate) const MOST_TASKS: usize = 1024;
const MOST_DEVICES: usize = 255;

/// Limits of a search.
#[derive(Clone, Debug)]
pub struct Limits {
    /// Number of times that a task may be appended to a partial schedule.
    pub extensions: u64,
    /// Wall-clock deadline; results that depend on it are not reproducible.
    pub deadline: Option<Instant>,
    /// Number of threads for independent parts; the result does not depend on it.
    pub threads: usize,
    /// Observer of complete schedules and of bounds.
    pub observer: Observer,
    /// Incumbent shared with other searches, and whether it is optimal.
    pub incumbent: SharedIncumbent,
    /// Pruning effort.
    pub pruning: Pruning,
}

/// Effort spent on pruning. Results are exact with any value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pruning {
    /// Maximum number of states that a state is compared with for dominance.
    pub rivals: usize,
    /// Number of tasks after the first unfinished one whose earliest starts are computed; later ones are bounded by
    /// their tails.
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
    /// Returns the limits that a user sets; by default about a minute on one core at most.
    pub(crate) fn new(instance: &Instance, limit: Option<Limit>, observer: Observer) -> Self {
        // The cost of an extension grows with the tasks in its horizon and with their devices.
        let cost = instance.tasks().clamp(1, 256) * instance.devices();
        let budget = Budget::new(limit, Instant::now(), 2_000_000_000 / cost as u64);
        Self { extensions: budget.iterations, deadline: budget.deadline, threads: cores(), observer, ..Self::default() }
    }

    /// Returns a share of the remaining effort.
    pub(crate) fn share(&self, share: f64) -> Self {
        let budget = self.budget().share_of_time(share);
        Self { extensions: (self.extensions as f64 * share) as u64, deadline: budget.deadline, ..self.clone() }
    }

    fn budget(&self) -> Budget {
        Budget { iterations: self.extensions, deadline: self.deadline }
    }

    /// Returns the limits for a subproblem, whose schedules are not reported.
    pub(crate) fn quiet(&self) -> Self {
        Self { observer: Observer::default(), ..self.clone() }
    }

    /// Returns true if the deadline has passed or the incumbent is optimal.
    pub(crate) fn are_passed(&self) -> bool {
        self.incumbent.is_over() || self.budget().is_late()
    }
}

/// Result of a search: a schedule, if one was found, and a lower bound.
#[derive(Clone, Debug, PartialEq)]
pub struct Answer {
    /// Best schedule found.
    pub schedule: Option<Timetable>,
    /// Lower bound on every makespan; infinite if no schedule fits.
    pub bound: Micros,
    /// Name of the method that proves it.
    pub bound_by: &'static str,
}

/// Devices and starts of all tasks.
#[derive(Clone, Debug, PartialEq)]
pub struct Timetable {
    /// Device of each task.
    pub device: Vec<usize>,
    /// Start of each task.
    pub start: Vec<Micros>,
    /// Makespan.
    pub value: Micros,
}

impl Timetable {
    /// Returns the timetable of a plan for one input; `None` for others.
    pub(crate) fn new(schedule: &Schedule) -> Option<Self> {
        let Schedule::Latency { device, start, makespan } = schedule else { return None };
        Some(Self { device: device.clone(), start: start.clone(), value: *makespan })
    }

    pub(crate) fn into_schedule(self) -> Schedule {
        Schedule::Latency { device: self.device, start: self.start, makespan: self.value }
    }
}

impl Answer {
    /// Returns true if the schedule is proven optimal.
    pub fn is_optimal(&self) -> bool {
        self.schedule.as_ref().is_some_and(|schedule| closes(self.bound, schedule.value))
    }
}

/// Minimizes the makespan, with the shared incumbent as a cutoff: the incumbent may be better than the returned
/// schedule. With more than 1024 tasks or 255 devices there is no search, only a bound.
pub fn solve(instance: &Instance, limits: &Limits) -> Answer {
    let graph = Graph::new(instance, instance.order(), Footprint::Least);
    // With limited memory, a schedule of this search may not fit, so it is not reported.
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
        // The first search bounded memory use from below; bounding it from above guarantees that the schedule fits.
        let graph = Graph::new(instance, instance.order(), Footprint::Most);
        let limits =
            Limits { extensions: limits.extensions.saturating_sub(spent).max(limits.extensions / 4), ..limits.clone() };
        let found = search(&graph, Goal::Beat(&limits.incumbent), &limits);
        schedule = found.sequence.map(|sequence| in_sequence(instance, &of_tasks(sequence)));
    }
    Answer { schedule, bound, bound_by }
}

/// Returns true if the schedule fits into the devices' memories.
pub(crate) fn fits(instance: &Instance, schedule: &Timetable) -> bool {
    let held = match instance.memory_model() {
        crate::model::problem::MemoryModel::Static => instance.static_use(&schedule.device),
        crate::model::problem::MemoryModel::Liveness => instance.peak_use(&schedule.device, &schedule.start),
    };
    instance.fits(&held)
}

/// Returns the tasks in the order of their starts.
pub(crate) fn by_start(instance: &Instance, schedule: &Timetable) -> Vec<usize> {
    let mut order = instance.order().to_vec();
    // The sort is stable: tasks of zero duration stay behind their predecessors.
    order.sort_by(|a, b| schedule.start[*a].total_cmp(&schedule.start[*b]));
    order
}

/// Schedules tasks on given devices in a topological order, each as early as possible.
pub(crate) fn in_sequence(instance: &Instance, sequence: &[(usize, usize)]) -> Timetable {
    let mut device = vec![0; instance.tasks()];
    let mut start = vec![Micros::ZERO; instance.tasks()];
    let mut free = vec![Micros::ZERO; instance.devices()];
    for &(task, on) in sequence {
        let mut earliest: Micros = free[on];
        for arc in instance.predecessors(task) {
            let from = device[arc.task];
            let end = start[arc.task] + instance.time(arc.task, from).unwrap_or(Micros::INFINITY);
            earliest = earliest.max(end + instance.transfer(arc.tensor, from, on));
        }
        (device[task], start[task]) = (on, earliest);
        free[on] = earliest + instance.time(task, on).unwrap_or(Micros::INFINITY);
    }
    Timetable { device, start, value: free.into_iter().fold(Micros::ZERO, Micros::max) }
}

/// Runs a search with bit sets of the size that the graph needs.
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
