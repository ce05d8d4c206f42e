//! Bounds computed before the search: minimum time before and after each task, by device.

use super::graph::Graph;
use super::multipliers::Multiplier;
use super::set::Set;
use crate::model::units::Micros;

/// Relative tolerance that is subtracted from bounds, as sums of shared work are rounded.
const ROUNDING: f64 = 1e-9;
/// Maximum number of passes that narrow domains.
const ROUNDS: usize = 4;
/// Number of tasks after the first unfinished one that a multiplier should cover.
const AHEAD: usize = 16;

/// Bounds on schedules that end by a cutoff.
#[derive(Clone, Debug)]
pub(crate) struct Bounds {
    /// Task times; infinite if no schedule within the cutoff runs the task on the device.
    pub(crate) time_us: Vec<Micros>,
    /// Head: lower bound on the start, by task and device.
    pub(crate) head_us: Vec<Micros>,
    /// Tail: lower bound on the time from the task's end to the makespan, by task and device.
    pub(crate) tail_us: Vec<Micros>,
    /// By task: minimum over its devices.
    pub(crate) least_tail_us: Vec<Micros>,
    /// Tasks by decreasing least tail.
    pub(crate) by_tail: Vec<usize>,
    pub(crate) multipliers: Vec<Multiplier>,
    /// By multiplier and position in `by_tail`: upper bound on what the tasks from there on can add.
    potential_us: Vec<Vec<Micros>>,
    /// By first unfinished task: indices of the relevant multipliers.
    near: Vec<Vec<usize>>,
    /// Lower bound on the makespan; infinite if no schedule ends by the cutoff.
    pub(crate) value: Micros,
}

impl Bounds {
    pub(crate) fn new<const WORDS: usize>(graph: &Graph, reversed: &Graph, cutoff: Micros) -> Self {
        let devices = graph.devices;
        let mut time_us = graph.time_us.clone();
        for (at, time) in time_us.iter_mut().enumerate() {
            if graph.need[at / devices] > graph.capacity[at % devices] {
                *time = Micros::INFINITY;
            }
        }
        let mut value = Micros::ZERO;
        let after = descendants::<WORDS>(graph);
        let before = descendants::<WORDS>(reversed);
        let mut round = 0;
        let (head_us, tails, multipliers) = loop {
            let multipliers = Multiplier::family(&time_us, devices);
            let backwards: Vec<Multiplier> = multipliers.iter().map(Multiplier::reversed).collect();
            let tails = Tails::new(graph, &time_us, &multipliers, &after);
            let mirrored: Vec<Micros> = time_us.chunks(devices).rev().flatten().copied().collect();
            let heads = Tails::new(reversed, &mirrored, &backwards, &before);
            let head_us: Vec<Micros> = heads.tail_us.chunks(devices).rev().flatten().copied().collect();
            value = value.max(tails.load).max(heads.load);
            let mut narrower = false;
            for task in 0..graph.tasks {
                let mut least = Micros::INFINITY;
                for at in task * devices..(task + 1) * devices {
                    let through = head_us[at] + time_us[at] + tails.tail_us[at];
                    least = least.min(through);
                    if through > cutoff && time_us[at].is_finite() {
                        time_us[at] = Micros::INFINITY;
                        narrower = true;
                    }
                }
                value = value.max(least);
            }
            round += 1;
            if !narrower || round == ROUNDS || value > cutoff {
                break (head_us, tails, multipliers);
            }
        };
        let potential_us = multipliers.iter().map(|multiplier| potential(multiplier, &tails)).collect();
        let near = near(&multipliers, graph.tasks);
        let Tails { tail_us, least_tail_us, by_tail, .. } = tails;
        Self { time_us, head_us, tail_us, least_tail_us, by_tail, multipliers, potential_us, near, value }
    }

    /// Returns the best load bound of the unfinished tasks, or the first that exceeds the cutoff. `free` has the times
    /// at which devices are free, ascending; `starts_us` has the earliest starts of unfinished tasks as far as
    /// computed.
    pub(crate) fn load<const WORDS: usize>(
        &self,
        done: &Set<WORDS>,
        first: usize,
        free: &[(Micros, usize)],
        starts_us: &[Micros],
        cutoff: Micros,
        mut bound: Micros,
    ) -> Micros {
        for &index in &self.near[first] {
            let (multiplier, potential) = (&self.multipliers[index], &self.potential_us[index]);
            // Devices that become free later are added once the accumulated work reaches that time.
            let mut joined = 1;
            let mut share = multiplier.share[free[0].1];
            let mut work = share * free[0].0;
            for (place, &task) in self.by_tail.iter().enumerate() {
                if joined == free.len() && work + potential[place] <= bound {
                    break;
                }
                if done.contains(task) {
                    continue;
                }
                let row = task * free.len()..(task + 1) * free.len();
                work += match starts_us.get(row.clone()) {
                    Some(starts) => multiplier.work_left(task, starts, &self.time_us[row]),
                    None => multiplier.work_us[task],
                };
                while joined < free.len() && work > share * free[joined].0 {
                    let (time, device) = free[joined];
                    share += multiplier.share[device];
                    work += multiplier.share[device] * time;
                    joined += 1;
                }
                let least = (work / share + self.least_tail_us[task]) * (1.0 - ROUNDING);
                if least > bound {
                    bound = least;
                    if bound > cutoff {
                        return bound;
                    }
                }
            }
        }
        bound
    }
}

struct Tails {
    tail_us: Vec<Micros>,
    least_tail_us: Vec<Micros>,
    by_tail: Vec<usize>,
    /// Load bound of all tasks.
    load: Micros,
}

impl Tails {
    /// Processes tasks in reverse order: the longest path over the best devices, or the load of all descendants.
    fn new<const WORDS: usize>(
        graph: &Graph,
        time_us: &[Micros],
        multipliers: &[Multiplier],
        descendants: &[Set<WORDS>],
    ) -> Self {
        let (tasks, devices) = (graph.tasks, graph.devices);
        let near = near(multipliers, tasks);
        let mut tail_us = graph.delivery_us.clone();
        let mut least_tail_us = vec![Micros::ZERO; tasks];
        let mut by_tail: Vec<usize> = Vec::with_capacity(tasks);
        for task in (0..tasks).rev() {
            let chosen = near[task].iter().map(|index| &multipliers[*index]);
            let load = heaviest(chosen, &by_tail, &least_tail_us, |other| descendants[task].contains(other));
            for device in 0..devices {
                let mut tail = tail_us[task * devices + device].max(load);
                for arc in &graph.successors[task] {
                    let delays = &graph.delays(arc)[device * devices..(device + 1) * devices];
                    let after = |to: usize| {
                        let at = arc.task * devices + to;
                        delays[to] + time_us[at] + tail_us[at]
                    };
                    tail = tail.max((0..devices).map(after).fold(Micros::INFINITY, Micros::min));
                }
                tail_us[task * devices + device] = tail;
            }
            let here = (0..devices).map(|device| task * devices + device).filter(|at| time_us[*at].is_finite());
            least_tail_us[task] = here.map(|at| tail_us[at]).fold(Micros::INFINITY, Micros::min);
            let place = by_tail.partition_point(|other| least_tail_us[*other] >= least_tail_us[task]);
            by_tail.insert(place, task);
        }
        let load = heaviest(multipliers.iter(), &by_tail, &least_tail_us, |_| true);
        Self { tail_us, least_tail_us, by_tail, load }
    }
}

/// Returns the largest load bound of some tasks on the time after the first of them may start.
fn heaviest<'a>(
    multipliers: impl Iterator<Item = &'a Multiplier>,
    by_tail: &[usize],
    least_tail_us: &[Micros],
    among: impl Fn(usize) -> bool,
) -> Micros {
    let mut most = Micros::ZERO;
    for multiplier in multipliers {
        let mut work = Micros::ZERO;
        for &task in by_tail.iter().filter(|task| among(**task)) {
            work += multiplier.work_us[task];
            most = most.max((work + least_tail_us[task]) * (1.0 - ROUNDING));
        }
    }
    most
}

/// Returns for each task the multipliers whose windows overlap the tasks that follow.
fn near(multipliers: &[Multiplier], tasks: usize) -> Vec<Vec<usize>> {
    let relevant = |window: &std::ops::Range<usize>, task: usize| window.start < task + AHEAD && window.end > task;
    let chosen =
        |task: usize| (0..multipliers.len()).filter(|index| relevant(&multipliers[*index].window, task)).collect();
    (0..tasks).map(chosen).collect()
}

fn potential(multiplier: &Multiplier, tails: &Tails) -> Vec<Micros> {
    let mut potential = vec![Micros::ZERO; tails.by_tail.len()];
    let mut after = Micros::ZERO;
    for (place, &task) in tails.by_tail.iter().enumerate().rev() {
        after = multiplier.work_us[task] + after.max(tails.least_tail_us[task]);
        potential[place] = after;
    }
    potential
}

fn descendants<const WORDS: usize>(graph: &Graph) -> Vec<Set<WORDS>> {
    let mut descendants = vec![Set::EMPTY; graph.tasks];
    for task in (0..graph.tasks).rev() {
        for arc in &graph.successors[task] {
            descendants[task] = descendants[task].union(&descendants[arc.task]);
            descendants[task].insert(arc.task);
        }
    }
    descendants
}

/// Returns the longest path over the best devices: a bound for graphs of any size.
pub(crate) fn longest_path(graph: &Graph) -> Micros {
    let none: Vec<Set<0>> = Vec::new();
    let tails = Tails::new(graph, &graph.time_us, &[], &none);
    let through = |at: usize| graph.release_us[at] + graph.time_us[at] + tails.tail_us[at];
    let devices = graph.devices;
    (0..graph.tasks)
        .map(|task| (task * devices..(task + 1) * devices).map(through).fold(Micros::INFINITY, Micros::min))
        .fold(Micros::ZERO, Micros::max)
}
