//! Pipelines on edge networks: the time of the slowest machine, or of the slowest link between two.

use std::collections::{BTreeMap, BTreeSet};

use super::{Judged, exceeds};
use crate::model::error::Finding;
use crate::model::problem::{EdgeNetwork, Problem};
use crate::model::units::{BytesPerMicro, Micros};

/// Returns the period, or the violated constraints of the placement.
pub(super) fn period(problem: &Problem, judged: &Judged, place: &[usize]) -> Result<Micros, Vec<Finding>> {
    let wrong = |at: &str, message: String| Err(vec![Finding::new(at, message)]);
    let Some(view) = &problem.edge else {
        return wrong("place", "is there, but the problem has no edge network (edge)".to_owned());
    };
    let (nodes, machines) = (problem.nodes.len(), view.rate.len());
    if place.len() != nodes {
        return wrong("place", format!("has {} entries, but there are {nodes} nodes", place.len()));
    }
    let mut findings = Vec::new();
    for (node, on) in place.iter().enumerate().filter(|(_, on)| **on >= machines) {
        let message = format!("is on machine {on}, but there are {machines}");
        findings.push(Finding::new(problem.node_label(node), message));
    }
    if !findings.is_empty() {
        return Err(findings);
    }
    check_colocation(problem, view, place, &mut findings);
    check_runs(problem, view, judged, place, &mut findings);
    let mut busy: BTreeMap<usize, Micros> = BTreeMap::new();
    for (node, on) in place.iter().enumerate() {
        *busy.entry(*on).or_default() += Micros(view.flops[node] / view.rate[*on]);
    }
    let mut links: BTreeMap<(usize, usize), Micros> = BTreeMap::new();
    for ((from, to), bytes) in problem.edges.iter().flatten().zip(&view.edge_bytes) {
        let (here, there) = (place[*from], place[*to]);
        if here == there {
            continue;
        }
        match view.bandwidth[here][there] {
            Some(bandwidth) if !exceeds(bandwidth, BytesPerMicro::ZERO) => {
                let message = format!(
                    "is on machine {there} and reads what {} computes on machine {here}, but no link leads there",
                    problem.node_label(*from)
                );
                findings.push(Finding::new(problem.node_label(*to), message));
            }
            Some(bandwidth) => *links.entry((here, there)).or_default() += *bytes / bandwidth,
            None => {}
        }
    }
    if findings.is_empty() {
        Ok(busy.into_values().chain(links.into_values()).fold(Micros::ZERO, Micros::max))
    } else {
        Err(findings)
    }
}

/// Checks pins and co-location.
fn check_colocation(problem: &Problem, view: &EdgeNetwork, place: &[usize], findings: &mut Vec<Finding>) {
    for (node, pin) in view.pin.iter().flatten().enumerate() {
        if let Some(pin) = pin.filter(|pin| *pin != place[node]) {
            let message = format!("is on machine {}, but is pinned to machine {pin}", place[node]);
            findings.push(Finding::new(problem.node_label(node), message));
        }
    }
    for group in problem.colocate.iter().flatten() {
        for node in group.iter().filter(|node| place[**node] != place[group[0]]) {
            let message = format!(
                "is on machine {}, but shares one with {}, which is on machine {}",
                place[*node],
                problem.node_label(group[0]),
                place[group[0]]
            );
            findings.push(Finding::new(problem.node_label(*node), message));
        }
    }
}

/// Checks the number of split points along the order of nodes, and the number of threads of each machine.
fn check_runs(problem: &Problem, view: &EdgeNetwork, judged: &Judged, place: &[usize], findings: &mut Vec<Finding>) {
    let order = order(problem);
    let mut threads: BTreeMap<usize, usize> = BTreeMap::new();
    let mut last = None;
    for node in order {
        if last != Some(place[node]) {
            *threads.entry(place[node]).or_default() += 1;
        }
        last = Some(place[node]);
    }
    let splits = threads.values().sum::<usize>().saturating_sub(1);
    if let Some(most) = judged.splits.filter(|most| splits > *most as usize) {
        let message = format!("has {splits} split points, but at most {most} are allowed");
        findings.push(Finding::new("place", message));
    }
    let Some(most) = &view.threads else { return };
    for (machine, count) in threads.into_iter().filter(|(machine, count)| *count > most[*machine] as usize) {
        let message = format!("has {count} threads, but may have {}", most[machine]);
        findings.push(Finding::new(format!("machine {machine}"), message));
    }
}

/// Returns a topological order, lowest number first. The problem is well-formed: there is no cycle.
fn order(problem: &Problem) -> Vec<usize> {
    let mut waits = vec![0_usize; problem.nodes.len()];
    let mut after: Vec<Vec<usize>> = vec![Vec::new(); problem.nodes.len()];
    for (from, to) in problem.edges.iter().flatten() {
        waits[*to] += 1;
        after[*from].push(*to);
    }
    let mut free: BTreeSet<usize> = (0..waits.len()).filter(|node| waits[*node] == 0).collect();
    let mut order = Vec::with_capacity(waits.len());
    while let Some(node) = free.pop_first() {
        order.push(node);
        for &next in &after[node] {
            waits[next] -= 1;
            if waits[next] == 0 {
                free.insert(next);
            }
        }
    }
    order
}
