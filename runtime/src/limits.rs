//! Check of a bundle's memory demand against the available memory: sizes in a description are not trusted.

use crate::{
    bundle::{Bundle, Source},
    error::{Error, Result},
    footprint::MemoryUse,
    hal::{MemorySpace, Properties},
    prepare::Expression,
};
use std::fs;

/// Returns the bytes that this process can still allocate; `None` if the system does not report it.
pub(crate) fn available_memory() -> Option<u64> {
    let text = fs::read_to_string("/proc/meminfo").ok()?;
    let kib = |name: &str| {
        text.lines().find_map(|line| line.strip_prefix(name)?.split_whitespace().next()?.parse::<u64>().ok())
    };
    let system = kib("MemAvailable:")?.saturating_add(kib("SwapFree:").unwrap_or(0)).saturating_mul(1024);
    // Limit of the process's control group.
    let number = |name: &str| fs::read_to_string(format!("/sys/fs/cgroup/{name}")).ok()?.trim().parse::<u64>().ok();
    let left = number("memory.max").map(|most| most.saturating_sub(number("memory.current").unwrap_or(0)));
    let reclaimable = || {
        let text = fs::read_to_string("/sys/fs/cgroup/memory.stat").ok()?;
        text.lines().find_map(|line| line.strip_prefix("inactive_file ")?.trim().parse::<u64>().ok())
    };
    Some(left.map_or(system, |left| system.min(left.saturating_add(reclaimable().unwrap_or(0)))))
}

/// Rejects a bundle that needs more host memory than is available, before any is allocated. If `is_mapped`, constants in files
/// need no memory.
pub(crate) fn check(
    bundle: &Bundle,
    properties: &[Properties],
    in_flight: usize,
    usual: usize,
    is_mapped: bool,
) -> Result<()> {
    let Some(available) = available_memory() else { return Ok(()) };
    let mut constants = 0_u64;
    for (index, constant) in bundle.constants.iter().enumerate() {
        let (bytes, largest) = match &constant.source {
            Source::Evaluated(expression) => (constant.bytes, largest(expression)),
            Source::Packed { .. } | Source::File { .. } if is_mapped => (0, 0),
            Source::Computed | Source::Packed { .. } | Source::File { .. } => (constant.bytes, constant.bytes),
        };
        if largest > available {
            return Err(Error::Memory { what: format!("constant {index}"), bytes: largest });
        }
        constants = constants.saturating_add(bytes);
    }
    if constants > available {
        return Err(Error::Memory { what: "all constants".into(), bytes: constants });
    }
    let needed = |requests: usize| {
        let planned = MemoryUse::planned(bundle, Some(requests));
        let on_host = properties.iter().zip(&planned).filter(|(device, _)| device.memory == MemorySpace::Host);
        let values = on_host.map(|(_, used)| used.arena.saturating_add(used.values)).fold(0, u64::saturating_add);
        values.saturating_add(slot_bytes(bundle).saturating_mul(requests as u64)).saturating_add(constants)
    };
    let bytes = needed(in_flight);
    if bytes > available {
        return Err(match in_flight > usual {
            true => Error::InFlight { requests: in_flight, bytes, available },
            false => Error::Memory { what: "arenas and values".into(), bytes },
        });
    }
    // More requests in flight than planned must fit into the planned memory of each device.
    for (device, used) in bundle.devices.iter().zip(MemoryUse::planned(bundle, Some(in_flight))) {
        if in_flight > usual && used.total() > device.memory {
            return Err(Error::InFlight { requests: in_flight, bytes: used.total(), available: device.memory });
        }
    }
    Ok(())
}

/// Returns the size of the largest subexpression in bytes.
fn largest(expression: &Expression) -> u64 {
    let own = expression.length().unwrap_or(u64::MAX);
    expression.parts().into_iter().map(largest).fold(own, u64::max)
}

/// Estimates the bytes of a slot in addition to its values: pointers, counters, queue entries, outputs.
fn slot_bytes(bundle: &Bundle) -> u64 {
    let of_stage = |stage: usize| bundle.stages[stage].calls.iter().map(|call| call.buffers.len()).sum::<usize>();
    let buffers: usize = bundle.steps.iter().map(|step| step.action.stage().map_or(0, of_stage)).sum();
    let outputs = bundle.outputs.iter().map(|port| bundle.values[port.value].tensor.bytes).fold(0, u64::saturating_add);
    1024 + 8 * (buffers + bundle.values.len()) as u64 + 64 * bundle.steps.len() as u64 + outputs
}
