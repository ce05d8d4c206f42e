//! Devices that take turns at a block: equal for its tasks.

use std::collections::BTreeSet;

use crate::model::error::Finding;
use crate::model::problem::Problem;
use crate::model::units::{BytesPerMicro, Micros};

/// Returns the time of a launch of a node, and checks that each device may run it, in the same time.
pub(super) fn time(
    problem: &Problem,
    node: usize,
    devices: &[usize],
    batch: u32,
    findings: &mut Vec<Finding>,
) -> Micros {
    let label = problem.node_label(node);
    let mut times = Vec::new();
    for &on in devices {
        if let Some(pin) = problem.nodes[node].pin.filter(|pin| *pin != on) {
            let message = format!("is on {}, but is pinned to {}", problem.device_label(on), problem.device_label(pin));
            findings.push(Finding::new(label.clone(), message));
            continue;
        }
        let time = problem.nodes[node].time.get(&batch).and_then(|times| times[on]);
        match time.filter(|_| problem.devices[on].batch_sizes.contains(&batch)) {
            Some(time) => times.push(time),
            None => {
                let inputs = if batch == 1 { "one input".to_owned() } else { format!("batches of {batch}") };
                let message = format!("is on {}, which does not run {inputs} of it", problem.device_label(on));
                findings.push(Finding::new(label.clone(), message));
            }
        }
    }
    if times.windows(2).any(|pair| pair[0] != pair[1]) {
        let message = "takes different times on the devices of its block, which must be equal";
        findings.push(Finding::new(label, message));
    }
    times.first().copied().unwrap_or_default()
}

/// Checks that the devices of each block have the same memory and batch sizes, and the same links to the devices of all
/// other blocks.
pub(super) fn check_equal(problem: &Problem, blocks: &[Vec<usize>], findings: &mut Vec<Finding>) {
    let used: BTreeSet<usize> = blocks.iter().flatten().copied().collect();
    for (of, devices) in blocks.iter().enumerate() {
        for pair in devices.windows(2) {
            let others = used.iter().copied().filter(|other| !devices.contains(other));
            if let Some(what) = difference(problem, pair[0], pair[1], others) {
                let (one, other) = (problem.device_label(pair[0]), problem.device_label(pair[1]));
                let message = format!("block {of} is on {one} and {other}, which have different {what}");
                findings.push(Finding::new("block_devices", message));
            }
        }
    }
}

/// Returns the difference between two devices.
fn difference(problem: &Problem, a: usize, b: usize, others: impl Iterator<Item = usize>) -> Option<&'static str> {
    let (one, other) = (&problem.devices[a], &problem.devices[b]);
    if one.memory != other.memory {
        return Some("memory");
    }
    let sizes = |device: usize| problem.devices[device].batch_sizes.iter().copied().collect::<BTreeSet<u32>>();
    if sizes(a) != sizes(b) {
        return Some("batch sizes");
    }
    for third in others {
        if link(problem, a, third) != link(problem, b, third) || link(problem, third, a) != link(problem, third, b) {
            return Some("links to other devices of the pipeline");
        }
    }
    None
}

/// Returns bandwidth and latency of a link.
fn link(problem: &Problem, from: usize, to: usize) -> (Option<BytesPerMicro>, Micros) {
    let latency = problem.link_latency.as_ref().and_then(|latency| latency[from][to]);
    (problem.bandwidth[from][to], latency.unwrap_or_default())
}
