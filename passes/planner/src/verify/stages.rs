//! Pipelines whose blocks have devices: the time of the slowest device, or of the slowest link.

use std::collections::{BTreeMap, BTreeSet};

use super::tensors::Values;
use super::{Judged, exceeds};
use crate::model::error::Finding;
use crate::model::options::PipelineCost;
use crate::model::problem::{Contention, Problem};
use crate::model::units::{Bytes, BytesPerMicro, Micros, human_bytes};

/// Returns the time of the slowest resource. The time of a device is the work of all its tasks, each incoming tensor
/// once, and each outgoing tensor once, with its longest transfer. With overlap, devices and links are separate
/// resources. With contention the time of a bus is the sum of its transfers. Blocks have been checked already.
pub(super) fn slowest(
    problem: &Problem,
    judged: &Judged,
    block: &[usize],
    block_device: &[usize],
    values: &Values,
) -> Result<Micros, Vec<Finding>> {
    let mut findings = Vec::new();
    let Some(device) = devices(problem, block, block_device, &mut findings) else { return Err(findings) };
    let mut work: BTreeMap<usize, Micros> = BTreeMap::new();
    for (node, on) in device.iter().enumerate() {
        *work.entry(*on).or_default() += time(problem, node, *on, &mut findings);
    }
    check_memory(problem, &device, &mut findings);
    check_colocation(problem, &device, &mut findings);
    let blocks = working_blocks(problem, block, block_device, values);
    check_stages(judged, &blocks, &mut findings);
    if !judged.shared_devices {
        check_sharing(problem, &blocks, &mut findings);
    }
    let mut moving: BTreeMap<usize, Micros> = BTreeMap::new();
    let mut links: BTreeMap<(usize, usize), Micros> = BTreeMap::new();
    // Sum of the transfers of a bus in a period, in sequence or in parallel at a lower rate.
    let mut buses: BTreeMap<&str, Micros> = BTreeMap::new();
    let names = problem.bus.as_ref().filter(|_| judged.contention != Contention::Off);
    for (from, bytes, readers) in values {
        let home = device[*from];
        let elsewhere: BTreeSet<usize> = readers.iter().map(|to| device[*to]).filter(|on| *on != home).collect();
        let mut longest = Micros::ZERO;
        for to in elsewhere {
            if problem.bandwidth[home][to] == Some(BytesPerMicro::ZERO) {
                let (there, here) = (problem.device_label(to), problem.device_label(home));
                let message = format!("its value is read on {there}, but no link leads there from {here}");
                findings.push(Finding::new(problem.node_label(*from), message));
                continue;
            }
            let latency = problem.link_latency.as_ref().and_then(|latency| latency[home][to]).unwrap_or_default();
            let takes = problem.bandwidth[home][to].map_or(Micros::ZERO, |bandwidth| *bytes / bandwidth) + latency;
            longest = longest.max(takes);
            *moving.entry(to).or_default() += takes;
            *links.entry((home, to)).or_default() += takes;
            if let Some(name) = names.and_then(|names| names[home][to].as_deref()) {
                *buses.entry(name).or_default() += takes;
            }
        }
        *moving.entry(home).or_default() += longest;
    }
    if !findings.is_empty() {
        return Err(findings);
    }
    let most = |times: &mut dyn Iterator<Item = Micros>| times.fold(Micros::ZERO, Micros::max);
    match judged.pipeline_cost {
        PipelineCost::Serial => {
            let both = |(on, work): (&usize, &Micros)| *work + moving.get(on).copied().unwrap_or_default();
            Ok(most(&mut work.iter().map(both).chain(buses.into_values())))
        }
        PipelineCost::Overlap => {
            Ok(most(&mut work.into_values().chain(links.into_values()).chain(buses.into_values())))
        }
    }
}

/// Returns the device of each node; `None` if a block's device does not exist.
fn devices(
    problem: &Problem,
    block: &[usize],
    block_device: &[usize],
    findings: &mut Vec<Finding>,
) -> Option<Vec<usize>> {
    for (of, on) in block_device.iter().enumerate().filter(|(_, on)| **on >= problem.devices.len()) {
        let message = format!("block {of} is on device {on}, but there are {}", problem.devices.len());
        findings.push(Finding::new("block_device", message));
    }
    findings.is_empty().then(|| block.iter().map(|of| block_device[*of]).collect())
}

/// Returns the time of a node for one input, and checks that the device may run it.
fn time(problem: &Problem, node: usize, on: usize, findings: &mut Vec<Finding>) -> Micros {
    let label = problem.node_label(node);
    if let Some(pin) = problem.nodes[node].pin.filter(|pin| *pin != on) {
        let message = format!("is on {}, but is pinned to {}", problem.device_label(on), problem.device_label(pin));
        findings.push(Finding::new(label, message));
        return Micros::ZERO;
    }
    let time = problem.nodes[node].time.get(&1).and_then(|times| times[on]);
    let time = time.filter(|_| problem.devices[on].batch_sizes.contains(&1));
    time.unwrap_or_else(|| {
        let message = format!("is on {}, which does not run one input of it", problem.device_label(on));
        findings.push(Finding::new(label, message));
        Micros::ZERO
    })
}

/// Checks memory. Several inputs are in flight: a device holds all data of its tasks.
fn check_memory(problem: &Problem, device: &[usize], findings: &mut Vec<Finding>) {
    for (on, memory) in problem.devices.iter().enumerate().filter_map(|(on, device)| Some((on, device.memory?))) {
        let mut held = Bytes::ZERO;
        for node in problem.nodes.iter().filter(|node| device[node.id] == on) {
            let own = problem.tensors.iter().flatten().filter(|tensor| tensor.from == node.id);
            let results = node.output.unwrap_or_else(|| own.map(|tensor| tensor.bytes).sum());
            held += node.weight + node.input + results;
        }
        if exceeds(held, memory) {
            let (needs, has, short) = (human_bytes(held), human_bytes(memory), human_bytes(held - memory));
            let message = format!("needs {needs}, has {has}: {short} short");
            findings.push(Finding::new(problem.device_label(on), message));
        }
    }
}

fn check_colocation(problem: &Problem, device: &[usize], findings: &mut Vec<Finding>) {
    for group in problem.colocate.iter().flatten() {
        for node in group.iter().filter(|node| device[**node] != device[group[0]]) {
            let (on, other) = (problem.device_label(device[*node]), problem.node_label(group[0]));
            let message = format!("is on {on}, but shares a device with {other}, which is not there");
            findings.push(Finding::new(problem.node_label(*node), message));
        }
    }
}

/// Returns the blocks of each device, except those of nodes that only provide inputs or take outputs: no time, and no
/// predecessors or no successors.
fn working_blocks(
    problem: &Problem,
    block: &[usize],
    block_device: &[usize],
    values: &Values,
) -> BTreeMap<usize, BTreeSet<usize>> {
    let makes: BTreeSet<usize> = values.iter().filter(|value| !value.2.is_empty()).map(|value| value.0).collect();
    let reads: BTreeSet<usize> = values.iter().flat_map(|value| value.2.iter().copied()).collect();
    let works = |node: &usize| {
        let times = problem.nodes[*node].time.get(&1);
        let takes_time = times.is_none_or(|times| times.iter().flatten().any(|time| *time > Micros::ZERO));
        takes_time || (makes.contains(node) && reads.contains(node))
    };
    let mut of_device: BTreeMap<usize, BTreeSet<usize>> = BTreeMap::new();
    for node in (0..block.len()).filter(works) {
        of_device.entry(block_device[block[node]]).or_default().insert(block[node]);
    }
    of_device
}

/// Checks the maximum number of stages.
fn check_stages(judged: &Judged, of_device: &BTreeMap<usize, BTreeSet<usize>>, findings: &mut Vec<Finding>) {
    let stages: usize = of_device.values().map(BTreeSet::len).sum();
    if let Some(most) = judged.stages.filter(|most| stages > *most as usize) {
        let message = format!("the plan has {stages} stages, but at most {most} are asked for");
        findings.push(Finding::new("k", message));
    }
}

/// Checks that devices are not shared.
fn check_sharing(problem: &Problem, of_device: &BTreeMap<usize, BTreeSet<usize>>, findings: &mut Vec<Finding>) {
    for (on, blocks) in of_device.iter().filter(|(_, blocks)| blocks.len() > 1) {
        let names: Vec<String> = blocks.iter().map(usize::to_string).collect();
        let message = format!("has blocks {}, but devices are not shared (shared_devices)", names.join(", "));
        findings.push(Finding::new(problem.device_label(*on), message));
    }
}
