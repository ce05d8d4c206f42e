//! Bounds that hold before the search: how much time lies before and after each task, wherever it runs.

use super::graph::Graph;
use super::multipliers::Multiplier;
use super::set::Set;
use crate::model::units::Micros;

/// Sums of shared work are rounded; a bound gives up this share of itself so as never to be above the truth.
const ROUNDING: f64 = 1e-9;
/// How often narrower domains are looked at again.
const ROUNDS: usize = 4;
/// How many tasks after the first undone one a multiplier should know about.
const AHEAD: usize = 16;

/// What is known about schedules that end by a cutoff.
#[derive(Clone, Debug)]
pub(crate) struct Bounds {
    /// The graph's times, infinite where no schedule within the cutoff has the task.
    pub(crate) time_us: Vec<Micros>,
    /// By task and device: no start before.
    pub(crate) head_us: Vec<Micros>,
    /// By task and device: no less time between the task's end and the end of all.
    pub(crate) tail_us: Vec<Micros>,
    /// By task, over its devices.
    pub(crate) least_tail_us: Vec<Micros>,
    /// Tasks by least tail, longest first.
    pub(crate) by_tail: Vec<usize>,
    pub(crate) multipliers: Vec<Multiplier>,
    /// By multiplier and place in `by_tail`: the most that the tasks from there on can add.
    potential_us: Vec<Vec<Micros>>,
    /// By first undone task: the multipliers to look at.
    near: Vec<Vec<usize>>,
    /// No schedule ends before this; infinite if none ends by the cutoff.
    pub(crate) value: Micros,
}

impl Bounds {
    pub(crate) fn new<const WORDS: usize>(graph: &Graph, reversed: &Graph, cutoff: Micros) -> Self {
        let devices = graph.devices;
        let mut time_us = graph.time_us.clone();
        for (at, time) in time_us.iter_mut().enumerate() {
            if graph.need[at / devices] > graph.capacity[at % devices] {
                *time = f64::INFINITY;
            }
        }
        let mut value: Micros = 0.0;
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
                let mut least = f64::INFINITY;
                for at in task * devices..(task + 1) * devices {
                    let through = head_us[at] + time_us[at] + tails.tail_us[at];
                    least = least.min(through);
                    if through > cutoff && time_us[at].is_finite() {
                        time_us[at] = f64::INFINITY;
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

    /// The most that the load of the undone tasks proves, or the first that proves more than the cutoff. `free` has when
    /// each device is free, earliest first, `starts_us` the earliest starts of undone tasks as far as they are known.
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
            // Devices that are free too late to help with the most urgent tasks join when time gets to them.
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
    /// What the load of all tasks proves.
    load: Micros,
}

impl Tails {
    /// From the last task to the first: the longest path through the best devices, or the load of all that follows.
    fn new<const WORDS: usize>(
        graph: &Graph,
        time_us: &[Micros],
        multipliers: &[Multiplier],
        descendants: &[Set<WORDS>],
    ) -> Self {
        let (tasks, devices) = (graph.tasks, graph.devices);
        let near = near(multipliers, tasks);
        let mut tail_us = graph.delivery_us.clone();
        let mut least_tail_us = vec![0.0; tasks];
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
                    tail = tail.max((0..devices).map(after).fold(f64::INFINITY, f64::min));
                }
                tail_us[task * devices + device] = tail;
            }
            let here = (0..devices).map(|device| task * devices + device).filter(|at| time_us[*at].is_finite());
            least_tail_us[task] = here.map(|at| tail_us[at]).fold(f64::INFINITY, f64::min);
            let place = by_tail.partition_point(|other| least_tail_us[*other] >= least_tail_us[task]);
            by_tail.insert(place, task);
        }
        let load = heaviest(multipliers.iter(), &by_tail, &least_tail_us, |_| true);
        Self { tail_us, least_tail_us, by_tail, load }
    }
}

/// The most that the load of some tasks proves about the time from when the first of them may start.
fn heaviest<'a>(
    multipliers: impl Iterator<Item = &'a Multiplier>,
    by_tail: &[usize],
    least_tail_us: &[Micros],
    among: impl Fn(usize) -> bool,
) -> Micros {
    let mut most: Micros = 0.0;
    for multiplier in multipliers {
        let mut work = 0.0;
        for &task in by_tail.iter().filter(|task| among(**task)) {
            work += multiplier.work_us[task];
            most = most.max((work + least_tail_us[task]) * (1.0 - ROUNDING));
        }
    }
    most
}

/// For each task, the multipliers that were chosen for what comes next.
fn near(multipliers: &[Multiplier], tasks: usize) -> Vec<Vec<usize>> {
    let relevant = |window: &std::ops::Range<usize>, task: usize| window.start < task + AHEAD && window.end > task;
    let chosen =
        |task: usize| (0..multipliers.len()).filter(|index| relevant(&multipliers[*index].window, task)).collect();
    (0..tasks).map(chosen).collect()
}

fn potential(multiplier: &Multiplier, tails: &Tails) -> Vec<Micros> {
    let mut potential = vec![0.0; tails.by_tail.len()];
    let mut after: Micros = 0.0;
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

/// The longest path through the best devices: what holds for a graph of any size.
pub(crate) fn longest_path(graph: &Graph) -> Micros {
    let none: Vec<Set<0>> = Vec::new();
    let tails = Tails::new(graph, &graph.time_us, &[], &none);
    let through = |at: usize| graph.release_us[at] + graph.time_us[at] + tails.tail_us[at];
    let devices = graph.devices;
    (0..graph.tasks)
        .map(|task| (task * devices..(task + 1) * devices).map(through).fold(f64::INFINITY, f64::min))
        .fold(0.0, f64::max)
}
