//! Checks of nodes, and of references to them.

use std::collections::BTreeSet;

use super::unfit;
use crate::model::error::Finding;
use crate::model::problem::{Node, Problem};
use crate::model::units::{BytesPerMicro, short_number};

impl Problem {
    pub(super) fn check_nodes(&self, findings: &mut Vec<Finding>) {
        for (position, node) in self.nodes.iter().enumerate() {
            let before = findings.len();
            self.check_node(position, node, findings);
            // The devices of an invalid node are not checked.
            if findings.len() == before {
                self.check_support(position, node, findings);
            }
        }
    }

    fn check_node(&self, position: usize, node: &Node, findings: &mut Vec<Finding>) {
        let mut wrong = |message: String| findings.push(Finding::new(self.node_label(position), message));
        if node.id != position {
            wrong(format!("id is {}, but its position is {position}", node.id));
        }
        let sizes = [("weight", node.weight), ("input", node.input), ("scratch", node.scratch)];
        for (key, value) in sizes.into_iter().chain(node.output.map(|output| ("output", output))) {
            if let Some(reason) = unfit(value) {
                wrong(format!("{key} {reason}"));
            }
        }
        if node.output.is_none() && self.tensors.is_none() {
            wrong("output is missing; it may only be left out where the problem has tensors".to_owned());
        }
        for (size, times) in &node.time {
            if times.len() != self.devices.len() {
                wrong(format!(
                    "time[\"{size}\"] has {} entries, but there are {} devices",
                    times.len(),
                    self.devices.len()
                ));
            }
            for (device, time) in times.iter().enumerate() {
                if let Some(reason) = time.and_then(unfit) {
                    wrong(format!("time[\"{size}\"][{device}] {reason}"));
                }
            }
        }
        for device in &self.devices {
            for size in &device.batch_sizes {
                // Sizes beyond the queue are never used, so they need no times.
                if *size <= self.inputs && !node.time.contains_key(size) {
                    wrong(format!("has no times for batches of {size}, which {} takes", device.name));
                }
            }
        }
        if let Some(pin) = node.pin.filter(|pin| *pin >= self.devices.len()) {
            wrong(format!("is pinned to device {pin}, but there are {} devices", self.devices.len()));
        }
    }

    fn check_support(&self, position: usize, node: &Node, findings: &mut Vec<Finding>) {
        let runs_on = |device: usize| {
            let runs = |size: &u32| node.time.get(size).is_some_and(|times| times[device].is_some());
            self.devices[device].batch_sizes.iter().any(runs)
        };
        if !(0..self.devices.len()).any(runs_on) {
            findings.push(Finding::new(self.node_label(position), "no device supports it"));
        } else if let Some(pin) = node.pin.filter(|pin| !runs_on(*pin)) {
            let message = format!("is pinned to {}, which does not support it", self.device_label(pin));
            findings.push(Finding::new(self.node_label(position), message));
        }
    }

    pub(super) fn check_edges(&self, findings: &mut Vec<Finding>) {
        let count = self.nodes.len();
        let beyond = |node: usize| format!("there is no node {node}; there are {count}");
        let mut seen = BTreeSet::new();
        for (index, &(from, to)) in self.edges.iter().flatten().enumerate() {
            let mut wrong = |message: String| {
                findings.push(Finding::new(format!("edges[{index}]"), format!("[{from}, {to}]: {message}")));
            };
            for node in [from, to] {
                if node >= count {
                    wrong(beyond(node));
                }
            }
            if from == to {
                wrong("a node cannot wait for itself".to_owned());
            }
            if !seen.insert((from, to)) {
                wrong("duplicate edge".to_owned());
            }
        }
        for (index, tensor) in self.tensors.iter().flatten().enumerate() {
            let mut wrong = |message: String| findings.push(Finding::new(format!("tensors[{index}]"), message));
            if let Some(reason) = unfit(tensor.bytes) {
                wrong(format!("bytes {reason}"));
            }
            if tensor.from >= count {
                wrong(beyond(tensor.from));
            }
            let mut readers = BTreeSet::new();
            for &to in &tensor.to {
                if to >= count {
                    wrong(beyond(to));
                }
                if to == tensor.from {
                    wrong(format!("goes to node {to}, which computes it"));
                }
                if !readers.insert(to) {
                    wrong(format!("goes to node {to} twice"));
                }
            }
        }
    }

    pub(super) fn check_groups(&self, findings: &mut Vec<Finding>) {
        let lists = [("modules", &self.modules), ("colocate", &self.colocate)];
        for (key, list) in lists.into_iter().filter_map(|(key, list)| Some((key, list.as_ref()?))) {
            let mut seen = BTreeSet::new();
            for (index, group) in list.iter().enumerate() {
                for &node in group {
                    let mut wrong = |message: String| findings.push(Finding::new(format!("{key}[{index}]"), message));
                    if node >= self.nodes.len() {
                        wrong(format!("there is no node {node}; there are {}", self.nodes.len()));
                    }
                    if !seen.insert((if key == "modules" { 0 } else { index }, node)) {
                        wrong(format!("duplicate node {node}"));
                    }
                }
            }
        }
    }

    pub(super) fn check_machines(&self, findings: &mut Vec<Finding>) {
        let mut seen = BTreeSet::new();
        for (index, devices) in self.machines.iter().flatten().enumerate() {
            let mut wrong = |message: String| findings.push(Finding::new(format!("machines[{index}]"), message));
            if devices.is_empty() {
                wrong("has no devices".to_owned());
            }
            for &device in devices {
                if device >= self.devices.len() {
                    wrong(format!("there is no device {device}; there are {}", self.devices.len()));
                }
                if !seen.insert(device) {
                    wrong(format!("duplicate device {device}"));
                }
            }
        }
    }

    pub(super) fn check_views(&self, findings: &mut Vec<Finding>) {
        let nodes = self.nodes.len();
        if let Some(view) = &self.mtpp {
            figures("mtpp.work", &view.work, nodes, "nodes", findings);
            if view.bandwidth.0.is_nan() || view.bandwidth <= BytesPerMicro::ZERO {
                findings
                    .push(Finding::new("mtpp.bandwidth", format!("{} is not positive", short_number(view.bandwidth))));
            }
            if let Some(reason) = view.memory.and_then(unfit) {
                findings.push(Finding::new("mtpp.memory", reason));
            }
            if view.k.contains(&0) {
                findings.push(Finding::new("mtpp.k", "has a 0: a pipeline has at least one stage"));
            }
        }
    }
}

/// One sensible number for each of something.
pub(super) fn figures<T: Copy + Into<f64>>(
    key: &str,
    values: &[T],
    expected: usize,
    of: &str,
    findings: &mut Vec<Finding>,
) {
    if values.len() != expected {
        let message = format!("has {} entries, but there are {expected} {of}", values.len());
        findings.push(Finding::new(key, message));
    }
    for (index, value) in values.iter().enumerate() {
        if let Some(reason) = unfit(*value) {
            findings.push(Finding::new(format!("{key}[{index}]"), reason));
        }
    }
}
