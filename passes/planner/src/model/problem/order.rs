//! Topological order, or the cycle that prevents it.

use std::collections::BTreeSet;

use super::Problem;
use crate::model::error::Finding;

/// Maximum number of tasks of a cycle in a message.
const MOST_NAMES: usize = 12;

impl Problem {
    /// Returns Kahn's topological order, lowest number first; or an error with a cycle.
    pub fn topological_order(&self) -> Result<Vec<usize>, Finding> {
        let count = self.nodes.len();
        let mut successors = vec![Vec::new(); count];
        let mut waiting_for = vec![0_usize; count];
        for tensor in self.all_tensors() {
            for to in tensor.to {
                successors[tensor.from].push(to);
                waiting_for[to] += 1;
            }
        }
        let mut ready: BTreeSet<usize> = (0..count).filter(|node| waiting_for[*node] == 0).collect();
        let mut order = Vec::with_capacity(count);
        while let Some(node) = ready.pop_first() {
            order.push(node);
            for &next in &successors[node] {
                waiting_for[next] -= 1;
                if waiting_for[next] == 0 {
                    ready.insert(next);
                }
            }
        }
        if order.len() == count { Ok(order) } else { Err(cycle(self, &successors, &waiting_for)) }
    }
}

/// Describes one cycle among the tasks that still have predecessors.
fn cycle(problem: &Problem, successors: &[Vec<usize>], waiting_for: &[usize]) -> Finding {
    let mut before = vec![None; waiting_for.len()];
    for (node, next) in successors.iter().enumerate().flat_map(|(node, next)| next.iter().map(move |to| (node, *to))) {
        if waiting_for[node] > 0 && waiting_for[next] > 0 {
            before[next] = Some(node);
        }
    }
    // Each remaining task has a remaining predecessor, so walking backwards visits a task twice.
    let mut path: Vec<usize> = waiting_for.iter().position(|count| *count > 0).into_iter().collect();
    let mut place = vec![None; waiting_for.len()];
    while let Some(&node) = path.last() {
        place[node] = Some(path.len() - 1);
        let Some(earlier) = before[node] else { break };
        if let Some(start) = place[earlier] {
            path.drain(..start);
            break;
        }
        path.push(earlier);
    }
    path.reverse();
    // The same cycle has the same text, wherever it was entered.
    let lowest = (0..path.len()).min_by_key(|place| path[*place]).unwrap_or(0);
    path.rotate_left(lowest);
    let mut names: Vec<String> = path.iter().take(MOST_NAMES).map(|node| problem.node_label(*node)).collect();
    if path.len() > MOST_NAMES {
        names.push(format!("{} more", path.len() - MOST_NAMES));
    }
    names.extend(names.first().cloned());
    Finding::new("edges", format!("the task graph has a cycle: {}", names.join(" -> ")))
}
