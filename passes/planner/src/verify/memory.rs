//! What each device holds fits into it.

use std::collections::{BTreeMap, BTreeSet};

use super::copies::Copies;
use super::launches::Launches;
use super::moves::Moves;
use super::precedence::for_each_value;
use super::{ROUNDING, exceeds};
use crate::model::error::Finding;
use crate::model::problem::{MemoryModel, Problem};
use crate::model::units::{Bytes, Micros, human_bytes};

pub(super) fn check(
    problem: &Problem,
    launches: &Launches,
    moves: &Moves,
    copies: &Copies,
    findings: &mut Vec<Finding>,
) {
    let held = match problem.memory_model {
        MemoryModel::Static => everything(problem, launches, copies),
        MemoryModel::Liveness => most_at_once(problem, launches, moves, copies),
    };
    for (index, (device, held)) in problem.devices.iter().zip(held).enumerate() {
        if let Some(memory) = device.memory.filter(|memory| exceeds(held, *memory)) {
            findings.push(Finding::new(
                problem.device_label(index),
                format!(
                    "needs {}, has {}: {} short",
                    human_bytes(held),
                    human_bytes(memory),
                    human_bytes(held - memory)
                ),
            ));
        }
    }
}

/// Eq. (6): weights of each task that runs there, operands and results of each input that does; and weights that are handed
/// on. What is read in the host's memory takes no room.
fn everything(problem: &Problem, launches: &Launches, copies: &Copies) -> Vec<Bytes> {
    let mut held = vec![0.0; problem.devices.len()];
    copies.handed_on().for_each(|handed| held[handed.on] += handed.bytes);
    for launch in launches.all() {
        let node = &problem.nodes[launch.node];
        let results = node.output.unwrap_or_else(|| {
            let own = problem.tensors.iter().flatten().filter(|tensor| tensor.from == launch.node);
            own.map(|tensor| tensor.bytes).sum()
        });
        let weight = if launch.direct { 0.0 } else { node.weight };
        held[launch.device] += weight + (node.input + results) * launch.inputs.len() as f64;
    }
    held
}

/// Weights, and the most that is alive at the same time. A result lives from its launch's start until it has been read
/// and moved; its copy elsewhere from when it starts to move until it has been read; scratch while its launch runs; weights
/// that are handed on from when they begin to come until they have gone.
fn most_at_once(problem: &Problem, launches: &Launches, moves: &Moves, copied: &Copies) -> Vec<Bytes> {
    struct Life {
        bytes: Bytes,
        from: Micros,
        until: Micros,
    }
    let mut lives: Vec<Vec<Life>> = problem.devices.iter().map(|_| Vec::new()).collect();
    let mut weights = vec![0.0; problem.devices.len()];
    // By tensor and producing device: at most one launch of a node on a device.
    let mut results: BTreeMap<(usize, usize), Life> = BTreeMap::new();
    let mut copies: BTreeMap<(usize, usize, usize), (Life, BTreeSet<u32>)> = BTreeMap::new();
    let mut tensors_of: Vec<Vec<(usize, Bytes)>> = vec![Vec::new(); problem.nodes.len()];
    match &problem.tensors {
        Some(tensors) => tensors.iter().enumerate().for_each(|(index, t)| tensors_of[t.from].push((index, t.bytes))),
        None => problem.nodes.iter().for_each(|node| tensors_of[node.id].push((node.id, node.output.unwrap_or(0.0)))),
    }
    for launch in launches.all() {
        let count = launch.inputs.len() as f64;
        let node = &problem.nodes[launch.node];
        weights[launch.device] += if launch.direct { 0.0 } else { node.weight };
        lives[launch.device].push(Life { bytes: node.scratch * count, from: launch.start, until: launch.end });
        for &(tensor, bytes) in &tensors_of[launch.node] {
            let life = Life { bytes: bytes * count, from: launch.start, until: launch.end };
            results.insert((tensor, launch.device), life);
        }
    }
    for handed in copied.handed_on() {
        lives[handed.on].push(Life { bytes: handed.bytes, from: handed.from, until: handed.until });
    }
    for_each_value(problem, launches, moves, |value| {
        let (from, to) = (value.producer, value.reader);
        let result = results.get_mut(&(value.tensor, from.device)).expect("every producer's launch has its results");
        if from.device == to.device {
            result.until = result.until.max(to.end);
            return;
        }
        result.until = result.until.max(value.arrival.unwrap_or(from.end));
        let (copy, inputs) = copies
            .entry((value.tensor, from.device, to.device))
            .or_insert_with(|| (Life { bytes: 0.0, from: value.departure, until: value.departure }, BTreeSet::new()));
        inputs.extend(from.inputs.intersection(&to.inputs));
        copy.bytes = value.bytes * inputs.len() as f64;
        copy.until = copy.until.max(to.end);
    });
    for ((_, device), life) in results {
        lives[device].push(life);
    }
    for ((_, _, device), (life, _)) in copies {
        lives[device].push(life);
    }
    // Lives that only touch, but for rounding, do not meet; short ones are lives, too.
    let rounding = ROUNDING * launches.makespan();
    let end = |life: &Life| life.until - rounding.min((life.until - life.from) / 2.0);
    let alive_at = |lives: &[Life], now: Micros| -> Bytes {
        lives.iter().filter(|life| life.from <= now && now < end(life)).map(|life| life.bytes).sum()
    };
    lives
        .iter()
        .zip(weights)
        .map(|(lives, weights)| {
            // The sum only grows where a life begins.
            weights + lives.iter().map(|life| alive_at(lives, life.from)).fold(0.0, f64::max)
        })
        .collect()
}
