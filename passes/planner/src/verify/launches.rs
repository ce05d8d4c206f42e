//! Launches of a plan, with the times that the problem gives them.

use std::collections::{BTreeMap, BTreeSet};

use super::{Judged, exceeds};
use crate::model::error::Finding;
use crate::model::plan::{Batch, LaunchRule, Plan, Schedule};
use crate::model::problem::Problem;
use crate::model::units::{Micros, number};

/// Launch of a task on a device for some inputs.
pub(super) struct Launch {
    pub(super) node: usize,
    pub(super) device: usize,
    pub(super) inputs: BTreeSet<u32>,
    pub(super) start: Micros,
    pub(super) end: Micros,
    /// True if it reads its parameters in the host's memory: see [`super::copies`].
    pub(super) direct: bool,
}

pub(super) struct Launches {
    /// Launches of each node, in the plan's order.
    pub(super) of_node: Vec<Vec<Launch>>,
    /// By node and input: the node's launch that runs the input.
    of_input: Vec<Vec<usize>>,
}

impl Launches {
    /// Returns the launches if each is valid: existing nodes and devices, supported batch sizes, each input once.
    pub(super) fn of(problem: &Problem, plan: &Plan, judged: &Judged) -> Result<Self, Vec<Finding>> {
        let (batches, inputs) = match &plan.schedule {
            Schedule::Latency { device, start, .. } => (one_each(problem, device, start)?, 1),
            Schedule::Batch { batches, .. } => (batches.clone(), judged.inputs),
            Schedule::Pipeline { .. } | Schedule::BatchedPipeline { .. } | Schedule::Edge { .. } => (Vec::new(), 0),
        };
        let mut findings = Vec::new();
        let mut of_node: Vec<Vec<Launch>> = problem.nodes.iter().map(|_| Vec::new()).collect();
        for (index, batch) in batches.iter().enumerate() {
            match launch(problem, batch, inputs) {
                Ok(launch) => of_node[batch.node].push(launch),
                Err(message) => findings.push(Finding::new(label(problem, index, batch), message)),
            }
        }
        // A rejected launch would be reported as missing, too.
        if findings.is_empty() {
            for (node, launches) in of_node.iter().enumerate() {
                check_inputs(problem, node, launches, inputs, judged.launches, &mut findings);
            }
        }
        if !findings.is_empty() {
            return Err(findings);
        }
        let of_input = of_node.iter().map(|launches| by_input(launches, inputs)).collect();
        let launches = Self { of_node, of_input };
        launches.check_groups(problem, &mut findings);
        if findings.is_empty() { Ok(launches) } else { Err(findings) }
    }

    /// Returns the number of common inputs of each pair of launches of two nodes that has any, by number of the first
    /// launch, then of the second.
    pub(super) fn pairs(&self, first: usize, second: usize) -> BTreeMap<(usize, usize), u32> {
        let mut pairs = BTreeMap::new();
        for (&one, &other) in self.of_input[first].iter().zip(&self.of_input[second]) {
            *pairs.entry((one, other)).or_default() += 1;
        }
        pairs
    }

    /// Checks that co-located tasks are on the same device for each input.
    fn check_groups(&self, problem: &Problem, findings: &mut Vec<Finding>) {
        for group in problem.colocate.iter().flatten() {
            let Some((&first, rest)) = group.split_first() else { continue };
            for &node in rest {
                let devices = |(here, there): (usize, usize)| {
                    (self.of_node[node][here].device, self.of_node[first][there].device)
                };
                let apart = self.pairs(node, first).into_keys().map(devices).find(|(here, there)| here != there);
                if let Some((here, there)) = apart {
                    findings.push(Finding::new(
                        problem.node_label(node),
                        format!(
                            "runs on {}, but shares a device with {}, which runs on {}",
                            problem.device_label(here),
                            problem.node_label(first),
                            problem.device_label(there)
                        ),
                    ));
                }
            }
        }
    }

    pub(super) fn all(&self) -> impl Iterator<Item = &Launch> {
        self.of_node.iter().flatten()
    }

    pub(super) fn makespan(&self) -> Micros {
        self.all().map(|launch| launch.end).fold(Micros::ZERO, Micros::max)
    }

    /// Checks that a device runs one launch at a time.
    pub(super) fn check_overlaps(&self, problem: &Problem, findings: &mut Vec<Finding>) {
        for device in 0..problem.devices.len() {
            let mut here: Vec<&Launch> = self.all().filter(|launch| launch.device == device).collect();
            here.sort_by(|a, b| a.start.total_cmp(&b.start).then(a.end.total_cmp(&b.end)));
            let mut running: Option<&Launch> = None;
            for launch in here {
                if let Some(before) = running.filter(|before| exceeds(before.end, launch.start)) {
                    findings.push(Finding::new(
                        problem.node_label(launch.node),
                        format!(
                            "starts at {} on {}, where {} runs until {}: {} µs too early",
                            number(launch.start),
                            problem.device_label(device),
                            problem.node_label(before.node),
                            number(before.end),
                            number(before.end - launch.start)
                        ),
                    ));
                }
                if running.is_none_or(|before| launch.end > before.end) {
                    running = Some(launch);
                }
            }
        }
    }
}

/// Returns one launch per node, for the only input (latency).
fn one_each(problem: &Problem, device: &[usize], start: &[Micros]) -> Result<Vec<Batch>, Vec<Finding>> {
    let nodes = problem.nodes.len();
    let mut findings = Vec::new();
    for (key, count) in [("device", device.len()), ("start", start.len())] {
        if count != nodes {
            findings.push(Finding::new(key, format!("has {count} entries, but there are {nodes} nodes")));
        }
    }
    if !findings.is_empty() {
        return Err(findings);
    }
    let batch = |node: usize| Batch { node, device: device[node], inputs: vec![0], start: start[node] };
    Ok((0..nodes).map(batch).collect())
}

fn label(problem: &Problem, index: usize, batch: &Batch) -> String {
    if batch.node < problem.nodes.len() { problem.node_label(batch.node) } else { format!("batches[{index}]") }
}

/// Checks a single launch.
fn launch(problem: &Problem, batch: &Batch, queued: u32) -> Result<Launch, String> {
    let Some(node) = problem.nodes.get(batch.node) else {
        return Err(format!("there is no node {}; there are {}", batch.node, problem.nodes.len()));
    };
    let Some(device) = problem.devices.get(batch.device) else {
        return Err(format!("runs on device {}, but there are {}", batch.device, problem.devices.len()));
    };
    let device_label = problem.device_label(batch.device);
    if let Some(pin) = node.pin.filter(|pin| *pin != batch.device) {
        return Err(format!("runs on {device_label}, but is pinned to {}", problem.device_label(pin)));
    }
    let mut inputs = BTreeSet::new();
    for input in &batch.inputs {
        if *input >= queued {
            return Err(format!("takes input {input} on {device_label}, but {queued} are queued, counted from 0"));
        }
        if !inputs.insert(*input) {
            return Err(format!("takes input {input} twice on {device_label}"));
        }
    }
    let size = batch.inputs.len();
    let taken = u32::try_from(size).ok().filter(|size| device.batch_sizes.contains(size));
    let Some(taken) = taken else {
        return Err(format!("a batch of {size} on {device_label}, which takes {:?}", device.batch_sizes));
    };
    let Some(duration) = node.time.get(&taken).and_then(|times| times[batch.device]) else {
        return Err(format!("runs on {device_label}, which does not support it in a batch of {size}"));
    };
    if !batch.start.is_finite() || batch.start < Micros::ZERO {
        return Err(format!("starts at {} on {device_label}", number(batch.start)));
    }
    let end = batch.start + duration;
    Ok(Launch { node: batch.node, device: batch.device, inputs, start: batch.start, end, direct: false })
}

/// Returns the launch of each input. Each input has exactly one.
fn by_input(launches: &[Launch], queued: u32) -> Vec<usize> {
    let mut of_input = vec![0; queued as usize];
    for (index, launch) in launches.iter().enumerate() {
        launch.inputs.iter().for_each(|input| of_input[*input as usize] = index);
    }
    of_input
}

/// Checks that each input runs once (eq. 1) and, unless any number of launches is allowed, with at most one launch per
/// device (eq. 5).
fn check_inputs(
    problem: &Problem,
    node: usize,
    launches: &[Launch],
    queued: u32,
    rule: LaunchRule,
    findings: &mut Vec<Finding>,
) {
    let mut wrong = |message: String| findings.push(Finding::new(problem.node_label(node), message));
    let mut taken_by: BTreeMap<u32, usize> = BTreeMap::new();
    let mut used = BTreeSet::new();
    for launch in launches {
        let device = problem.device_label(launch.device);
        let is_repeated = !used.insert(launch.device) && rule == LaunchRule::One;
        if is_repeated {
            wrong(format!("launches more than once on {device}"));
        }
        for input in &launch.inputs {
            match taken_by.insert(*input, launch.device) {
                Some(other) if other != launch.device => {
                    wrong(format!("takes input {input} on {} and on {device}", problem.device_label(other)));
                }
                Some(_) if !is_repeated => wrong(format!("takes input {input} in two launches on {device}")),
                _ => {}
            }
        }
    }
    let missing: Vec<u32> = (0..queued).filter(|input| !taken_by.contains_key(input)).collect();
    match missing.as_slice() {
        [] => {}
        [input] => wrong(format!("does not run for input {input}")),
        [first, ..] => wrong(format!("does not run for {} inputs, {first} among them", missing.len())),
    }
}
