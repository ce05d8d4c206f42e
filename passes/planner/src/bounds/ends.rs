//! Work, and the time that devices must wait at both ends of a plan.
//!
//! Where every task comes after one task s, a device that takes no part of s has nothing to do until a part of s has ended
//! somewhere else. Where every task comes before one task z, a device that takes no part of z has nothing to do once it has
//! ended the last of the others. Under any prices of devices that add up to one, the makespan is at least what all launches
//! pay plus what each device's idle time is worth; so s and z are cut such that launches and waiting together are cheapest.
//!
//! A device may run nothing at all. Then it idles for the whole makespan, which is no less than any bound; so its waits are
//! counted in full only as far as both together stay within a bound that is known already.

use super::load::Prices;
use super::ways::{Ways, quickest};
use crate::model::instance::{Arc, Instance};
use crate::model::units::Micros;

/// A first or last task, and how long each device waits that takes no part in it.
struct End {
    task: usize,
    wait: Vec<Micros>,
}

/// The work of all tasks with the waiting at both ends; nothing where there is no such end.
pub(super) fn load(instance: &Instance, prices: &Prices, heads: &Ways, tails: &Ways, known: Micros) -> Micros {
    let order = instance.order();
    let alone = |task: usize, arcs: fn(&Instance, usize) -> &[Arc]| -> bool {
        (0..instance.tasks()).all(|other| other == task || !arcs(instance, other).is_empty())
    };
    // In a topological order only the first task can come before all others, and only the last after them.
    let first = order.first().copied().filter(|task| alone(*task, Instance::predecessors));
    let last = order.last().copied().filter(|task| alone(*task, Instance::successors));
    let arrive = |tensor: usize, there: usize, here: usize| instance.transfer(tensor, there, here);
    let leave = |tensor: usize, there: usize, here: usize| instance.transfer(tensor, here, there);
    let mut ends = Vec::new();
    ends.extend(first.map(|task| End::new(instance, task, instance.successors(task), heads, arrive)));
    ends.extend(last.map(|task| End::new(instance, task, instance.predecessors(task), tails, leave)));
    if ends.is_empty() || instance.tasks() < 2 {
        return 0.0;
    }
    for device in 0..instance.devices() {
        let both: Micros = ends.iter().map(|end| end.wait[device]).sum();
        if both > known {
            // An infinite wait, for a device that runs nothing else, has no share of anything.
            let share = |wait: Micros| if both.is_finite() { wait * known / both } else { 0.0 };
            ends.iter_mut().for_each(|end| end.wait[device] = share(end.wait[device]));
        }
    }
    prices.load_with(instance, ends.iter().map(|end| (end.task, end.wait.as_slice())).collect::<Vec<_>>().as_slice())
}

impl End {
    /// `near` are the tensors between the end and its neighbours, `ways` how far other tasks are from the same side.
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
                    times.fold(f64::INFINITY, f64::min)
                };
                let direct = near.iter().filter(|arc| arc.task == other).map(over);
                direct.fold(ways.on(other, device), f64::max)
            })
            .fold(f64::INFINITY, f64::min)
        };
        Self { task, wait: (0..instance.devices()).map(wait).collect() }
    }
}
