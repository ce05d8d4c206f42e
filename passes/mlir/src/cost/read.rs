//! Reads the costs of a module, whether from `divi-annotate-cost` or written by hand.

use super::{source::counts, work::Traffic};
use crate::{
    ir::{Failure, describe, error},
    tasks::{Tasks, entry, task_kind, task_name},
};
use divi_cost::TimeSource;
use divi_dialect::{BatchCost, Operation, attr, op};

/// Device that a module declares.
pub(super) struct Device {
    pub(super) name: String,
    pub(super) kind: String,
    pub(super) memory_bytes: u64,
    pub(super) streams_weights: bool,
    /// At least one, in increasing order.
    pub(super) batch_sizes: Vec<u32>,
    /// Cluster node that the device is part of.
    pub(super) node: Option<i64>,
    /// Number of tasks by the source of their times, if the module has them.
    pub(super) sources: Option<Vec<(TimeSource, i64)>>,
}

/// Task with its costs.
pub(super) struct TaskCost<'a> {
    pub(super) operation: Operation<'a>,
    pub(super) name: &'a str,
    pub(super) kind: &'a str,
    pub(super) flops: u64,
    pub(super) input_bytes: u64,
    pub(super) output_bytes: u64,
    pub(super) weight_bytes: u64,
    /// Part of the weights that is read: of a lookup table, some rows.
    pub(super) read_weight_bytes: u64,
    pub(super) scratch_bytes: u64,
    /// Limiting resource on each device.
    pub(super) bounds: Vec<Option<&'a str>>,
    times: Vec<BatchCost>,
}

/// Devices of a module, and the costs of its tasks on them.
pub(super) struct Costs<'a> {
    pub(super) devices: Vec<Device>,
    pub(super) tasks: Vec<TaskCost<'a>>,
    pub(super) function: Tasks<'a>,
}

impl Costs<'_> {
    /// Returns the time of a task on a device at a batch size, in µs.
    pub(super) fn at(&self, task: usize, device: usize, batch: u32) -> Option<f64> {
        let name = &self.devices[device].name;
        let times = &self.tasks[task].times;
        times.iter().find(|cost| cost.batch == i64::from(batch) && &cost.device == name).map(|cost| cost.micros)
    }

    /// Returns the time at the device's smallest batch size, in µs.
    pub(super) fn first(&self, task: usize, device: usize) -> Option<f64> {
        self.at(task, device, *self.devices[device].batch_sizes.first()?)
    }

    /// Returns the time per input on the device that is fastest at its smallest batch size, in µs.
    pub(super) fn best(&self, task: usize) -> Option<f64> {
        let of =
            |device: usize| Some(self.first(task, device)? / f64::from(*self.devices[device].batch_sizes.first()?));
        (0..self.devices.len()).filter_map(of).min_by(f64::total_cmp)
    }
}

/// Reads the `divi.device` operations of a module.
pub(super) fn devices(module: Operation<'_>) -> Vec<Device> {
    let sources = module.get(attr::COSTS);
    let of = |operation: Operation<'_>| {
        let name = operation.symbol_name().unwrap_or_default();
        let kind = operation.get(attr::KIND).unwrap_or_default();
        let memory = operation.attribute("memory").and_then(attr::as_integer).unwrap_or(0);
        let sizes = operation.attribute("batch_sizes").and_then(attr::as_array).unwrap_or_default();
        let mut batch_sizes: Vec<u32> =
            sizes.into_iter().filter_map(attr::as_integer).filter_map(|size| u32::try_from(size).ok()).collect();
        batch_sizes.sort_unstable();
        batch_sizes.dedup();
        if batch_sizes.is_empty() {
            batch_sizes.push(1);
        }
        let counted = sources.and_then(|sources| attr::entry(sources, name));
        let sources = counted.map(counts).filter(|counts| !counts.is_empty());
        Device {
            name: name.to_owned(),
            kind: kind.to_owned(),
            memory_bytes: memory.max(0) as u64,
            streams_weights: operation.attribute("weights").and_then(attr::as_string) == Some("streamed"),
            batch_sizes,
            node: operation.attribute("node").and_then(attr::as_integer),
            sources,
        }
    };
    module.children().into_iter().filter(|operation| operation.name() == op::DEVICE).map(of).collect()
}

/// Reads the attributes of `divi-annotate-cost`. Errors are emitted on the operations.
pub(super) fn read(module: Operation<'_>) -> Result<Costs<'_>, Failure> {
    let devices = devices(module);
    if devices.is_empty() {
        error(module, "has no divi.device: run divi-annotate-cost first, which declares those of a system");
        return Err(Failure);
    }
    let function = Tasks::of(entry(module)?)?;
    let mut tasks = vec![];
    for &operation in &function.operations {
        let Some(cost) = operation.get(attr::COST) else {
            error(operation, &format!("{} has no divi.cost: run divi-annotate-cost first", describe(operation)));
            return Err(Failure);
        };
        let number = |key| operation.get(key).map(|value: i64| u64::try_from(value).unwrap_or(0));
        // Hand-written costs may lack bytes, which follow from the types.
        let traffic = Traffic::of(operation);
        let bounds = operation.get(attr::BOUND);
        let bound =
            |device: &Device| bounds.and_then(|bounds| attr::entry(bounds, &device.name)).and_then(attr::as_string);
        let weight_bytes = number(attr::WEIGHT_BYTES).unwrap_or(traffic.weight);
        tasks.push(TaskCost {
            operation,
            name: task_name(operation),
            kind: task_kind(operation),
            flops: number(attr::FLOPS).unwrap_or(0),
            input_bytes: number(attr::INPUT_BYTES).unwrap_or(traffic.input),
            output_bytes: number(attr::OUTPUT_BYTES).unwrap_or(traffic.output),
            weight_bytes,
            read_weight_bytes: number(attr::READ_WEIGHT_BYTES).map_or(weight_bytes, |read| read.min(weight_bytes)),
            scratch_bytes: number(attr::SCRATCH_BYTES).unwrap_or(0),
            bounds: devices.iter().map(bound).collect(),
            times: cost.entries(),
        });
    }
    Ok(Costs { devices, tasks, function })
}
