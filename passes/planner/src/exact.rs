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

mod bounds;
mod context;
mod extend;
pub(crate) mod graph;
mod layer;
mod masks;
mod multipliers;
pub(crate) mod search;
mod set;
pub(crate) mod solver;
mod sweep;
pub(crate) mod symmetry;
#[cfg(test)]
pub(crate) mod test;

use std::time::Instant;

use crate::instance::Instance;
use crate::plan::Limit;
use crate::units::Micros;
use crate::watch::Watch;
use graph::{Footprint, Graph};
use search::Found;
use sweep::Effort;

/// Larger problems only get a bound.
const MOST_TASKS: usize = 1024;
const MOST_DEVICES: usize = 255;

/// How much effort is allowed.
#[derive(Clone, Debug)]
pub struct Limits {
    /// How often a task may be put at the end of a partial schedule.
    pub extensions: u64,
    /// Results that depend on it are not reproducible.
    pub deadline: Option<Instant>,
    /// How many threads may work on independent parts; the result does not depend on it.
    pub threads: usize,
    /// Who is told of schedules of the whole, and of bounds.
    pub watch: Watch,
}

impl Default for Limits {
    fn default() -> Self {
        Self { extensions: 2_000_000, deadline: None, threads: 1, watch: Watch::default() }
    }
}

impl Limits {
    /// What a user allows. Where that is nothing in particular, about a minute of one core at most.
    pub(crate) fn new(instance: &Instance, limit: Option<Limit>, watch: Watch) -> Self {
        let threads = std::thread::available_parallelism().map_or(1, usize::from);
        match limit {
            Some(Limit::Iterations(extensions)) => Self { extensions, deadline: None, threads, watch },
            Some(Limit::Seconds(seconds)) => {
                // A limit beyond what clocks can say is none.
                let allowed = std::time::Duration::try_from_secs_f64(seconds.max(0.0)).ok();
                let deadline = allowed.and_then(|allowed| Instant::now().checked_add(allowed));
                Self { extensions: u64::MAX, deadline, threads, watch }
            }
            None => {
                // What an extension costs grows with the tasks that it looks ahead to, and with their devices.
                let cost = instance.tasks().clamp(1, 256) * instance.devices();
                Self { extensions: 2_000_000_000 / cost as u64, deadline: None, threads, watch }
            }
        }
    }
}

/// A schedule, if one was found, and what is proven about all.
#[derive(Clone, Debug, PartialEq)]
pub struct Answer {
    pub schedule: Option<Timetable>,
    /// No schedule ends before this; infinite if none fits.
    pub bound: Micros,
    /// What proves it.
    pub bound_by: &'static str,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Timetable {
    pub device: Vec<usize>,
    pub start: Vec<Micros>,
    /// When the last task ends.
    pub value: Micros,
}

impl Answer {
    /// Whether no schedule is better.
    pub fn is_optimal(&self) -> bool {
        self.schedule.as_ref().is_some_and(|schedule| self.bound >= schedule.value * (1.0 - search::SAME))
    }
}

/// Looks for the schedule that ends first. With more than 1024 tasks or 255 devices there is no search, only a bound.
pub fn solve(instance: &Instance, limits: &Limits) -> Answer {
    let graph = Graph::new(instance, instance.order(), Footprint::Least);
    // With limited memory, a schedule of this search may turn out not to fit.
    let limited = (0..instance.devices()).any(|device| instance.capacity_bytes(device).is_finite());
    let watch = if limited { limits.watch.of_bounds() } else { limits.watch.clone() };
    let found = search(&graph, f64::INFINITY, &Limits { watch, ..*limits });
    let bound_by = if found.bound > found.relaxation { "exact" } else { "paths-and-loads" };
    let (bound, spent) = (found.bound, found.extensions);
    let mut schedule = found.sequence.map(|sequence| schedule(instance, &graph, &sequence));
    if schedule.as_ref().is_some_and(|schedule| !fits(instance, schedule)) {
        // What must fit at the same time was only bounded from below; bounded from above, whatever is found fits.
        let graph = Graph::new(instance, instance.order(), Footprint::Most);
        let limits =
            Limits { extensions: limits.extensions.saturating_sub(spent).max(limits.extensions / 4), ..limits.clone() };
        let found = search(&graph, f64::INFINITY, &limits);
        schedule = found.sequence.map(|sequence| self::schedule(instance, &graph, &sequence));
    }
    Answer { schedule, bound, bound_by }
}

/// Whether the devices hold all that the schedule puts on them at the same time.
pub(crate) fn fits(instance: &Instance, schedule: &Timetable) -> bool {
    let held = match instance.memory_model() {
        crate::problem::MemoryModel::Static => instance.static_use(&schedule.device),
        crate::problem::MemoryModel::Liveness => instance.peak_use(&schedule.device, &schedule.start),
    };
    held.iter().enumerate().all(|(device, held)| *held <= instance.capacity_bytes(device))
}

/// The instance's schedule for a sequence of the graph of all its tasks.
pub(crate) fn schedule(instance: &Instance, graph: &Graph, sequence: &[(usize, usize)]) -> Timetable {
    let (starts, value) = graph.starts(sequence);
    let mut device = vec![0; instance.tasks()];
    let mut start = vec![0.0; instance.tasks()];
    for &(task, on) in sequence {
        device[instance.order()[task]] = on;
        start[instance.order()[task]] = starts[task];
    }
    Timetable { device, start, value }
}

/// Searches with sets as large as the graph needs.
pub(crate) fn search(graph: &Graph, known: Micros, limits: &Limits) -> Found {
    let effort = Effort { extensions: limits.extensions, deadline: limits.deadline };
    let watch = &limits.watch;
    if graph.devices > MOST_DEVICES {
        return Found::nothing(bounds::longest_path(graph));
    }
    match graph.tasks {
        0..=64 => search::search::<1>(graph, known, effort, watch),
        65..=128 => search::search::<2>(graph, known, effort, watch),
        129..=256 => search::search::<4>(graph, known, effort, watch),
        257..=512 => search::search::<8>(graph, known, effort, watch),
        513..=MOST_TASKS => search::search::<16>(graph, known, effort, watch),
        _ => Found::nothing(bounds::longest_path(graph)),
    }
}
