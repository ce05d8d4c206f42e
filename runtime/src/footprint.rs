//! Memory use of devices.

use crate::{
    bundle::{Bundle, Call, Device, Mode},
    layout::MemoryPlan,
};
use std::collections::HashSet;

/// Memory use of a device, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemoryUse {
    /// Constants of its stages and values, without those that stay in host memory.
    pub weights: u64,
    /// Intermediate values within stages.
    pub arena: u64,
    /// Values between stages, of all requests in flight.
    pub values: u64,
}

impl MemoryUse {
    /// Returns the memory use of each device of a valid bundle; `in_flight` defaults to the plan's number of requests in
    /// flight.
    pub fn planned(bundle: &Bundle, in_flight: Option<usize>) -> Vec<Self> {
        let in_flight = in_flight.unwrap_or_else(|| default_in_flight(bundle));
        let values = memory_plan(bundle, in_flight).bytes;
        let each = weight_bytes(bundle).into_iter().zip(arena_bytes(bundle)).zip(values);
        let in_all = |values: u64| values.saturating_mul(in_flight as u64);
        each.map(|((weights, arena), values)| Self { weights, arena, values: in_all(values) }).collect()
    }

    /// Returns the sum.
    pub fn total(&self) -> u64 {
        self.weights.saturating_add(self.arena).saturating_add(self.values)
    }
}

/// Plans the memory of the values of a request. The order of steps is used on devices whose memory does not suffice for the
/// requests in flight otherwise, unless they stream their weights.
pub(crate) fn memory_plan(bundle: &Bundle, in_flight: usize) -> MemoryPlan {
    let each = bundle.devices.iter().zip(weight_bytes(bundle)).zip(arena_bytes(bundle));
    let available = |((device, weights), arena): ((&Device, u64), u64)| {
        let left = device.memory.saturating_sub(weights).saturating_sub(arena) / in_flight.max(1) as u64;
        Some(left).filter(|_| device.memory > 0 && !device.streams_weights)
    };
    MemoryPlan::new(bundle, &bundle.dependencies(), &each.map(available).collect::<Vec<_>>())
}

/// Returns the default number of requests in flight: one per stage of a pipeline, plus one that is being admitted; otherwise 1. Messages
/// between hosts are like stages: there is one more request for each pair of hosts with transfers, as far as the memory of all devices
/// suffices.
pub(crate) fn default_in_flight(bundle: &Bundle) -> usize {
    if bundle.objective.mode != Mode::Pipeline {
        return 1;
    }
    let fits = |requests: &usize| {
        let used = MemoryUse::planned(bundle, Some(*requests));
        used.iter().zip(&bundle.devices).all(|(used, device)| used.total() <= device.memory)
    };
    let least = bundle.stages.len() + 1;
    (least + 1..=least + bundle.host_pairs().len()).rev().find(fits).unwrap_or(least)
}

/// Returns the size of each device's arena: the maximum over its stages.
pub(crate) fn arena_bytes(bundle: &Bundle) -> Vec<u64> {
    let mut bytes = vec![0; bundle.devices.len()];
    for stage in &bundle.stages {
        bytes[stage.device] = stage.arena.max(bytes[stage.device]);
    }
    bytes
}

/// Returns the bytes of the constants that each device holds.
fn weight_bytes(bundle: &Bundle) -> Vec<u64> {
    let mut used: Vec<HashSet<usize>> = vec![HashSet::new(); bundle.devices.len()];
    for stage in &bundle.stages {
        let calls = stage.calls.iter().filter(|call| !stage.reads_on_host(call));
        used[stage.device].extend(calls.flat_map(Call::constants).chain(stage.constants.iter().copied()));
    }
    for value in &bundle.values {
        used[value.device].extend(value.constant);
    }
    let bytes = |used: &HashSet<usize>| {
        used.iter().map(|&constant| bundle.constants[constant].bytes).fold(0, u64::saturating_add)
    };
    used.iter().map(bytes).collect()
}
