//! Bounds on times before any decision: heads, tails, and the transitive closure.

use crate::model::instance::{Arc, Instance};
use crate::model::units::Micros;

/// Minimum time before each task's start and after its end, and the transitive closure of the graph.
pub(super) struct Times {
    devices: usize,
    /// By task and device; infinite if the task may not run there.
    heads: Vec<Micros>,
    tails: Vec<Micros>,
    words: usize,
    /// Bit set of the ancestors of each task.
    ancestors: Vec<u64>,
}

impl Times {
    pub(super) fn new(instance: &Instance) -> Self {
        let (tasks, devices) = (instance.tasks(), instance.devices());
        let (mut heads, mut tails) = (vec![Micros::INFINITY; tasks * devices], vec![Micros::INFINITY; tasks * devices]);
        let words = tasks.div_ceil(64);
        let mut ancestors = vec![0_u64; tasks * words];
        for &task in instance.order() {
            let hop = |arc: &Arc, there: usize, here: usize| instance.transfer(arc.tensor, there, here);
            extend(instance, &mut heads, task, instance.predecessors(task), hop);
            for arc in instance.predecessors(task) {
                for word in 0..words {
                    ancestors[task * words + word] |= ancestors[arc.task * words + word];
                }
                ancestors[task * words + arc.task / 64] |= 1 << (arc.task % 64);
            }
        }
        for &task in instance.order().iter().rev() {
            let hop = |arc: &Arc, there: usize, here: usize| instance.transfer(arc.tensor, here, there);
            extend(instance, &mut tails, task, instance.successors(task), hop);
        }
        Self { devices, heads, tails, words, ancestors }
    }

    /// Returns the lower bound on starts of a task on a device.
    pub(super) fn head(&self, task: usize, device: usize) -> Micros {
        self.heads[task * self.devices + device]
    }

    /// Returns the lower bound on the time after a launch of a task on a device.
    pub(super) fn tail(&self, task: usize, device: usize) -> Micros {
        self.tails[task * self.devices + device]
    }

    /// Returns the least head over all devices.
    pub(super) fn least_head(&self, task: usize) -> Micros {
        self.heads[task * self.devices..][..self.devices].iter().copied().fold(Micros::INFINITY, Micros::min)
    }

    pub(super) fn least_tail(&self, task: usize) -> Micros {
        self.tails[task * self.devices..][..self.devices].iter().copied().fold(Micros::INFINITY, Micros::min)
    }

    /// Returns true if `first` is an ancestor of `then`.
    pub(super) fn before(&self, first: usize, then: usize) -> bool {
        self.ancestors[then * self.words + first / 64] >> (first % 64) & 1 == 1
    }

    pub(super) fn comparable(&self, a: usize, b: usize) -> bool {
        self.before(a, b) || self.before(b, a)
    }
}

/// Propagates along the graph: each operand comes from the device that is fastest.
fn extend(
    instance: &Instance,
    times: &mut [Micros],
    task: usize,
    arcs: &[Arc],
    hop: impl Fn(&Arc, usize, usize) -> Micros,
) {
    let devices = instance.devices();
    for &device in instance.allowed(task) {
        let arrival = |arc: &Arc| {
            let from = |there: &usize| {
                times[arc.task * devices + there] + quickest(instance, arc.task, *there) + hop(arc, *there, device)
            };
            instance.allowed(arc.task).iter().map(from).fold(Micros::INFINITY, Micros::min)
        };
        times[task * devices + device] = arcs.iter().map(arrival).fold(Micros::ZERO, Micros::max);
    }
}

/// Returns the duration of the shortest launch of a task on a device.
pub(super) fn quickest(instance: &Instance, task: usize, device: usize) -> Micros {
    let sizes = instance.batch_sizes(device).iter();
    sizes.filter_map(|size| instance.time_at(task, device, *size)).fold(Micros::INFINITY, Micros::min)
}

/// Returns an upper bound on the optimal makespan: everything in sequence, at its slowest.
pub(super) fn longest(instance: &Instance) -> Micros {
    let (devices, inputs) = (instance.devices(), instance.inputs());
    let slowest = |task: usize, device: usize| {
        let sizes = instance.batch_sizes(device).iter();
        sizes.filter_map(|size| instance.time_at(task, device, *size)).fold(Micros::ZERO, Micros::max)
    };
    let launches = |task: usize| {
        let times = instance.allowed(task).iter().map(|device| slowest(task, *device));
        if inputs == 1 { times.fold(Micros::ZERO, Micros::max) } else { times.sum() }
    };
    let pairs = || (0..devices * devices).map(|pair| (pair / devices, pair % devices));
    let hop = |tensor: usize| {
        let times = pairs().map(|(from, to)| instance.transfer_of(tensor, from, to, inputs));
        times.filter(|time| time.is_finite()).fold(Micros::ZERO, Micros::max)
    };
    let transfers = instance.tensors().iter().enumerate().filter(|(_, tensor)| !tensor.consumers.is_empty());
    (0..instance.tasks()).map(launches).sum::<Micros>() + transfers.map(|(tensor, _)| hop(tensor)).sum::<Micros>()
}
