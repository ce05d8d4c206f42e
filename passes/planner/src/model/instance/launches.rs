//! Peak memory of devices when a queue runs in batches: liveness over launches.

use std::collections::BTreeMap;
use std::mem;

use super::Instance;
use super::memory::{Event, peak};
use crate::model::plan::Batch;
use crate::model::problem::MemoryModel;
use crate::model::units::{Bytes, Micros};

impl Instance {
    /// Returns true if the launches of a queue fit into memory.
    pub fn fits_launches(&self, launches: &[Batch]) -> bool {
        let held: Vec<Bytes> = match self.memory_model() {
            MemoryModel::Static => {
                // The weights of a task are on a device once, however often it is launched there.
                let mut inputs_on: BTreeMap<(usize, usize), u32> = BTreeMap::new();
                for launch in launches {
                    *inputs_on.entry((launch.node, launch.device)).or_default() += launch.inputs.len() as u32;
                }
                let mut held = vec![Bytes::ZERO; self.devices];
                inputs_on.iter().for_each(|(&(task, on), count)| held[on] += self.static_bytes(task, *count));
                held
            }
            MemoryModel::Liveness => self.peak_use_of(launches),
        };
        self.fits(&held)
    }

    /// Returns the peak memory of each device for the launches of a queue: [`Instance::peak_use`] for several inputs.
    /// Each task runs each input once.
    pub fn peak_use_of(&self, batches: &[Batch]) -> Vec<Bytes> {
        let count = |batch: &Batch| u32::try_from(batch.inputs.len()).unwrap_or(u32::MAX);
        let end =
            |batch: &Batch| batch.start + self.time_at(batch.node, batch.device, count(batch)).unwrap_or(Micros::ZERO);
        let mut held = vec![Bytes::ZERO; self.devices];
        let mut has_weights = vec![false; self.tasks * self.devices];
        let mut events: Vec<Vec<Event>> = vec![Vec::new(); self.devices];
        let mut alive = |on: usize, bytes: Bytes, from: Micros, until: Micros| {
            if bytes > Bytes::ZERO && until > from {
                events[on].push(Event { time: from, change: bytes });
                events[on].push(Event { time: until, change: -bytes });
            }
        };
        // Launch of each task that runs each input.
        let inputs = self.inputs as usize;
        let mut launch_of = vec![usize::MAX; self.tasks * inputs];
        let mut launches: Vec<Vec<usize>> = vec![Vec::new(); self.tasks];
        for (index, batch) in batches.iter().enumerate() {
            if !mem::replace(&mut has_weights[batch.node * self.devices + batch.device], true) {
                held[batch.device] += self.weight[batch.node];
            }
            alive(batch.device, self.scratch[batch.node] * f64::from(count(batch)), batch.start, end(batch));
            launches[batch.node].push(index);
            for input in &batch.inputs {
                launch_of[batch.node * inputs + *input as usize] = index;
            }
        }
        for (index, tensor) in self.tensors.iter().enumerate() {
            for producer in launches[tensor.producer].iter().map(|launch| &batches[*launch]) {
                let done = end(producer);
                let mut until = done;
                // By device: end of the copy's last reader, and which of the producer's inputs have a copy.
                let mut copies: BTreeMap<usize, (Micros, Vec<bool>)> = BTreeMap::new();
                for &consumer in &tensor.consumers {
                    let mut shared: BTreeMap<usize, u32> = BTreeMap::new();
                    for (place, input) in producer.inputs.iter().enumerate() {
                        let launch = launch_of[consumer * inputs + *input as usize];
                        *shared.entry(launch).or_default() += 1;
                        let reader = &batches[launch];
                        if reader.device != producer.device {
                            let copy = copies.entry(reader.device);
                            copy.or_insert_with(|| (done, vec![false; producer.inputs.len()])).1[place] = true;
                        }
                    }
                    for (launch, count) in shared {
                        let reader = &batches[launch];
                        match copies.get_mut(&reader.device) {
                            Some(copy) => {
                                until =
                                    until.max(done + self.transfer_of(index, producer.device, reader.device, count));
                                copy.0 = copy.0.max(end(reader));
                            }
                            None => until = until.max(end(reader)),
                        }
                    }
                }
                alive(producer.device, tensor.bytes * producer.inputs.len() as f64, producer.start, until);
                for (device, (last, is_copied)) in copies {
                    let copied = is_copied.into_iter().filter(|is_copied| *is_copied).count();
                    alive(device, tensor.bytes * copied as f64, done, last);
                }
            }
        }
        events.into_iter().zip(held).map(|(events, weights)| weights + peak(events)).collect()
    }
}
