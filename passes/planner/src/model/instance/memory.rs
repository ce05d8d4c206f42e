//! Memory use of devices, under both memory models.

use super::Instance;
use crate::model::problem::MemoryModel;
use crate::model::units::{Bytes, Micros};

impl Instance {
    /// Returns the memory model.
    pub fn memory_model(&self) -> MemoryModel {
        self.memory_model
    }

    /// Returns the memory of a device; infinite if not given.
    pub fn capacity_bytes(&self, device: usize) -> Bytes {
        self.capacity[device]
    }

    /// Returns true if each device has that much memory.
    pub(crate) fn fits(&self, held: &[Bytes]) -> bool {
        held.iter().zip(&self.capacity).all(|(held, capacity)| held <= capacity)
    }

    /// Returns the size of the parameters of a task.
    pub fn weight_bytes(&self, task: usize) -> Bytes {
        self.weight[task]
    }

    /// Returns the size of the operands that other tasks compute, for one input.
    pub fn input_bytes(&self, task: usize) -> Bytes {
        self.input[task]
    }

    /// Returns the size of the results, for one input.
    pub fn output_bytes(&self, task: usize) -> Bytes {
        self.output[task]
    }

    /// Returns the scratch memory of a task while it runs, for one input.
    pub fn scratch_bytes(&self, task: usize) -> Bytes {
        self.scratch[task]
    }

    /// Returns the memory of a task under the static model (eq. 6): weights once, operands and results for each input.
    pub fn static_bytes(&self, task: usize, count: u32) -> Bytes {
        self.weight[task] + (self.input[task] + self.output[task]) * f64::from(count)
    }

    /// Returns true if some placement might exceed a memory, under either model. If false, memory can be ignored.
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

    /// Returns the memory of each device for a placement of one input's tasks, under the static model.
    pub fn static_use(&self, device: &[usize]) -> Vec<Bytes> {
        let mut held = vec![Bytes::ZERO; self.devices];
        for (task, &device) in device.iter().enumerate() {
            held[device] += self.static_bytes(task, 1);
        }
        held
    }

    /// Returns the peak memory of each device for a schedule of one input: all weights, and all live tensors.
    ///
    /// A result is live on its own device from the start of its task to the end of its last reader there and of its last
    /// transfer; a copy of it on another device from the start of its transfer to the end of its last reader there.
    /// Scratch is live while its task runs.
    pub fn peak_use(&self, device: &[usize], start: &[Micros]) -> Vec<Bytes> {
        let end = |task: usize| start[task] + self.time(task, device[task]).unwrap_or(Micros::ZERO);
        let mut events: Vec<Vec<Event>> = vec![Vec::new(); self.devices];
        let mut alive = |on: usize, bytes: Bytes, from: Micros, until: Micros| {
            if bytes > Bytes::ZERO && until > from {
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
                *last = Some(Micros::max(last.unwrap_or(done), end(consumer)));
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

/// Returns the maximum prefix sum of the events; at the same time, decreases precede increases.
pub(crate) fn peak(mut events: Vec<Event>) -> Bytes {
    events.sort_by(|a, b| a.time.total_cmp(&b.time).then(a.change.total_cmp(&b.change)));
    let mut held = Bytes::ZERO;
    let mut highest = Bytes::ZERO;
    for event in events {
        held += event.change;
        highest = highest.max(held);
    }
    highest
}
