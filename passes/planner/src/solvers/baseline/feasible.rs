//! Local search for any feasible schedule where list schedulers find none: tasks run one after the other, and random
//! changes of order and devices are accepted if they do not increase the violation.

use super::batch::overlap;
use crate::model::instance::Instance;
use crate::model::plan::{Batch, Objective, Schedule};
use crate::model::problem::MemoryModel;
use crate::model::units::{Bytes, Micros};
use crate::random::Random;

/// Maximum number of changes, and the product of changes and tasks that bounds it further: a change costs time
/// proportional to the number of tasks.
const MOST_CHANGES: usize = 20_000;
const CHANGED_TASKS: usize = 2_000_000;
/// Number of restarts, which share the changes equally.
const STARTS: usize = 20;

/// Device and the inputs of a group's tasks that run on it.
type Part = (usize, Vec<u32>);

/// Returns a feasible schedule, or `None` if none is found.
pub(super) fn schedule(instance: &Instance, objective: Objective) -> Option<Schedule> {
    let mut random = Random::new(1);
    let first = Trial::first(instance, &mut random)?;
    let changes = (CHANGED_TASKS / instance.tasks().max(1)).clamp(STARTS, MOST_CHANGES);
    for start in 0..STARTS {
        let mut trial = first.clone();
        // The first start is the unperturbed one; later ones are perturbed more and more.
        for _ in 0..start * instance.tasks() {
            trial.change(instance, &mut random);
        }
        let mut over = trial.over(instance);
        for _ in 0..changes / STARTS {
            if over == (0, Bytes::ZERO) {
                return Some(trial.into_schedule(instance, objective));
            }
            let mut next = trial.clone();
            next.change(instance, &mut random);
            let next_over = next.over(instance);
            if next_over <= over {
                (trial, over) = (next, next_over);
            }
        }
    }
    None
}

#[derive(Clone)]
struct Trial {
    order: Vec<usize>,
    /// By group.
    parts: Vec<Vec<Part>>,
}

impl Trial {
    fn first(instance: &Instance, random: &mut Random) -> Option<Self> {
        let cut = |group: usize, random: &mut Random| {
            let whole = instance.allowed(instance.groups()[group][0]).iter().copied().find_map(|device| {
                let runs = |task: &usize| instance.time_at(*task, device, instance.inputs()).is_some();
                let fits = instance.groups()[group].iter().all(runs);
                fits.then(|| vec![(device, (0..instance.inputs()).collect())])
            });
            whole.or_else(|| (0..MOST_CHANGES).find_map(|_| random_cut(instance, group, random)))
        };
        let parts: Option<Vec<Vec<Part>>> = (0..instance.groups().len()).map(|group| cut(group, random)).collect();
        Some(Self { order: instance.order().to_vec(), parts: parts? })
    }

    /// Moves a task within the range that its neighbors in the order allow, or splits a group anew.
    fn change(&mut self, instance: &Instance, random: &mut Random) {
        if random.chance(0.5) {
            let group = random.below(self.parts.len());
            if let Some(parts) = random_cut(instance, group, random) {
                self.parts[group] = parts;
            }
            return;
        }
        let from = random.below(self.order.len());
        let task = self.order[from];
        let is_before = |place: &usize| instance.predecessors(task).iter().any(|arc| arc.task == self.order[*place]);
        let is_behind = |place: &usize| instance.successors(task).iter().any(|arc| arc.task == self.order[*place]);
        let first = (0..from).rev().find(is_before).map_or(0, |place| place + 1);
        let last = (from + 1..self.order.len()).find(is_behind).unwrap_or(self.order.len()) - 1;
        let to = first + random.below(last - first + 1);
        self.order.remove(from);
        self.order.insert(to, task);
    }

    /// Schedules one task after the other. Returns batches, makespan and the number of operands that no link can move.
    fn launches(&self, instance: &Instance) -> (Vec<Batch>, Micros, usize) {
        let mut of_task: Vec<Vec<(Batch, Micros)>> = vec![Vec::new(); instance.tasks()];
        let mut now = Micros::ZERO;
        let mut missing = 0;
        for &task in &self.order {
            let begun = now;
            for (device, inputs) in &self.parts[instance.group_of(task)] {
                let mut start = begun;
                for arc in instance.predecessors(task) {
                    for (batch, end) in &of_task[arc.task] {
                        let count = overlap(&batch.inputs, inputs);
                        let arrival = *end + instance.transfer_of(arc.tensor, batch.device, *device, count);
                        if count > 0 && arrival.is_finite() {
                            start = start.max(arrival);
                        }
                        missing += usize::from(count > 0 && arrival.is_infinite());
                    }
                }
                let time = instance.time_at(task, *device, inputs.len() as u32).unwrap_or(Micros::ZERO);
                now = now.max(start + time);
                of_task[task]
                    .push((Batch { node: task, device: *device, inputs: inputs.clone(), start }, start + time));
            }
        }
        (of_task.into_iter().flatten().map(|(batch, _)| batch).collect(), now, missing)
    }

    /// Returns the violation: operands that cannot be moved, then bytes that do not fit.
    fn over(&self, instance: &Instance) -> (usize, Bytes) {
        let (batches, _, missing) = self.launches(instance);
        let held = match instance.memory_model() {
            MemoryModel::Liveness => instance.peak_use_of(&batches),
            MemoryModel::Static => {
                let mut held = vec![Bytes::ZERO; instance.devices()];
                for batch in &batches {
                    held[batch.device] += instance.static_bytes(batch.node, batch.inputs.len() as u32);
                }
                held
            }
        };
        let over = |(device, held): (usize, &Bytes)| (*held - instance.capacity_bytes(device)).max(Bytes::ZERO);
        (missing, held.iter().enumerate().map(over).sum())
    }

    fn into_schedule(self, instance: &Instance, objective: Objective) -> Schedule {
        let (batches, makespan, _) = self.launches(instance);
        if objective == Objective::Batch {
            return Schedule::Batch { batches, makespan };
        }
        let (device, start) = batches.iter().map(|batch| (batch.device, batch.start)).unzip();
        Schedule::Latency { device, start, makespan }
    }
}

/// Returns a random split of the queue that all tasks of a group support; `None` if this attempt fails.
fn random_cut(instance: &Instance, group: usize, random: &mut Random) -> Option<Vec<Part>> {
    let members = &instance.groups()[group];
    let mut devices = instance.allowed(members[0]).to_vec();
    random.shuffle(&mut devices);
    let mut parts = Vec::new();
    let mut next = 0;
    for device in devices {
        let left = instance.inputs() - next;
        let runs = |size: &u32| members.iter().all(|task| instance.time_at(*task, device, *size).is_some());
        let sizes: Vec<u32> =
            instance.batch_sizes(device).iter().copied().filter(|size| *size <= left).filter(runs).collect();
        if sizes.is_empty() || (!parts.is_empty() && random.chance(0.3)) {
            continue;
        }
        let size = sizes[random.below(sizes.len())];
        parts.push((device, (next..next + size).collect()));
        next += size;
        if next == instance.inputs() {
            return Some(parts);
        }
    }
    None
}
