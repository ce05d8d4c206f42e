//! Pipelines whose stages take several inputs at once or have several devices that take turns: the time of the slowest
//! device, link or bus for one input.
//!
//! A launch of a block takes `batch` inputs, and its devices take turns. A tensor moves to each list of devices that
//! reads it, as many inputs at a time as divide the batch sizes of both sides; so latency is paid once for these. A
//! device holds the weights of its blocks once, and the operands and results of a batch of each.

mod replicas;
mod transfers;

use std::collections::{BTreeMap, BTreeSet};

use super::tensors::Values;
use super::{Judged, exceeds};
use crate::model::error::Finding;
use crate::model::options::PipelineCost;
use crate::model::problem::{MOST_INPUTS, Problem};
use crate::model::units::{Bytes, Micros, human_bytes};

/// Blocks with their batch sizes and devices.
pub(super) struct Blocks<'a> {
    /// Block of each node.
    pub(super) of: &'a [usize],
    pub(super) batch: &'a [u32],
    pub(super) devices: &'a [Vec<usize>],
}

impl Blocks<'_> {
    /// Returns the devices of a node.
    fn devices_of(&self, node: usize) -> &[usize] {
        &self.devices[self.of[node]]
    }

    fn batch_of(&self, node: usize) -> u32 {
        self.batch[self.of[node]]
    }
}

/// Returns the time of the slowest resource for one input. Blocks form no cycle.
pub(super) fn slowest(
    problem: &Problem,
    judged: &Judged,
    blocks: &Blocks<'_>,
    k: u32,
    values: &Values,
) -> Result<Micros, Vec<Finding>> {
    check_form(problem, judged, blocks, k)?;
    let mut findings = Vec::new();
    let mut work: BTreeMap<usize, Micros> = BTreeMap::new();
    for node in 0..problem.nodes.len() {
        let time = replicas::time(problem, node, blocks.devices_of(node), blocks.batch_of(node), &mut findings);
        let launches = f64::from(blocks.batch_of(node)) * blocks.devices_of(node).len() as f64;
        blocks.devices_of(node).iter().for_each(|on| *work.entry(*on).or_default() += time / launches);
    }
    replicas::check_equal(problem, blocks.devices, &mut findings);
    check_memory(problem, blocks, &mut findings);
    check_colocation(problem, blocks, &mut findings);
    check_stages(problem, judged, blocks, values, &mut findings);
    let moved = transfers::loads(problem, judged, blocks, values, &mut findings);
    if !findings.is_empty() {
        return Err(findings);
    }
    let most = |times: &mut dyn Iterator<Item = Micros>| times.fold(Micros::ZERO, Micros::max);
    let buses = moved.buses.into_values();
    Ok(match judged.pipeline_cost {
        PipelineCost::Serial => {
            let both = |(on, work): (&usize, &Micros)| *work + moved.devices.get(on).copied().unwrap_or_default();
            most(&mut work.iter().map(both).chain(buses))
        }
        PipelineCost::Overlap => most(&mut work.into_values().chain(moved.links.into_values()).chain(buses)),
    })
}

/// Checks lengths and ranges of the lists.
fn check_form(problem: &Problem, judged: &Judged, blocks: &Blocks<'_>, k: u32) -> Result<(), Vec<Finding>> {
    let mut findings = Vec::new();
    let mut wrong = |key: &str, message: String| findings.push(Finding::new(key, message));
    for (key, entries) in [("batch", blocks.batch.len()), ("block_devices", blocks.devices.len())] {
        if entries != k as usize {
            wrong(key, format!("has {entries} entries, but there are {k} blocks"));
        }
    }
    for (of, &size) in blocks.batch.iter().enumerate() {
        if size == 0 || size > MOST_INPUTS {
            wrong("batch", format!("block {of} takes {size} inputs at once; at least 1, at most {MOST_INPUTS}"));
        } else if size > judged.max_batch {
            let most = judged.max_batch;
            wrong(
                "batch",
                format!("block {of} takes {size} inputs at once, but at most {most} are allowed (max_batch)"),
            );
        }
    }
    for (of, devices) in blocks.devices.iter().enumerate() {
        let distinct: BTreeSet<usize> = devices.iter().copied().collect();
        if devices.is_empty() {
            wrong("block_devices", format!("block {of} has no device"));
        }
        if distinct.len() < devices.len() {
            wrong("block_devices", format!("block {of} has a device twice"));
        }
        if let Some(on) = distinct.iter().find(|on| **on >= problem.devices.len()) {
            wrong("block_devices", format!("block {of} is on device {on}, but there are {}", problem.devices.len()));
        }
        if devices.len() > judged.max_replicas as usize {
            let (count, most) = (devices.len(), judged.max_replicas);
            wrong(
                "block_devices",
                format!("block {of} has {count} devices, but at most {most} are allowed (max_replicas)"),
            );
        }
    }
    if findings.is_empty() { Ok(()) } else { Err(findings) }
}

/// Checks memory: weights once on each device, operands and results of a batch.
fn check_memory(problem: &Problem, blocks: &Blocks<'_>, findings: &mut Vec<Finding>) {
    let mut held = vec![Bytes::ZERO; problem.devices.len()];
    for node in &problem.nodes {
        let own = problem.tensors.iter().flatten().filter(|tensor| tensor.from == node.id);
        let results = node.output.unwrap_or_else(|| own.map(|tensor| tensor.bytes).sum());
        let bytes = node.weight + (node.input + results) * f64::from(blocks.batch_of(node.id));
        blocks.devices_of(node.id).iter().for_each(|on| held[*on] += bytes);
    }
    for (on, held) in held.into_iter().enumerate() {
        if let Some(memory) = problem.devices[on].memory.filter(|memory| exceeds(held, *memory)) {
            let (needs, has, short) = (human_bytes(held), human_bytes(memory), human_bytes(held - memory));
            let message = format!("needs {needs}, has {has}: {short} short");
            findings.push(Finding::new(problem.device_label(on), message));
        }
    }
}

/// Checks that nodes that share a device have the same devices and, if these take turns, the same inputs on each.
fn check_colocation(problem: &Problem, blocks: &Blocks<'_>, findings: &mut Vec<Finding>) {
    for group in problem.colocate.iter().flatten() {
        for &node in group {
            let (devices, first) = (blocks.devices_of(node), blocks.devices_of(group[0]));
            let same_inputs = devices.len() == 1 || blocks.batch_of(node) == blocks.batch_of(group[0]);
            if devices != first || !same_inputs {
                let other = problem.node_label(group[0]);
                let message = format!("shares a device with {other}, which has other devices or another batch size");
                findings.push(Finding::new(problem.node_label(node), message));
            }
        }
    }
}

/// Checks that devices are not shared by stages, and the maximum number of stages. A block of nodes without work that
/// only provide the model's inputs or take its outputs is not a stage.
fn check_stages(problem: &Problem, judged: &Judged, blocks: &Blocks<'_>, values: &Values, findings: &mut Vec<Finding>) {
    let makes: BTreeSet<usize> = values.iter().filter(|value| !value.2.is_empty()).map(|value| value.0).collect();
    let reads: BTreeSet<usize> = values.iter().flat_map(|value| value.2.iter().copied()).collect();
    let works = |node: &usize| {
        let times = problem.nodes[*node].time.get(&blocks.batch_of(*node));
        let takes_time = times.is_none_or(|times| times.iter().flatten().any(|time| *time > Micros::ZERO));
        takes_time || (makes.contains(node) && reads.contains(node))
    };
    let stages: BTreeSet<usize> = (0..blocks.of.len()).filter(works).map(|node| blocks.of[node]).collect();
    if let Some(most) = judged.stages.filter(|most| stages.len() > *most as usize) {
        let message = format!("the plan has {} stages, but at most {most} are asked for", stages.len());
        findings.push(Finding::new("k", message));
    }
    let mut on: BTreeMap<usize, Vec<String>> = BTreeMap::new();
    for of in stages {
        blocks.devices[of].iter().for_each(|device| on.entry(*device).or_default().push(of.to_string()));
    }
    for (device, stages) in on.into_iter().filter(|(_, stages)| stages.len() > 1 && !judged.shared_devices) {
        let message = format!("has blocks {}, but devices are not shared (shared_devices)", stages.join(", "));
        findings.push(Finding::new(problem.device_label(device), message));
    }
}
