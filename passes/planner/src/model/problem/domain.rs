//! Allowed devices of each task: arc consistency of support, pins, co-location and links.

use crate::model::error::Finding;
use crate::model::plan::Objective;
use crate::model::problem::Problem;
use crate::model::units::BytesPerMicro;

/// Allowed devices of each task, and co-location groups.
pub(crate) struct Domains {
    /// Ascending. Empty if there is a contradiction.
    pub(crate) allowed: Vec<Vec<usize>>,
    /// Each task is in exactly one group; tasks are ascending, and groups ascending by first task.
    pub(crate) groups: Vec<Vec<usize>>,
    /// Reason why a task has no device.
    reason: Option<Finding>,
}

impl Domains {
    /// Computes the domains. The problem's indices are in range, and its matrices have their sizes.
    pub(crate) fn new(problem: &Problem, objective: Objective) -> Self {
        Self::up_to(problem, objective, if objective == Objective::Batch { problem.inputs } else { 1 })
    }

    /// Computes the domains for launches of at most `most` inputs.
    pub(crate) fn up_to(problem: &Problem, objective: Objective, most: u32) -> Self {
        let groups = groups(problem);
        let devices = problem.devices.len();
        let mut allowed: Vec<Vec<usize>> = (0..problem.nodes.len())
            .map(|node| (0..devices).filter(|device| supports(problem, most, node, *device)).collect())
            .collect();
        let mut reason = None;
        for group in &groups {
            let common: Vec<usize> =
                allowed[group[0]].iter().copied().filter(|u| group.iter().all(|i| allowed[*i].contains(u))).collect();
            if common.is_empty() && reason.is_none() {
                reason = Some(no_common_device(problem, objective, most, group));
            }
            for &node in group {
                allowed[node].clone_from(&common);
            }
        }
        if reason.is_none() {
            reason = propagate(problem, &groups, &mut allowed);
        }
        Self { allowed, groups, reason }
    }

    /// Returns the reason why there is no placement, as far as edges one at a time show it.
    pub(crate) fn contradiction(&self) -> Option<Finding> {
        self.reason.clone()
    }
}

/// Returns true if a device may run a task in some batch size that it supports, up to `most`.
fn supports(problem: &Problem, most: u32, node: usize, device: usize) -> bool {
    let node = &problem.nodes[node];
    let runs = |size: &u32| *size <= most && node.time.get(size).is_some_and(|times| times[device].is_some());
    node.pin.is_none_or(|pin| pin == device) && problem.devices[device].batch_sizes.iter().any(runs)
}

/// Returns the co-location groups. Co-location is transitive: lists that share a task are one group (union-find).
fn groups(problem: &Problem) -> Vec<Vec<usize>> {
    let count = problem.nodes.len();
    let mut leader: Vec<usize> = (0..count).collect();
    fn find(leader: &mut [usize], node: usize) -> usize {
        let mut root = node;
        while leader[root] != root {
            root = leader[root];
        }
        leader[node] = root;
        root
    }
    for list in problem.colocate.iter().flatten() {
        for pair in list.windows(2) {
            let (a, b) = (find(&mut leader, pair[0]), find(&mut leader, pair[1]));
            leader[a.max(b)] = a.min(b);
        }
    }
    let mut groups: Vec<Vec<usize>> = vec![Vec::new(); count];
    for node in 0..count {
        groups[find(&mut leader, node)].push(node);
    }
    groups.retain(|group| !group.is_empty());
    groups
}

/// Returns the reason why a group has no device.
fn no_common_device(problem: &Problem, objective: Objective, most: u32, group: &[usize]) -> Finding {
    if let [node] = group {
        let size = match objective {
            Objective::Batch => "a size".to_owned(),
            Objective::Pipeline if most > 1 => format!("a size up to {most}"),
            Objective::Latency | Objective::Pipeline => "1".to_owned(),
        };
        let pin = problem.nodes[*node].pin.map(|pin| format!(" and is {}", problem.device_label(pin)));
        // Batches of other sizes may be possible.
        let sizes: Vec<String> = problem.nodes[*node].time.keys().map(u32::to_string).collect();
        let is_batched =
            objective != Objective::Batch && !problem.nodes[*node].time.contains_key(&1) && !sizes.is_empty();
        let sizes = sizes.join(", ");
        let other = is_batched.then(|| match objective {
            Objective::Pipeline => format!("; its batches are of {sizes} (--max-batch)"),
            Objective::Latency | Objective::Batch => format!("; objective batch plans its batches of {sizes}"),
        });
        return Finding::new(
            problem.node_label(*node),
            format!(
                "objective {objective} needs a device that has {size} among its batch_sizes, and a time for it{}; there \
                 is none{}",
                pin.unwrap_or_default(),
                other.unwrap_or_default()
            ),
        );
    }
    let devices_of = |node: &usize| -> String {
        let names: Vec<&str> = (0..problem.devices.len())
            .filter(|device| supports(problem, most, *node, *device))
            .map(|device| problem.devices[device].name.as_str())
            .collect();
        let names = if names.is_empty() { "none".to_owned() } else { names.join(", ") };
        format!("{} on {names}", problem.node_label(*node))
    };
    let nodes: Vec<String> = group.iter().map(devices_of).collect();
    Finding::new("colocate", format!("tasks that share a device have none in common: {}", nodes.join("; ")))
}

/// Removes devices without a link to any device of a neighbor, until nothing changes (arc consistency).
fn propagate(problem: &Problem, groups: &[Vec<usize>], allowed: &mut [Vec<usize>]) -> Option<Finding> {
    let linked = |from: usize, to: usize| from == to || problem.bandwidth[from][to] != Some(BytesPerMicro::ZERO);
    let devices = problem.devices.len();
    if (0..devices).all(|from| (0..devices).all(|to| linked(from, to))) {
        return None;
    }
    let mut group_of = vec![0; allowed.len()];
    for (index, group) in groups.iter().enumerate() {
        for &node in group {
            group_of[node] = index;
        }
    }
    let edges: Vec<(usize, usize)> =
        problem.all_tensors().iter().flat_map(|t| t.to.iter().map(|to| (t.from, *to)).collect::<Vec<_>>()).collect();
    let mut changed = true;
    while changed {
        changed = false;
        for &(from, to) in &edges {
            let senders: Vec<usize> =
                allowed[from].iter().copied().filter(|u| allowed[to].iter().any(|v| linked(*u, *v))).collect();
            let receivers: Vec<usize> =
                allowed[to].iter().copied().filter(|v| allowed[from].iter().any(|u| linked(*u, *v))).collect();
            if senders.is_empty() || receivers.is_empty() {
                let names = |devices: &[usize]| {
                    devices.iter().map(|device| problem.devices[*device].name.as_str()).collect::<Vec<_>>().join(", ")
                };
                return Some(Finding::new(
                    format!("edge [{from}, {to}]"),
                    format!(
                        "no link leads from where {} may run ({}) to where {} may run ({})",
                        problem.node_label(from),
                        names(&allowed[from]),
                        problem.node_label(to),
                        names(&allowed[to])
                    ),
                ));
            }
            for (node, left) in [(from, senders), (to, receivers)] {
                if left.len() < allowed[node].len() {
                    changed = true;
                    for &member in &groups[group_of[node]] {
                        allowed[member].clone_from(&left);
                    }
                }
            }
        }
    }
    None
}
