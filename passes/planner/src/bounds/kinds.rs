//! Kinds of equal tasks: the same times and memory on every device.

use std::collections::BTreeMap;

use crate::model::instance::Instance;
use crate::model::units::Micros;

/// Kinds of equal tasks. What depends on times and memory alone is computed once for each.
pub(super) struct Kinds {
    /// One task of each kind.
    pub(super) example: Vec<usize>,
    /// Kind of each task.
    pub(super) of: Vec<usize>,
}

impl Kinds {
    /// Compares the times of tasks on some devices.
    pub(super) fn on(instance: &Instance, devices: &[usize]) -> Self {
        let bits = |time: Option<Micros>| time.unwrap_or(Micros::INFINITY).0.to_bits();
        let mut kinds: BTreeMap<Vec<u64>, usize> = BTreeMap::new();
        let mut example = Vec::new();
        let mut of = Vec::with_capacity(instance.tasks());
        for task in 0..instance.tasks() {
            let times = devices.iter().flat_map(|device| {
                let sizes = instance.batch_sizes(*device).iter();
                sizes.map(move |size| bits(instance.time_at(task, *device, *size)))
            });
            let held = [instance.static_bytes(task, 0), instance.static_bytes(task, 1)].map(|bytes| bytes.0.to_bits());
            let kind = *kinds.entry(times.chain(held).collect()).or_insert_with(|| {
                example.push(task);
                example.len() - 1
            });
            of.push(kind);
        }
        Self { example, of }
    }

    /// Compares the times of tasks on all devices.
    pub(super) fn new(instance: &Instance) -> Self {
        Self::on(instance, &(0..instance.devices()).collect::<Vec<_>>())
    }

    /// Returns a value for each task, computed once for each kind.
    pub(super) fn map<T: Copy>(&self, value: impl Fn(usize) -> T) -> Vec<T> {
        let values: Vec<T> = self.example.iter().map(|task| value(*task)).collect();
        self.of.iter().map(|kind| values[*kind]).collect()
    }
}
