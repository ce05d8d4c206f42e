//! Heads and tails of tasks: lower bounds on the time before and after a task on each device, with transfers.
//!
//! Devices are assumed to be always free, unless prices are given. If no task of a set starts before h, and all of them
//! end before a task starts, then that task starts no earlier than h plus the set's payment for devices (see
//! [`super::load`]). For each h, the set consists of the task's ancestors whose heads are at least h, so heads grow along
//! the graph: the work after a bottleneck is counted from the bottleneck's head on. Tails are the same, backwards.

use super::load::Prices;
use crate::model::instance::{Arc, Instance};
use crate::model::units::Micros;

/// Maximum number of tasks whose ancestors are considered: the effort is quadratic.
const MOST_TASKS: usize = 3000;

/// Heads or tails: least time from the start of the plan to each task's start, or from each task's end to the end of the
/// plan.
pub(super) struct Ways {
    /// By task and device; infinite where the task may not run.
    on: Vec<Micros>,
    devices: usize,
}

impl Ways {
    /// Computes the least time from the start of the plan to a launch of each task on each device.
    pub(super) fn heads(instance: &Instance, prices: Option<&Prices>) -> Self {
        Self::heads_with(instance, prices, None)
    }

    /// Computes the least time to a launch on each device if it is the first one on the device `idle`.
    pub(super) fn heads_of_first(instance: &Instance, idle: usize) -> Self {
        Self::heads_with(instance, None, Some(idle))
    }

    fn heads_with(instance: &Instance, prices: Option<&Prices>, idle: Option<usize>) -> Self {
        let link = |tensor: usize, there: usize, here: usize| instance.transfer(tensor, there, here);
        Self::new(instance, prices, idle, instance.order().to_vec(), |task| instance.predecessors(task), link)
    }

    /// Computes the least time from a launch of each task on each device to the end of the plan.
    pub(super) fn tails(instance: &Instance, prices: Option<&Prices>) -> Self {
        Self::tails_with(instance, prices, None)
    }

    /// Computes the least time from a launch on each device to the end if it is the last one on the device `idle`.
    pub(super) fn tails_of_last(instance: &Instance, idle: usize) -> Self {
        Self::tails_with(instance, None, Some(idle))
    }

    fn tails_with(instance: &Instance, prices: Option<&Prices>, idle: Option<usize>) -> Self {
        let order = instance.order().iter().rev().copied().collect();
        let link = |tensor: usize, there: usize, here: usize| instance.transfer(tensor, here, there);
        Self::new(instance, prices, idle, order, |task| instance.successors(task), link)
    }

    /// Tasks before another one do not run on the device `idle`.
    fn new<'a>(
        instance: &'a Instance,
        prices: Option<&Prices>,
        idle: Option<usize>,
        order: Vec<usize>,
        before: impl Fn(usize) -> &'a [Arc],
        transfer: impl Fn(usize, usize, usize) -> Micros,
    ) -> Self {
        let devices = instance.devices();
        let mut ways = Self { on: vec![Micros::INFINITY; instance.tasks() * devices], devices };
        let mut ancestors =
            prices.filter(|_| instance.tasks() <= MOST_TASKS).map(|prices| Ancestors::new(instance, prices));
        for task in order {
            let delay = ancestors.as_mut().map_or(Micros::ZERO, |ancestors| ancestors.delay(task, before(task)));
            for &device in instance.allowed(task) {
                let arrival = |arc: &Arc| {
                    let from = |there: &usize| {
                        let end = ways.on[arc.task * devices + there] + quickest(instance, arc.task, *there);
                        end + transfer(arc.tensor, *there, device)
                    };
                    let busy = instance.allowed(arc.task).iter().filter(|there| Some(**there) != idle);
                    busy.map(from).fold(Micros::INFINITY, Micros::min)
                };
                let head = before(task).iter().map(arrival).fold(delay, Micros::max);
                ways.on[task * devices + device] = head;
            }
            if let Some(ancestors) = &mut ancestors {
                ancestors.head[task] = ways.least(task);
            }
        }
        ways
    }

    pub(super) fn on(&self, task: usize, device: usize) -> Micros {
        self.on[task * self.devices + device]
    }

    /// Returns the minimum over the devices.
    pub(super) fn least(&self, task: usize) -> Micros {
        self.on[task * self.devices..][..self.devices].iter().copied().fold(Micros::INFINITY, Micros::min)
    }
}

/// Returns the time of the shortest launch of a task on a device.
pub(super) fn quickest(instance: &Instance, task: usize, device: usize) -> Micros {
    let sizes = instance.batch_sizes(device).iter();
    sizes.filter_map(|size| instance.time_at(task, device, *size)).fold(Micros::INFINITY, Micros::min)
}

/// Ancestors of each task, and the delay that their work causes.
struct Ancestors<'a> {
    prices: &'a Prices,
    words: usize,
    /// Bit set of the ancestors of each task.
    bits: Vec<u64>,
    head: Vec<Micros>,
}

impl<'a> Ancestors<'a> {
    fn new(instance: &Instance, prices: &'a Prices) -> Self {
        let tasks = instance.tasks();
        let words = tasks.div_ceil(64);
        Self { prices, words, bits: vec![0; tasks * words], head: vec![Micros::ZERO; tasks] }
    }

    /// Returns the earliest start of a task, given the work of its ancestors. One launch of each counts: for a queue, no
    /// more is sure to precede the task.
    fn delay(&mut self, task: usize, before: &[Arc]) -> Micros {
        let words = self.words;
        for arc in before {
            for word in 0..words {
                self.bits[task * words + word] |= self.bits[arc.task * words + word];
            }
            self.bits[task * words + arc.task / 64] |= 1 << (arc.task % 64);
        }
        let bits = &self.bits[task * words..][..words];
        let mut set: Vec<usize> =
            (0..self.head.len()).filter(|other| bits[other / 64] >> (other % 64) & 1 == 1).collect();
        set.sort_by(|a, b| self.head[*b].total_cmp(&self.head[*a]));
        let mut delay = Micros::ZERO;
        for priced in &self.prices.pool {
            let mut paid = -priced.memory_worth;
            for &other in &set {
                paid += priced.launch[other];
                delay = delay.max(self.head[other] + paid);
            }
        }
        delay
    }
}

/// Returns the length of the longest path for given times of tasks, and which tasks are on it. Tasks before the first
/// positive time need not be.
pub(super) fn longest_path(instance: &Instance, time: &[Micros]) -> (Micros, Vec<bool>) {
    let mut length = vec![Micros::ZERO; instance.tasks()];
    let mut from: Vec<Option<usize>> = vec![None; instance.tasks()];
    let mut last: Option<usize> = None;
    for &task in instance.order() {
        for arc in instance.predecessors(task) {
            if length[arc.task] > length[task] {
                (length[task], from[task]) = (length[arc.task], Some(arc.task));
            }
        }
        length[task] += time[task];
        if last.is_none_or(|last| length[task] > length[last]) {
            last = Some(task);
        }
    }
    let mut is_on_path = vec![false; instance.tasks()];
    let mut next = last;
    while let Some(task) = next {
        is_on_path[task] = true;
        next = from[task];
    }
    (last.map_or(Micros::ZERO, |last| length[last]), is_on_path)
}
