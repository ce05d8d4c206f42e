//! Pipelines: checks that the graph of blocks is acyclic and, on equal devices, computes the time of the slowest block
//! (MTPP's eq. 3).

use std::collections::{BTreeMap, BTreeSet};

use super::batches::{self, Blocks};
use super::tensors::tensors;
use super::{Judged, holds, stages};
use crate::model::error::Finding;
use crate::model::options::PipelineCost;
use crate::model::plan::{Stages, Turns};
use crate::model::problem::{Pipeline, Problem};
use crate::model::units::{Bytes, Micros};

/// Time of a block without transfers, and time of its transfers.
#[derive(Clone, Copy, Default)]
struct Times {
    compute: Micros,
    moving: Micros,
}

/// Returns the time of the slowest block, or device if blocks have devices; or the violated constraints.
pub(super) fn bottleneck(
    problem: &Problem,
    judged: &Judged,
    block: &[usize],
    k: u32,
    staged: Option<&Stages>,
) -> Result<Micros, Vec<Finding>> {
    let wrong = |place: &str, message: String| Err(vec![Finding::new(place, message)]);
    let devices = staged.and_then(|staged| staged.block_device.as_ref());
    check_blocks(problem, block, k)?;
    check_flow(problem, block)?;
    let view = match (&problem.mtpp, devices) {
        (Some(view), None) => view,
        (None, Some(devices)) => {
            if devices.len() != k as usize {
                return wrong("block_device", format!("has {} entries, but there are {k} blocks", devices.len()));
            }
            if let Some(order) = staged.and_then(|staged| staged.order.as_ref()) {
                holds::check_order(problem, block, k, order)?;
            }
            return stages::slowest(problem, judged, block, devices, &tensors(problem));
        }
        (Some(_), Some(_)) => {
            return wrong(
                "block_device",
                "is there, but the problem's pipeline view (mtpp) has equal devices".to_owned(),
            );
        }
        (None, None) => {
            return wrong("block_device", "is missing, and the problem has no pipeline view (mtpp)".to_owned());
        }
    };
    let order = staged.and_then(|staged| staged.order.as_ref());
    Ok(equal_times(problem, judged, view, block, k, order)?.into_values().fold(Micros::ZERO, Micros::max))
}

/// Returns the time of the slowest block or device of a pipeline of batches; or the violated constraints.
pub(super) fn batched(
    problem: &Problem,
    judged: &Judged,
    block: &[usize],
    k: u32,
    turns: &Turns,
    order: Option<&Vec<Vec<usize>>>,
) -> Result<Micros, Vec<Finding>> {
    let wrong = |place: &str, message: String| Err(vec![Finding::new(place, message)]);
    check_blocks(problem, block, k)?;
    check_flow(problem, block)?;
    match (&problem.mtpp, turns) {
        (None, Turns::Devices { batch, devices }) => {
            if let Some(order) = order {
                holds::check_order(problem, block, k, order)?;
            }
            batches::slowest(problem, judged, &Blocks { of: block, batch, devices }, k, &tensors(problem))
        }
        (Some(view), Turns::Equal { replicas }) => {
            if replicas.len() != k as usize {
                return wrong("replicas", format!("has {} entries, but there are {k} blocks", replicas.len()));
            }
            let most = judged.max_replicas;
            if let Some(of) = replicas.iter().position(|count| *count == 0 || *count > most) {
                let message = format!("block {of} has {} devices; at least 1, at most {most}", replicas[of]);
                return wrong("replicas", message);
            }
            let times = equal_times(problem, judged, view, block, k, order)?;
            let share = |(of, time): (usize, Micros)| time / f64::from(replicas[of]);
            Ok(times.into_iter().map(share).fold(Micros::ZERO, Micros::max))
        }
        (Some(_), Turns::Devices { .. }) => {
            wrong("block_devices", "is there, but the problem's pipeline view (mtpp) has equal devices".to_owned())
        }
        (None, Turns::Equal { .. }) => {
            wrong("replicas", "is there, but the problem has no pipeline view (mtpp)".to_owned())
        }
    }
}

/// Returns the time of each block on one of the equal devices.
fn equal_times(
    problem: &Problem,
    judged: &Judged,
    view: &Pipeline,
    block: &[usize],
    k: u32,
    order: Option<&Vec<Vec<usize>>>,
) -> Result<BTreeMap<usize, Micros>, Vec<Finding>> {
    check_colocation(problem, block)?;
    let mut times = times(problem, view, block);
    if let Some(order) = order {
        holds::check_order(problem, block, k, order)?;
    }
    match (view.memory, order) {
        (Some(memory), Some(order)) => {
            for (of, tasks) in order.iter().enumerate() {
                let beyond = holds::most(problem, &tensors(problem), tasks) - memory;
                times.entry(of).or_default().compute += beyond.max(Bytes::ZERO) / view.bandwidth;
            }
        }
        (Some(_), None) => {
            let message = "is missing: what a block's memory has to hold depends on it";
            return Err(vec![Finding::new("order", message)]);
        }
        (None, _) => {}
    }
    let cost = |times: Times| match judged.pipeline_cost {
        PipelineCost::Serial => times.compute + times.moving,
        PipelineCost::Overlap => times.compute.max(times.moving),
    };
    Ok(times.into_iter().map(|(of, times)| (of, cost(times))).collect())
}

fn check_blocks(problem: &Problem, block: &[usize], k: u32) -> Result<(), Vec<Finding>> {
    let nodes = problem.nodes.len();
    if block.len() != nodes {
        return Err(vec![Finding::new("block", format!("has {} entries, but there are {nodes} nodes", block.len()))]);
    }
    let mut findings = Vec::new();
    for (node, of) in block.iter().enumerate().filter(|(_, of)| **of >= k as usize) {
        findings
            .push(Finding::new(problem.node_label(node), format!("is in block {of}, but there are {k}, from 0 on")));
    }
    if findings.is_empty() { Ok(()) } else { Err(findings) }
}

fn check_colocation(problem: &Problem, block: &[usize]) -> Result<(), Vec<Finding>> {
    let mut findings = Vec::new();
    for group in problem.colocate.iter().flatten() {
        for node in group.iter().filter(|node| block[**node] != block[group[0]]) {
            let message = format!(
                "is in block {}, but shares a device with {}, which is in block {}",
                block[*node],
                problem.node_label(group[0]),
                block[group[0]]
            );
            findings.push(Finding::new(problem.node_label(*node), message));
        }
    }
    if findings.is_empty() { Ok(()) } else { Err(findings) }
}

/// Checks that the graph of blocks has no cycle: removes blocks without predecessors until none is left.
fn check_flow(problem: &Problem, block: &[usize]) -> Result<(), Vec<Finding>> {
    let mut waits: BTreeMap<usize, BTreeSet<usize>> = block.iter().map(|of| (*of, BTreeSet::new())).collect();
    for (from, _, readers) in tensors(problem) {
        for to in readers.into_iter().filter(|to| block[*to] != block[from]) {
            waits.entry(block[to]).or_default().insert(block[from]);
        }
    }
    while let Some(free) = waits.iter().find(|(_, others)| others.is_empty()).map(|(of, _)| *of) {
        waits.remove(&free);
        waits.values_mut().for_each(|others| {
            others.remove(&free);
        });
    }
    if waits.is_empty() {
        return Ok(());
    }
    let names: Vec<String> = waits.keys().map(usize::to_string).collect();
    let message = format!("blocks form a cycle, among {}", names.join(", "));
    Err(vec![Finding::new("block", message)])
}

/// Returns the times of each block: its work, and its incoming and outgoing tensors, once each for any number of readers.
fn times(problem: &Problem, view: &Pipeline, block: &[usize]) -> BTreeMap<usize, Times> {
    let mut times: BTreeMap<usize, Times> = BTreeMap::new();
    for (node, work) in view.work.iter().enumerate() {
        times.entry(block[node]).or_default().compute += *work;
    }
    for (from, bytes, readers) in tensors(problem) {
        let elsewhere: BTreeSet<usize> =
            readers.into_iter().map(|to| block[to]).filter(|of| *of != block[from]).collect();
        if elsewhere.is_empty() {
            continue;
        }
        for of in elsewhere.into_iter().chain([block[from]]) {
            times.entry(of).or_default().moving += bytes / view.bandwidth;
        }
    }
    times
}
