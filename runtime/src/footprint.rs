//! How much memory devices need.

use crate::{
    bundle::{Bundle, Call, Mode},
    layout::Layout,
};
use std::collections::HashSet;

/// How a device's memory is used, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemoryUse {
    /// Constants that its stages read, but for those that stay on the host.
    pub weights: u64,
    pub arena: u64,
    /// Values between stages, of all requests in flight.
    pub values: u64,
}

impl MemoryUse {
    /// What each device of a sound bundle needs with as many requests in flight, or as many as is usual.
    pub fn planned(bundle: &Bundle, in_flight: Option<usize>) -> Vec<Self> {
        let values = Layout::new(bundle, &bundle.dependencies()).bytes;
        let in_flight = in_flight.unwrap_or_else(|| usual_in_flight(bundle)) as u64;
        let each = weight_bytes(bundle).into_iter().zip(arena_bytes(bundle)).zip(values);
        let in_all = |values: u64| values.saturating_mul(in_flight);
        each.map(|((weights, arena), values)| Self { weights, arena, values: in_all(values) }).collect()
    }

    pub fn total(&self) -> u64 {
        self.weights.saturating_add(self.arena).saturating_add(self.values)
    }
}

/// One in each stage of a pipeline, and one that comes in meanwhile; else one at a time.
pub(crate) fn usual_in_flight(bundle: &Bundle) -> usize {
    if bundle.objective.mode == Mode::Pipeline { bundle.stages.len() + 1 } else { 1 }
}

/// The arena that each device needs for the largest of its stages.
pub(crate) fn arena_bytes(bundle: &Bundle) -> Vec<u64> {
    let mut bytes = vec![0; bundle.devices.len()];
    for stage in &bundle.stages {
        bytes[stage.device] = stage.arena.max(bytes[stage.device]);
    }
    bytes
}

/// The bytes of the constants that each device reads.
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
