//! Memory that devices must have, under both memory models.

use super::Instance;
use crate::model::problem::MemoryModel;
use crate::model::units::{Bytes, Micros};

impl Instance {
    pub fn memory_model(&self) -> MemoryModel {
        self.memory_model
    }

    /// Memory of a device; infinite where nothing is said.
    pub fn capacity_bytes(&self, device: usize) -> Bytes {
        self.capacity[device]
    }

    /// True if devices can hold so much.
    pub(crate) fn fits(&self, held: &[Bytes]) -> bool {
        held.iter().zip(&self.capacity).all(|(held, capacity)| held <= capacity)
    }

    pub fn weight_bytes(&self, task: usize) -> Bytes {
        self.weight[task]
    }

    /// Operands that other tasks compute, for one input.
    pub fn input_bytes(&self, task: usize) -> Bytes {
        self.input[task]
    }

    /// Results, for one input.
    pub fn output_bytes(&self, task: usize) -> Bytes {
        self.output[task]
    }

    /// Scratch memory of a task while it runs, for one input.
    pub fn scratch_bytes(&self, task: usize) -> Bytes {
        self.scratch[task]
    }

    /// Memory that a task takes under the static model (eq. 6): weights once, operands and results
    /// for each input.
    pub fn static_bytes(&self, task: usize, count: u32) -> Bytes {
        self.weight[task] + (self.input[task] + self.output[task]) * f64::from(count)
    }

    /// True if some placement might not fit, under either model. Where it is false, memory can be left out.
    pub fn memory_binds(&self) -> bool {
        (0..self.devices).any(|device| {
            let here = |task: &usize| self.allowed[*task].contains(&device);
            let count = f64::from(self.inputs);
            let most: Bytes = match self.memory_model {
                MemoryModel::Static => {
                    (0..self.tasks).filter(here).map(|task| self.static_bytes(task, self.inputs)).sum()
                }
                MemoryModel::Liveness => {
                    let own = |task: usize| self.weight[task] + self.scratch[task] * count;
                    let tensors: Bytes = self.tensors.iter().map(|tensor| tensor.bytes * count).sum();
                    (0..self.tasks).filter(here).map(own).sum::<Bytes>() + tensors
                }
            };
            most > self.capacity[device]
        })
    }

    /// Memory that each device holds when one input's tasks are placed so: under the static model, without looking at starts.
    pub fn static_use(&self, device: &[usize]) -> Vec<Bytes> {
        let mut held = vec![0.0; self.devices];
        for (task, &device) in device.iter().enumerate() {
            held[device] += self.static_bytes(task, 1);
        }
        held
    }

    /// Peak memory of each device when one input's tasks run so: all weights, and what is alive at the same time.
    ///
    /// A result is alive on its own device from when its task starts until its last reader there has ended and the last
    /// transfer of it is over; a copy of it on another device from when its transfer starts until its last reader there
    /// has ended. Scratch is alive while its task runs.
    pub fn peak_use(&self, device: &[usize], start: &[Micros]) -> Vec<Bytes> {
        let end = |task: usize| start[task] + self.time(task, device[task]).unwrap_or(0.0);
        let mut events: Vec<Vec<Event>> = vec![Vec::new(); self.devices];
        let mut alive = |on: usize, bytes: Bytes, from: Micros, until: Micros| {
            if bytes > 0.0 && until > from {
                events[on].push(Event { time: from, change: bytes });
                events[on].push(Event { time: until, change: -bytes });
            }
        };
        for task in 0..self.tasks {
            alive(device[task], self.scratch[task], start[task], end(task));
        }
        for (index, tensor) in self.tensors.iter().enumerate() {
            let home = device[tensor.producer];
            let done = end(tensor.producer);
            let mut last_reader = vec![None; self.devices];
            for &consumer in &tensor.consumers {
                let last = &mut last_reader[device[consumer]];
                *last = Some(f64::max(last.unwrap_or(done), end(consumer)));
            }
            let mut until = done;
            for (on, last) in last_reader.iter().enumerate() {
                let Some(last) = *last else { continue };
                if on == home {
                    until = until.max(last);
                } else {
                    until = until.max(done + self.transfer(index, home, on));
                    alive(on, tensor.bytes, done, last);
                }
            }
            alive(home, tensor.bytes, start[tensor.producer], until);
        }
        let weights = |on: usize| -> Bytes {
            (0..self.tasks).filter(|task| device[*task] == on).map(|task| self.weight[task]).sum()
        };
        events.into_iter().enumerate().map(|(on, events)| weights(on) + peak(events)).collect()
    }
}

#[derive(Clone, Copy)]
pub(crate) struct Event {
    pub(crate) time: Micros,
    pub(crate) change: Bytes,
}

/// The highest sum along the events; what ends at a time is gone before what begins then.
pub(crate) fn peak(mut events: Vec<Event>) -> Bytes {
    events.sort_by(|a, b| a.time.total_cmp(&b.time).then(a.change.total_cmp(&b.change)));
    let mut held = 0.0;
    let mut highest: Bytes = 0.0;
    for event in events {
        held += event.change;
        highest = highest.max(held);
    }
    highest
}
