//! Whether what must be somewhere fits there, and whether the queue can be cut into batches: what can be told without
//! solving.

use crate::error::Finding;
use crate::plan::Objective;
use crate::problem::{Domains, MemoryModel, Problem};
use crate::units::{Bytes, human_bytes};

impl Problem {
    /// A task launches at most once on each device, so the sizes of its launches must add up to the queue.
    pub(super) fn check_batches(&self, objective: Objective, domains: &Domains, findings: &mut Vec<Finding>) {
        if objective != Objective::Batch {
            return;
        }
        let inputs = self.inputs as usize;
        for (node, allowed) in domains.allowed.iter().enumerate() {
            let mut reachable = vec![false; inputs + 1];
            reachable[0] = true;
            for &device in allowed {
                let sizes: Vec<usize> = self.devices[device]
                    .batch_sizes
                    .iter()
                    .filter(|size| self.nodes[node].time.get(size).is_some_and(|times| times[device].is_some()))
                    .map(|size| *size as usize)
                    .collect();
                for total in (1..=inputs).rev() {
                    reachable[total] |= sizes.iter().any(|size| *size <= total && reachable[total - size]);
                }
            }
            if !reachable[inputs] {
                let message = format!(
                    "{inputs} inputs cannot be cut into one batch a device: {}",
                    allowed
                        .iter()
                        .map(|device| format!(
                            "{} takes {:?}",
                            self.devices[*device].name, self.devices[*device].batch_sizes
                        ))
                        .collect::<Vec<_>>()
                        .join(", ")
                );
                findings.push(Finding::new(self.node_label(node), message));
            }
        }
    }

    pub(super) fn check_memory(&self, objective: Objective, domains: &Domains, findings: &mut Vec<Finding>) {
        let inputs = if objective == Objective::Batch { f64::from(self.inputs) } else { 1.0 };
        // What a task takes wherever it runs, over all inputs. With liveness only weights are sure to be there at once.
        let need = |node: usize| match self.memory_model {
            MemoryModel::Static => {
                self.nodes[node].weight + (self.nodes[node].input + self.output_bytes(node)) * inputs
            }
            MemoryModel::Liveness => self.nodes[node].weight,
        };
        let before = findings.len();
        let mut forced = vec![0.0; self.devices.len()];
        for group in &domains.groups {
            let bytes: Bytes = group.iter().map(|node| need(*node)).sum();
            match domains.allowed[group[0]].as_slice() {
                [device] => forced[*device] += bytes,
                // A group may be spread by inputs; one input alone may not.
                devices => self.check_one_input(group, devices, findings),
            }
        }
        for (device, bytes) in forced.iter().enumerate() {
            self.check_room(device, *bytes, "tasks that can run nowhere else need", findings);
        }
        if findings.len() == before {
            let total: Bytes = (0..self.nodes.len()).map(need).sum();
            let room: Bytes = self.devices.iter().map(|device| device.memory.unwrap_or(f64::INFINITY)).sum();
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

    /// Whether one input of a group fits somewhere.
    fn check_one_input(&self, group: &[usize], devices: &[usize], findings: &mut Vec<Finding>) {
        let bytes: Bytes = group
            .iter()
            .map(|node| match self.memory_model {
                MemoryModel::Static => self.nodes[*node].weight + self.nodes[*node].input + self.output_bytes(*node),
                MemoryModel::Liveness => self.nodes[*node].weight,
            })
            .sum();
        let room = |device: &usize| self.devices[*device].memory.unwrap_or(f64::INFINITY);
        let most = devices.iter().map(room).fold(0.0, f64::max);
        if bytes > most {
            let who = if group.len() == 1 { "needs" } else { "needs with those that share its device" };
            findings.push(Finding::new(
                self.node_label(group[0]),
                format!(
                    "{who} {}, the roomiest device that it may run on has {}: {} short",
                    human_bytes(bytes),
                    human_bytes(most),
                    human_bytes(bytes - most)
                ),
            ));
        }
    }

    fn check_room(&self, device: usize, bytes: Bytes, who: &str, findings: &mut Vec<Finding>) {
        if let Some(room) = self.devices[device].memory.filter(|room| bytes > *room) {
            findings.push(Finding::new(
                self.device_label(device),
                format!(
                    "{who} {}, it has {}: {} short",
                    human_bytes(bytes),
                    human_bytes(room),
                    human_bytes(bytes - room)
                ),
            ));
        }
    }
}
