//! List scheduling of a queue: the inputs of each task are split into at most one batch per device.

pub(super) mod priced;
mod split;

use std::time::Instant;

use super::memory::fitting;
use super::{Rule, Timeline};
use crate::model::error::Error;
use crate::model::instance::{Arc, Instance};
use crate::model::plan::{Batch, Schedule};
use crate::model::problem::MemoryModel;
use crate::model::units::{Bytes, Micros};
use crate::solvers::placement::Placement;

use split::Piece;

/// Schedules tasks in the rule's order. If a task is left without a feasible split, the whole queue is scheduled as one
/// batch per task on any placement that fits.
pub(super) fn schedule(instance: &Instance, rule: &Rule) -> Result<Schedule, Error> {
    let attempt = |share: f64| match choose(instance, rule, share) {
        Some(state) => Ok(state),
        None if is_late(rule.effort.deadline) => Err(Error::NotFound("a list scheduler had no time left".to_owned())),
        None => unsplit(instance, rule, &Placement::any(instance, share, rule.effort.share)?)
            .ok_or_else(|| Error::Bug("a placement was found with values that no link moves".to_owned())),
    };
    let state = fitting(instance, attempt, |state| instance.peak_use_of(&state.batches()))?;
    Ok(Schedule::Batch { batches: state.batches(), makespan: makespan_of(&state) })
}

/// Returns true after a deadline.
fn is_late(deadline: Option<Instant>) -> bool {
    deadline.is_some_and(|deadline| Instant::now() >= deadline)
}

fn makespan_of(state: &State) -> Micros {
    state.launches.iter().flatten().map(|launch| launch.end).fold(Micros::ZERO, Micros::max)
}

/// Splits the queue of each task in turn; `None` if the queue of some task cannot be split.
fn choose(instance: &Instance, rule: &Rule, share: f64) -> Option<State> {
    let mut state = State::new(instance, rule);
    let mut room = FreeMemory::new(instance, share);
    for &task in &rule.order {
        if is_late(rule.effort.deadline) {
            return None;
        }
        let group = instance.group_of(task);
        if state.parts[group].is_none() {
            let pieces = state.pieces(instance, task, &room, rule);
            let chosen = split::choose(&pieces, instance.inputs(), rule.choice)?;
            room.take(group, &chosen);
            state.parts[group] = Some(state.deal(instance, task, &chosen));
        }
        state.launch(instance, task)?;
    }
    Some(state)
}

/// Schedules one unsplit batch per task, in the rule's order.
fn unsplit(instance: &Instance, rule: &Rule, device: &[usize]) -> Option<State> {
    let mut state = State::new(instance, rule);
    for &task in &rule.order {
        state.parts[instance.group_of(task)] =
            Some(vec![Part { device: device[task], inputs: (0..instance.inputs()).collect() }]);
        state.launch(instance, task)?;
    }
    Some(state)
}

/// Returns the number of `inputs` that are also in `others`, which is sorted.
pub(super) fn overlap(inputs: &[u32], others: &[u32]) -> u32 {
    inputs.iter().filter(|input| others.binary_search(input).is_ok()).count() as u32
}

struct Launch {
    device: usize,
    inputs: Vec<u32>,
    start: Micros,
    end: Micros,
}

/// Inputs of a queue that run on one device.
#[derive(Clone)]
struct Part {
    device: usize,
    inputs: Vec<u32>,
}

/// Partial schedule.
struct State {
    /// By task.
    launches: Vec<Vec<Launch>>,
    /// By group: inputs of each device. Co-located tasks share the device for each input.
    parts: Vec<Option<Vec<Part>>>,
    timeline: Timeline,
}

impl State {
    fn new(instance: &Instance, rule: &Rule) -> Self {
        Self {
            launches: (0..instance.tasks()).map(|_| Vec::new()).collect(),
            parts: vec![None; instance.groups().len()],
            timeline: Timeline::new(instance.devices(), rule.insertion),
        }
    }

    fn batches(&self) -> Vec<Batch> {
        let batch = |node: usize, launch: &Launch| Batch {
            node,
            device: launch.device,
            inputs: launch.inputs.clone(),
            start: launch.start,
        };
        let of_task = |(task, launches): (usize, &Vec<Launch>)| -> Vec<Batch> {
            launches.iter().map(|launch| batch(task, launch)).collect()
        };
        self.launches.iter().enumerate().flat_map(of_task).collect()
    }

    /// Returns candidate batches of a task by device: every size that its group can run and that fits, with a
    /// pessimistic finish time for which operands come from the farthest device.
    fn pieces(&self, instance: &Instance, task: usize, room: &FreeMemory<'_>, rule: &Rule) -> Vec<Vec<Piece>> {
        let group = instance.group_of(task);
        let members = &instance.groups()[group];
        let on = |device: usize| -> Vec<Piece> {
            let sizes = instance.batch_sizes(device).iter().copied();
            let runs = |size: &u32| members.iter().all(|member| instance.time_at(*member, device, *size).is_some());
            sizes
                .filter(runs)
                .filter(|size| room.fits(group, device, *size))
                .filter_map(|size| {
                    let ready = self.latest_arrival(instance, task, device, size);
                    let time = instance.time_at(task, device, size)?;
                    let end = self.timeline.earliest(device, ready, time) + time;
                    end.is_finite().then(|| Piece { device, size, end, key: rule.choice.key(device, time, end) })
                })
                .collect()
        };
        (0..instance.devices()).map(on).filter(|pieces| !pieces.is_empty()).collect()
    }

    /// Returns an upper bound on the arrival time of operands for `size` inputs on a device, over all choices of
    /// inputs.
    fn latest_arrival(&self, instance: &Instance, task: usize, device: usize, size: u32) -> Micros {
        let mut latest = Micros::ZERO;
        for arc in instance.predecessors(task) {
            for launch in &self.launches[arc.task] {
                let count = size.min(launch.inputs.len() as u32);
                latest = latest.max(launch.end + instance.transfer_of(arc.tensor, launch.device, device, count));
            }
        }
        latest
    }

    /// Assigns inputs to the batches of a task, each to the device that holds most of its operands' bytes.
    fn deal(&self, instance: &Instance, task: usize, chosen: &[Piece]) -> Vec<Part> {
        let inputs = instance.inputs() as usize;
        let mut bytes_at = vec![Bytes::ZERO; inputs * instance.devices()];
        for arc in instance.predecessors(task) {
            for launch in &self.launches[arc.task] {
                for input in &launch.inputs {
                    let bytes = instance.tensors()[arc.tensor].bytes;
                    bytes_at[*input as usize * instance.devices() + launch.device] += bytes;
                }
            }
        }
        let mut preferences: Vec<(Bytes, u32, usize)> = Vec::with_capacity(inputs * chosen.len());
        for input in 0..instance.inputs() {
            for (index, piece) in chosen.iter().enumerate() {
                preferences.push((bytes_at[input as usize * instance.devices() + piece.device], input, index));
            }
        }
        // The sort is stable: ties keep the order of inputs, then of batches.
        preferences.sort_by(|a, b| b.0.total_cmp(&a.0));
        let mut parts: Vec<Part> =
            chosen.iter().map(|piece| Part { device: piece.device, inputs: Vec::new() }).collect();
        let mut dealt = vec![false; inputs];
        for (_, input, index) in preferences {
            let part = &mut parts[index].inputs;
            if !dealt[input as usize] && part.len() < chosen[index].size as usize {
                dealt[input as usize] = true;
                part.push(input);
            }
        }
        for part in &mut parts {
            part.inputs.sort_unstable();
        }
        parts
    }

    /// Schedules a task on its group's devices as early as operands and devices allow; `None` if a link is missing.
    fn launch(&mut self, instance: &Instance, task: usize) -> Option<()> {
        let parts = self.parts[instance.group_of(task)].clone()?;
        for Part { device, inputs } in parts {
            let arrival = |arc: &Arc| self.arrival(instance, arc, device, &inputs);
            let ready = instance.predecessors(task).iter().map(arrival).fold(Micros::ZERO, Micros::max);
            let time = instance.time_at(task, device, inputs.len() as u32)?;
            let start = self.timeline.earliest(device, ready, time);
            if start.is_infinite() {
                return None;
            }
            self.timeline.take(device, start, start + time);
            self.launches[task].push(Launch { device, inputs, start, end: start + time });
        }
        Some(())
    }

    /// Returns the time at which one operand of these inputs is on a device.
    fn arrival(&self, instance: &Instance, arc: &Arc, device: usize, inputs: &[u32]) -> Micros {
        let from = |launch: &Launch| {
            let count = overlap(&launch.inputs, inputs);
            let moving = instance.transfer_of(arc.tensor, launch.device, device, count);
            if count == 0 { Micros::ZERO } else { launch.end + moving }
        };
        self.launches[arc.task].iter().map(from).fold(Micros::ZERO, Micros::max)
    }
}

/// Free memory of each device. Memory of groups that can run on one device only is reserved up front.
struct FreeMemory<'a> {
    instance: &'a Instance,
    share: f64,
    left: Vec<Bytes>,
    reserved: Vec<bool>,
}

impl<'a> FreeMemory<'a> {
    fn new(instance: &'a Instance, share: f64) -> Self {
        let left = (0..instance.devices()).map(|device| instance.capacity_bytes(device)).collect();
        let mut room = Self { instance, share, left, reserved: vec![false; instance.groups().len()] };
        for (group, members) in instance.groups().iter().enumerate() {
            if let [device] = instance.allowed(members[0]) {
                let bytes = room.bytes(group, instance.inputs());
                room.left[*device] -= bytes;
                room.reserved[group] = true;
            }
        }
        room
    }

    fn bytes(&self, group: usize, count: u32) -> Bytes {
        self.instance.groups()[group].iter().map(|task| self.task_bytes(*task, count)).sum()
    }

    fn task_bytes(&self, task: usize, count: u32) -> Bytes {
        let instance = self.instance;
        match instance.memory_model() {
            MemoryModel::Static => instance.static_bytes(task, count),
            MemoryModel::Liveness => {
                let touched = instance.input_bytes(task) + instance.output_bytes(task) + instance.scratch_bytes(task);
                instance.weight_bytes(task) + self.share * touched * f64::from(count)
            }
        }
    }

    fn fits(&self, group: usize, device: usize, count: u32) -> bool {
        self.reserved[group] || self.bytes(group, count) <= self.left[device]
    }

    fn take(&mut self, group: usize, chosen: &[Piece]) {
        chosen.iter().for_each(|piece| self.take_one(group, piece.device, piece.size));
    }

    fn take_one(&mut self, group: usize, device: usize, count: u32) {
        if !self.reserved[group] {
            let bytes = self.bytes(group, count);
            self.left[device] -= bytes;
        }
    }
}
