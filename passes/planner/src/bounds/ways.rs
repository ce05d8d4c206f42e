//! Earliest times along ways through the graph: each task on its best device, but with the transfers that the choice of
//! devices costs.
//!
//! Devices are taken to be free always, unless prices are given: then work must fit between the earliest time at which it
//! can begin and the start of what waits for it. If no task of a set starts before h, and all of them end before a task
//! starts, then that task starts no earlier than h plus what the set pays for devices (see [`super::load`]). Taking for
//! the set those ancestors of a task that start no earlier than h, for each h, heads grow along the graph: after a
//! bottleneck the work behind it is counted from the bottleneck's head on. Tails are the same, backwards.

use super::load::Prices;
use crate::model::instance::{Arc, Instance};
use crate::model::units::Micros;

/// Beyond so many tasks, ancestors are not looked at: that takes the square of their number.
const MOST_TASKS: usize = 3000;

/// Heads or tails: the least time between the beginning and each task's start, or between each task's end and the end.
pub(super) struct Ways {
    /// By task and device; infinite where the task may not run.
    on: Vec<Micros>,
    devices: usize,
}

impl Ways {
    /// No launch of a task on a device starts earlier after the beginning.
    pub(super) fn heads(instance: &Instance, prices: Option<&Prices>) -> Self {
        let link = |tensor: usize, there: usize, here: usize| instance.transfer(tensor, there, here);
        Self::new(instance, prices, instance.order().to_vec(), |task| instance.predecessors(task), link)
    }

    /// No launch of a task on a device ends later before the end.
    pub(super) fn tails(instance: &Instance, prices: Option<&Prices>) -> Self {
        let order = instance.order().iter().rev().copied().collect();
        let link = |tensor: usize, there: usize, here: usize| instance.transfer(tensor, here, there);
        Self::new(instance, prices, order, |task| instance.successors(task), link)
    }

    fn new<'a>(
        instance: &'a Instance,
        prices: Option<&Prices>,
        order: Vec<usize>,
        before: impl Fn(usize) -> &'a [Arc],
        transfer: impl Fn(usize, usize, usize) -> Micros,
    ) -> Self {
        let devices = instance.devices();
        let mut ways = Self { on: vec![f64::INFINITY; instance.tasks() * devices], devices };
        let mut crowd = prices.filter(|_| instance.tasks() <= MOST_TASKS).map(|prices| Crowd::new(instance, prices));
        for task in order {
            let crowded = crowd.as_mut().map_or(0.0, |crowd| crowd.delay(task, before(task)));
            for &device in instance.allowed(task) {
                let arrival = |arc: &Arc| {
                    let from = |there: &usize| {
                        let end = ways.on[arc.task * devices + there] + quickest(instance, arc.task, *there);
                        end + transfer(arc.tensor, *there, device)
                    };
                    instance.allowed(arc.task).iter().map(from).fold(f64::INFINITY, f64::min)
                };
                let head = before(task).iter().map(arrival).fold(crowded, f64::max);
                ways.on[task * devices + device] = head;
            }
            if let Some(crowd) = &mut crowd {
                crowd.head[task] = ways.least(task);
            }
        }
        ways
    }

    pub(super) fn on(&self, task: usize, device: usize) -> Micros {
        self.on[task * self.devices + device]
    }

    /// On the device that is best for the task.
    pub(super) fn least(&self, task: usize) -> Micros {
        self.on[task * self.devices..][..self.devices].iter().copied().fold(f64::INFINITY, f64::min)
    }
}

/// The shortest launch of a task on a device.
pub(super) fn quickest(instance: &Instance, task: usize, device: usize) -> Micros {
    let sizes = instance.batch_sizes(device).iter();
    sizes.filter_map(|size| instance.time_at(task, device, *size)).fold(f64::INFINITY, f64::min)
}

/// Who comes before whom, and what that costs.
struct Crowd<'a> {
    prices: &'a Prices,
    words: usize,
    /// A bit for each task that comes before a task.
    ancestors: Vec<u64>,
    head: Vec<Micros>,
}

impl<'a> Crowd<'a> {
    fn new(instance: &Instance, prices: &'a Prices) -> Self {
        let tasks = instance.tasks();
        let words = tasks.div_ceil(64);
        Self { prices, words, ancestors: vec![0; tasks * words], head: vec![0.0; tasks] }
    }

    /// How early a task can start, given the work of those that come before it. One launch of each does: for a queue, no
    /// more is sure to have happened.
    fn delay(&mut self, task: usize, before: &[Arc]) -> Micros {
        let words = self.words;
        for arc in before {
            for word in 0..words {
                self.ancestors[task * words + word] |= self.ancestors[arc.task * words + word];
            }
            self.ancestors[task * words + arc.task / 64] |= 1 << (arc.task % 64);
        }
        let bits = &self.ancestors[task * words..][..words];
        let mut set: Vec<usize> =
            (0..self.head.len()).filter(|other| bits[other / 64] >> (other % 64) & 1 == 1).collect();
        set.sort_by(|a, b| self.head[*b].total_cmp(&self.head[*a]));
        let mut delay: Micros = 0.0;
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
