//! Necessary conditions, without a solver: tasks with one allowed device fit into its memory, and the queue can be split
//! into batches.

use std::collections::BTreeMap;

use crate::model::error::Finding;
use crate::model::plan::{LaunchRule, Objective};
use crate::model::problem::{Domains, MemoryModel, Problem, abbreviated};
use crate::model::units::{Bytes, human_bytes};

/// Tasks that run on the same devices in the same batch sizes.
struct Cut {
    adds_up: bool,
    first: usize,
    count: usize,
}

impl Problem {
    /// Checks batch sizes: the sizes of a task's launches, at most one or any number on each device, must sum to the
    /// queue.
    pub(super) fn check_batches(
        &self,
        objective: Objective,
        launches: LaunchRule,
        domains: &Domains,
        findings: &mut Vec<Finding>,
    ) {
        if objective != Objective::Batch {
            return;
        }
        let inputs = self.inputs as usize;
        // Most tasks have the same sizes, so there are few different sums and few findings.
        let mut known: BTreeMap<(&[usize], Vec<Vec<usize>>), Cut> = BTreeMap::new();
        for (node, allowed) in domains.allowed.iter().enumerate() {
            let sizes_on = |device: &usize| -> Vec<usize> {
                let runs = |size: &&u32| self.nodes[node].time.get(size).is_some_and(|times| times[*device].is_some());
                self.devices[*device].batch_sizes.iter().filter(runs).map(|size| *size as usize).collect()
            };
            let sizes: Vec<Vec<usize>> = allowed.iter().map(sizes_on).collect();
            let cut = known.entry((allowed, sizes)).or_insert_with_key(|(_, sizes)| {
                let adds_up = adds_up(sizes, inputs, launches);
                Cut { adds_up, first: node, count: 0 }
            });
            cut.count += 1;
        }
        let mut wrong: Vec<_> = known.iter().filter(|(_, cut)| !cut.adds_up).collect();
        wrong.sort_by_key(|(_, cut)| cut.first);
        for ((allowed, sizes), cut) in wrong {
            let takes = allowed.iter().zip(sizes);
            let takes = takes.map(|(&device, sizes)| format!("{} takes {sizes:?}", self.devices[device].name));
            let takes = takes.collect::<Vec<_>>().join(", ");
            let tasks = match cut.count - 1 {
                0 => self.node_label(cut.first),
                more => format!("{} and {more} more", self.node_label(cut.first)),
            };
            let batches = if launches == LaunchRule::One { "one batch a device" } else { "batches" };
            let message = format!("{inputs} inputs cannot be cut into {batches}: {takes} (batch_sizes)");
            findings.push(Finding::new(tasks, message));
        }
    }

    pub(super) fn check_memory(&self, objective: Objective, domains: &Domains, findings: &mut Vec<Finding>) {
        let inputs = if objective == Objective::Batch { f64::from(self.inputs) } else { 1.0 };
        // Memory of a task on any device, for all inputs. With liveness only weights are sure to be resident at the same
        // time, but a pipeline has several inputs in flight.
        let output = self.output_bytes();
        let model = if objective == Objective::Pipeline { MemoryModel::Static } else { self.memory_model };
        let need = |node: usize, inputs: f64| match model {
            MemoryModel::Static => self.nodes[node].weight + (self.nodes[node].input + output[node]) * inputs,
            MemoryModel::Liveness => self.nodes[node].weight,
        };
        let before = findings.len();
        let mut forced: Vec<Vec<usize>> = vec![Vec::new(); self.devices.len()];
        for group in &domains.groups {
            match domains.allowed[group[0]].as_slice() {
                [device] => forced[*device].extend(group),
                // Different inputs of a group may be on different devices; one input may not.
                devices => {
                    let bytes = group.iter().map(|node| need(*node, 1.0)).sum();
                    self.check_one_input(group, bytes, devices, findings);
                }
            }
        }
        for (device, nodes) in forced.iter().enumerate() {
            let bytes: Vec<(Bytes, usize)> = nodes.iter().map(|node| (need(*node, inputs), *node)).collect();
            self.check_room(device, &bytes, findings);
        }
        if findings.len() == before {
            let total: Bytes = (0..self.nodes.len()).map(|node| need(node, inputs)).sum();
            let room: Bytes = self.devices.iter().map(|device| device.memory.unwrap_or(Bytes::INFINITY)).sum();
            if total > room {
                findings.push(Finding::new(
                    "devices",
                    format!(
                        "the tasks need {}, all devices together have {}: {} short",
                        human_bytes(total),
                        human_bytes(room),
                        human_bytes(total - room)
                    ),
                ));
            }
        }
    }

    /// Checks that one input of a group fits into some device.
    fn check_one_input(&self, group: &[usize], bytes: Bytes, devices: &[usize], findings: &mut Vec<Finding>) {
        let room = |device: &usize| self.devices[*device].memory.unwrap_or(Bytes::INFINITY);
        let most = devices.iter().map(room).fold(Bytes::ZERO, Bytes::max);
        if bytes > most {
            let needs = if group.len() == 1 { "needs" } else { "needs with those that share its device" };
            findings.push(Finding::new(
                self.node_label(group[0]),
                format!(
                    "{needs} {}, the roomiest device that it may run on has {}: {} short",
                    human_bytes(bytes),
                    human_bytes(most),
                    human_bytes(bytes - most)
                ),
            ));
        }
    }

    /// Checks that tasks with only one allowed device fit into it.
    fn check_room(&self, device: usize, nodes: &[(Bytes, usize)], findings: &mut Vec<Finding>) {
        let bytes: Bytes = nodes.iter().map(|(bytes, _)| bytes).sum();
        let Some(room) = self.devices[device].memory.filter(|room| bytes > *room) else { return };
        let mut message = format!(
            "tasks that can run nowhere else need {}, it has {}: {} short",
            human_bytes(bytes),
            human_bytes(room),
            human_bytes(bytes - room)
        );
        let is_pinned = |(bytes, node): &&(Bytes, usize)| *bytes > Bytes::ZERO && self.nodes[*node].pin.is_some();
        let pinned: Vec<&(Bytes, usize)> = nodes.iter().filter(is_pinned).collect();
        if pinned.len() > 1 {
            let held: Bytes = pinned.iter().map(|(bytes, _)| bytes).sum();
            let all: Vec<usize> = pinned.iter().map(|(_, node)| *node).collect();
            let elsewhere: Vec<usize> = (0..self.nodes.len()).filter(|node| self.nodes[*node].pin.is_some()).collect();
            let names = abbreviated(self, &all, &elsewhere);
            message += &format!("; pins on {names} hold {} of it", human_bytes(held));
        }
        if let Some((most, node)) = nodes.iter().max_by(|a, b| a.0.total_cmp(&b.0).then(b.1.cmp(&a.1))) {
            message += &format!("; {} alone needs {} of it", self.node_label(*node), human_bytes(*most));
        }
        findings.push(Finding::new(self.device_label(device), message));
    }
}

/// Returns true if sizes can be chosen that sum to the queue: at most one of each list, or any number.
fn adds_up(lists: &[Vec<usize>], inputs: usize, launches: LaunchRule) -> bool {
    let mut reachable = vec![false; inputs + 1];
    reachable[0] = true;
    for sizes in lists {
        let mut reach = |total: usize| {
            reachable[total] |= sizes.iter().any(|size| *size <= total && reachable[total - size]);
        };
        match launches {
            LaunchRule::One => (1..=inputs).rev().for_each(&mut reach),
            // Smaller sums contain launches on the same device.
            LaunchRule::Many => (1..=inputs).for_each(&mut reach),
        }
    }
    reachable[inputs]
}
