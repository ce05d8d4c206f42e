//! Topological orders.

use std::collections::BTreeSet;

use divi_planner::problem::Problem;

/// Returns Kahn's topological order, lowest number first; nodes on or behind a cycle are missing.
pub(crate) fn topological(nodes: usize, edges: impl Iterator<Item = (usize, usize)>) -> Vec<usize> {
    let mut behind = vec![Vec::new(); nodes];
    let mut waiting_for = vec![0_usize; nodes];
    for (from, to) in edges {
        behind[from].push(to);
        waiting_for[to] += 1;
    }
    let mut ready: BTreeSet<usize> = (0..nodes).filter(|node| waiting_for[*node] == 0).collect();
    let mut order = Vec::with_capacity(nodes);
    while let Some(node) = ready.pop_first() {
        order.push(node);
        for &next in &behind[node] {
            waiting_for[next] -= 1;
            if waiting_for[next] == 0 {
                ready.insert(next);
            }
        }
    }
    order
}

/// Returns the producer/consumer pairs, sorted and unique.
pub(crate) fn edges(problem: &Problem) -> Vec<(usize, usize)> {
    let mut edges: Vec<(usize, usize)> =
        problem.all_tensors().iter().flat_map(|tensor| tensor.to.iter().map(|to| (tensor.from, *to))).collect();
    edges.sort_unstable();
    edges.dedup();
    edges
}

#[cfg(test)]
mod tests {
    use super::topological;

    #[test]
    fn lowest_number_first_and_cycles_are_omitted() {
        assert_eq!(topological(4, [(3, 0), (0, 1)].into_iter()), [2, 3, 0, 1]);
        assert_eq!(topological(3, [(0, 1), (1, 0)].into_iter()), [2]);
        assert!(topological(0, [].into_iter()).is_empty());
    }
}
