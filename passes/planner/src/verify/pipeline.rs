//! Pipelines on equal devices: what the slowest block takes (MTPP's eq. 3), and that values only flow forwards.

use std::collections::{BTreeMap, BTreeSet};

use crate::error::Finding;
use crate::plan::Plan;
use crate::problem::{Pipeline, Problem};
use crate::units::{Bytes, Micros};

/// The slowest block's time; or what is wrong with the blocks. Without the problem's pipeline view, or where the view has
/// what is not verified yet, that is said.
pub(super) fn bottleneck(problem: &Problem, plan: &Plan, block: &[usize], k: u32) -> Result<Micros, Vec<Finding>> {
    let not_yet = |place: &str, what: &str| Err(vec![Finding::new(place, format!("{what}: not verified yet"))]);
    let Some(view) = &problem.mtpp else { return not_yet("block", "pipelines on devices' own times") };
    if view.memory.is_some() {
        return not_yet("mtpp.memory", "parameters that overflow a block's memory");
    }
    if let Some(cost) = plan.pipeline_cost.as_deref().filter(|cost| *cost != "serial") {
        return not_yet("pipeline_cost", &format!("pipelines with cost model {cost}"));
    }
    check_blocks(problem, block, k)?;
    check_flow(problem, block)?;
    let costs = costs(problem, view, block);
    Ok(costs.into_values().fold(0.0, f64::max))
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

/// Every tensor: who makes it, how large it is, who reads it.
fn tensors(problem: &Problem) -> Vec<(usize, Bytes, Vec<usize>)> {
    match &problem.tensors {
        Some(tensors) => tensors.iter().map(|tensor| (tensor.from, tensor.bytes, tensor.to.clone())).collect(),
        None => {
            let mut all: Vec<(usize, Bytes, Vec<usize>)> =
                problem.nodes.iter().map(|node| (node.id, node.output.unwrap_or(0.0), Vec::new())).collect();
            problem.edges.iter().flatten().for_each(|(from, to)| all[*from].2.push(*to));
            all
        }
    }
}

/// Blocks must not wait for each other in a circle: take away blocks that wait for none until none is left.
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
    let message = format!("blocks wait for each other in a circle, among {}", names.join(", "));
    Err(vec![Finding::new("block", message)])
}

/// What each block takes: what comes in once, its work, and what goes out once, however many read it.
fn costs(problem: &Problem, view: &Pipeline, block: &[usize]) -> BTreeMap<usize, Micros> {
    let mut costs: BTreeMap<usize, Micros> = BTreeMap::new();
    for (node, work) in view.work.iter().enumerate() {
        *costs.entry(block[node]).or_default() += work;
    }
    for (from, bytes, readers) in tensors(problem) {
        let elsewhere: BTreeSet<usize> =
            readers.into_iter().map(|to| block[to]).filter(|of| *of != block[from]).collect();
        if elsewhere.is_empty() {
            continue;
        }
        for of in elsewhere.into_iter().chain([block[from]]) {
            *costs.entry(of).or_default() += bytes / view.bandwidth;
        }
    }
    costs
}
