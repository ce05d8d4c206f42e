//! Load bound that includes the idle time of devices at both ends of a plan.
//!
//! If every task is a descendant of one task s, a device that runs no part of s is idle until a part of s has ended on
//! another device. If every task is an ancestor of one task z, a device that runs no part of z is idle after its last
//! launch of another task. For any nonnegative prices of devices that sum to one, the makespan is at least the price of
//! all launches plus the price of each device's idle time; the bound minimizes that sum over all splits of s and z into
//! launches.
//!
//! A device may run nothing at all. Then it is idle for the whole makespan, which is no less than any bound; so the idle
//! times at both ends count in full only as long as their sum is within a bound that is known already.

use super::load::Prices;
use super::ways::{Ways, quickest};
use crate::model::instance::{Arc, Instance};
use crate::model::units::Micros;

/// Single first or last task, and the idle time of each device that does not run it.
pub(super) struct End {
    pub(super) task: usize,
    pub(super) wait: Vec<Micros>,
}

/// Returns the load of all tasks with the idle time at both ends; zero if there is neither a single first nor a single
/// last task.
pub(super) fn load(instance: &Instance, prices: &Prices, ends: &[End]) -> Micros {
    if ends.is_empty() {
        return Micros::ZERO;
    }
    prices.load_with(instance, ends.iter().map(|end| (end.task, end.wait.as_slice())).collect::<Vec<_>>().as_slice())
}

/// Returns the single first and last tasks, as far as there are any, with the idle times that count.
pub(super) fn ends(instance: &Instance, heads: &Ways, tails: &Ways, known: Micros) -> Vec<End> {
    let order = instance.order();
    let alone = |task: usize, arcs: fn(&Instance, usize) -> &[Arc]| -> bool {
        (0..instance.tasks()).all(|other| other == task || !arcs(instance, other).is_empty())
    };
    // In a topological order only the first task can precede all others, and only the last can succeed them.
    let first = order.first().copied().filter(|task| alone(*task, Instance::predecessors));
    let last = order.last().copied().filter(|task| alone(*task, Instance::successors));
    let arrive = |tensor: usize, there: usize, here: usize| instance.transfer(tensor, there, here);
    let leave = |tensor: usize, there: usize, here: usize| instance.transfer(tensor, here, there);
    let mut ends = Vec::new();
    ends.extend(first.map(|task| End::new(instance, task, instance.successors(task), heads, arrive)));
    ends.extend(last.map(|task| End::new(instance, task, instance.predecessors(task), tails, leave)));
    if instance.tasks() < 2 {
        return Vec::new();
    }
    for device in 0..instance.devices() {
        let both: Micros = ends.iter().map(|end| end.wait[device]).sum();
        if both > known {
            // An infinite wait, of a device that runs nothing else, gets no share.
            let share = |wait: Micros| if both.is_finite() { Micros(wait.0 * known.0 / both.0) } else { Micros::ZERO };
            ends.iter_mut().for_each(|end| end.wait[device] = share(end.wait[device]));
        }
    }
    ends
}

impl End {
    /// Computes the waits. `near` are the arcs between the end and its neighbors, `ways` the heads or tails from the same
    /// side.
    fn new(
        instance: &Instance,
        task: usize,
        near: &[Arc],
        ways: &Ways,
        transfer: impl Fn(usize, usize, usize) -> Micros,
    ) -> Self {
        let wait = |device: usize| {
            let others = (0..instance.tasks()).filter(|other| *other != task);
            let here = others.filter(|other| instance.allowed(*other).contains(&device));
            here.map(|other| {
                let over = |arc: &Arc| {
                    let there = instance.allowed(task).iter().filter(|there| **there != device);
                    let times =
                        there.map(|there| quickest(instance, task, *there) + transfer(arc.tensor, *there, device));
                    times.fold(Micros::INFINITY, Micros::min)
                };
                let direct = near.iter().filter(|arc| arc.task == other).map(over);
                direct.fold(ways.on(other, device), Micros::max)
            })
            .fold(Micros::INFINITY, Micros::min)
        };
        Self { task, wait: (0..instance.devices()).map(wait).collect() }
    }
}
