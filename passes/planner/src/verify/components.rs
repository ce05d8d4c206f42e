//! The maximum number of stages that a pipeline on equal devices can have.

use crate::model::problem::Problem;

/// Counts the strongly connected components of the task graph in which members of a co-location group depend on each other
/// (Kosaraju's algorithm). A stage has at least one of them, since stages do not wait for each other in a circle.
pub(super) fn most_stages(problem: &Problem) -> usize {
    let count = problem.nodes.len();
    let mut edges: Vec<(usize, usize)> = Vec::new();
    for tensor in problem.all_tensors() {
        edges.extend(tensor.to.iter().map(|&to| (tensor.from, to)));
    }
    for group in problem.colocate.iter().flatten() {
        edges.extend(group.windows(2).flat_map(|pair| [(pair[0], pair[1]), (pair[1], pair[0])]));
    }
    let (mut after, mut before) = (vec![Vec::new(); count], vec![Vec::new(); count]);
    for (from, to) in edges {
        after[from].push(to);
        before[to].push(from);
    }
    let mut order = Vec::with_capacity(count);
    let mut seen = vec![false; count];
    (0..count).for_each(|node| visit(node, &after, &mut seen, &mut order));
    seen.fill(false);
    let mut components = 0;
    for node in order.into_iter().rev() {
        components += usize::from(!seen[node]);
        visit(node, &before, &mut seen, &mut Vec::new());
    }
    components
}

/// Appends what can be reached from a node and was not seen before, each behind what it leads to.
fn visit(node: usize, next: &[Vec<usize>], seen: &mut [bool], order: &mut Vec<usize>) {
    if std::mem::replace(&mut seen[node], true) {
        return;
    }
    // Nodes on the path, and how many of their successors were looked at.
    let mut path = vec![(node, 0)];
    while let Some((node, looked_at)) = path.last_mut() {
        let Some(&other) = next[*node].get(*looked_at) else {
            order.push(*node);
            path.pop();
            continue;
        };
        *looked_at += 1;
        if !std::mem::replace(&mut seen[other], true) {
            path.push((other, 0));
        }
    }
}
