//! Task orders for list schedulers.

use crate::model::instance::Instance;
use crate::model::units::Micros;

/// Returns a breadth-first topological order: a task follows when its last predecessor has been placed.
pub fn breadth_first(instance: &Instance) -> Vec<usize> {
    let mut waiting_for: Vec<usize> = (0..instance.tasks()).map(|task| instance.predecessors(task).len()).collect();
    let mut order: Vec<usize> = (0..instance.tasks()).filter(|task| waiting_for[*task] == 0).collect();
    let mut next = 0;
    while let Some(&task) = order.get(next) {
        for arc in instance.successors(task) {
            waiting_for[arc.task] -= 1;
            if waiting_for[arc.task] == 0 {
                order.push(arc.task);
            }
        }
        next += 1;
    }
    order
}

/// Returns HEFT's order: by decreasing upward rank, with times and transfers averaged over devices. It is topological,
/// since times are not negative and ties are broken by a topological order.
pub fn by_upward_rank(instance: &Instance) -> Vec<usize> {
    let rank = upward_ranks(instance);
    let mut order = instance.order().to_vec();
    order.sort_by(|a, b| rank[*b].total_cmp(&rank[*a]));
    order
}

/// Returns the length of the longest path from each task's start to the end.
pub fn upward_ranks(instance: &Instance) -> Vec<Micros> {
    let mut rank = vec![Micros::ZERO; instance.tasks()];
    for &task in instance.order().iter().rev() {
        let after = instance.successors(task).iter().map(|arc| mean_transfer(instance, arc.tensor) + rank[arc.task]);
        rank[task] = mean_time(instance, task) + after.fold(Micros::ZERO, Micros::max);
    }
    rank
}

/// Returns the mean time of all inputs over the allowed devices, each with its best batch size.
fn mean_time(instance: &Instance, task: usize) -> Micros {
    let inputs = f64::from(instance.inputs());
    let on = |device: &usize| {
        let sizes = instance.batch_sizes(*device).iter();
        let rates = sizes.filter_map(|size| Some(instance.time_at(task, *device, *size)? / f64::from(*size)));
        rates.fold(Micros::INFINITY, Micros::min) * inputs
    };
    let allowed = instance.allowed(task);
    allowed.iter().map(on).sum::<Micros>() / allowed.len() as f64
}

/// Returns the mean transfer time of all inputs' tensors over the linked pairs of devices.
fn mean_transfer(instance: &Instance, tensor: usize) -> Micros {
    let devices = instance.devices();
    let (mut sum, mut pairs) = (Micros::ZERO, 0);
    for from in 0..devices {
        for to in (0..devices).filter(|to| *to != from && instance.linked(from, *to)) {
            sum += instance.transfer_of(tensor, from, to, instance.inputs());
            pairs += 1;
        }
    }
    if pairs == 0 { Micros::ZERO } else { sum / f64::from(pairs) }
}
