//! Merges nodes that must share a block: those of a group, and those on a path between them, as blocks must not depend
//! on each other cyclically.

use petgraph::algo::kosaraju_scc;
use petgraph::graph::{DiGraph, NodeIndex};

use crate::model::error::Error;
use crate::model::problem::Problem;

/// Returns the nodes of each task. Nodes within a task and the tasks are in topological order.
pub(super) fn merge_nodes(problem: &Problem, groups: &[Vec<usize>]) -> Result<Vec<Vec<usize>>, Error> {
    let order = problem.topological_order().map_err(|finding| Error::Problem(vec![finding]))?;
    if groups.iter().all(|group| group.len() < 2) {
        return Ok(order.into_iter().map(|node| vec![node]).collect());
    }
    let mut next: Vec<Vec<usize>> = vec![Vec::new(); order.len()];
    for tensor in problem.all_tensors() {
        next[tensor.from].extend(tensor.to);
    }
    for group in groups {
        // A cycle through the group makes it one component.
        for (place, &node) in group.iter().enumerate() {
            next[node].push(group[(place + 1) % group.len()]);
        }
    }
    let mut place = vec![0; order.len()];
    order.iter().enumerate().for_each(|(index, node)| place[*node] = index);
    let mut tasks = components(&next);
    tasks.iter_mut().for_each(|nodes| nodes.sort_unstable_by_key(|node| place[*node]));
    Ok(tasks)
}

/// Returns the strongly connected components in topological order.
fn components(next: &[Vec<usize>]) -> Vec<Vec<usize>> {
    // The edges are reversed, since `kosaraju_scc` returns components in reverse topological order.
    let mut graph = DiGraph::<(), ()>::new();
    for _ in next {
        graph.add_node(());
    }
    graph
        .extend_with_edges(next.iter().zip(0_u32..).flat_map(|(to, from)| to.iter().map(move |to| (*to as u32, from))));
    let components = kosaraju_scc(&graph).into_iter();
    components.map(|component| component.into_iter().map(NodeIndex::index).collect()).collect()
}

#[cfg(test)]
mod tests {
    use super::components;

    #[test]
    fn cycles_are_merged_and_the_order_is_topological() {
        // 0 -> 1 -> 2 -> 0, 2 -> 3 -> 4, 5 alone.
        let mut found = components(&[vec![1], vec![2], vec![0, 3], vec![4], vec![], vec![]]);
        found.iter_mut().for_each(|component| component.sort_unstable());
        let place = |node: usize| found.iter().position(|component| component.contains(&node)).unwrap();
        assert_eq!(found.len(), 4);
        assert_eq!(found[place(0)], [0, 1, 2]);
        assert!(place(0) < place(3) && place(3) < place(4));
    }
}
