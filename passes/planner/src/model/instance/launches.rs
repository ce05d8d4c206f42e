//! Peak memory of devices when a queue runs in batches: liveness over launches.

use std::collections::BTreeMap;

use super::Instance;
use super::memory::{Event, peak};
use crate::model::plan::Batch;
use crate::model::units::{Bytes, Micros};

impl Instance {
    /// Returns the peak memory of each device for the launches of a queue: [`Instance::peak_use`] for several inputs.
    /// Each task runs each input once, and launches at most once on a device.
    pub fn peak_use_of(&self, batches: &[Batch]) -> Vec<Bytes> {
        let count = |batch: &Batch| u32::try_from(batch.inputs.len()).unwrap_or(u32::MAX);
        let end =
            |batch: &Batch| batch.start + self.time_at(batch.node, batch.device, count(batch)).unwrap_or(Micros::ZERO);
        let mut held = vec![Bytes::ZERO; self.devices];
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
            held[batch.device] += self.weight[batch.node];
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
                // By device: end of the copy's last reader, and the inputs that have a copy.
                let mut copies: BTreeMap<usize, (Micros, Vec<bool>)> = BTreeMap::new();
                for &consumer in &tensor.consumers {
                    let mut shared: BTreeMap<usize, u32> = BTreeMap::new();
                    for input in &producer.inputs {
                        *shared.entry(launch_of[consumer * inputs + *input as usize]).or_default() += 1;
                    }
                    for (launch, count) in shared {
                        let reader = &batches[launch];
                        if reader.device == producer.device {
                            until = until.max(end(reader));
                            continue;
                        }
                        until = until.max(done + self.transfer_of(index, producer.device, reader.device, count));
                        let copy = copies.entry(reader.device).or_insert_with(|| (done, vec![false; inputs]));
                        copy.0 = copy.0.max(end(reader));
                        reader.inputs.iter().for_each(|input| copy.1[*input as usize] = true);
                    }
                }
                alive(producer.device, tensor.bytes * producer.inputs.len() as f64, producer.start, until);
                for (device, (last, wanted)) in copies {
                    let moved = producer.inputs.iter().filter(|input| wanted[**input as usize]).count();
                    alive(device, tensor.bytes * moved as f64, done, last);
                }
            }
        }
        events.into_iter().zip(held).map(|(events, weights)| weights + peak(events)).collect()
    }
}
