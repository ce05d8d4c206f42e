//! Which nodes must share a block: those of a group, and those on a path between such, as blocks must not wait for each other
//! in a circle.

use crate::model::error::Error;
use crate::model::problem::Problem;

/// The nodes of each task. Nodes of a task are in an order in which they can run, and so are the tasks.
pub(super) fn together(problem: &Problem, groups: &[Vec<usize>]) -> Result<Vec<Vec<usize>>, Error> {
    let order = problem.topological_order().map_err(|finding| Error::Problem(vec![finding]))?;
    if groups.iter().all(|group| group.len() < 2) {
        return Ok(order.into_iter().map(|node| vec![node]).collect());
    }
    let mut next: Vec<Vec<usize>> = vec![Vec::new(); order.len()];
    for tensor in problem.all_tensors() {
        next[tensor.from].extend(tensor.to);
    }
    for group in groups {
        // A circle through the group makes it one component.
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

/// Tarjan's strongly connected components, those that others lead to last.
fn components(next: &[Vec<usize>]) -> Vec<Vec<usize>> {
    const NEW: usize = usize::MAX;
    let (mut index, mut low) = (vec![NEW; next.len()], vec![0; next.len()]);
    let mut done = vec![false; next.len()];
    let (mut open, mut found) = (Vec::new(), Vec::new());
    let mut count = 0;
    for root in 0..next.len() {
        // The path from the root, with how many successors of each node have been looked at.
        let mut path = if index[root] == NEW { vec![(root, 0)] } else { Vec::new() };
        while let Some(&mut (node, ref mut seen)) = path.last_mut() {
            if index[node] == NEW {
                (index[node], low[node]) = (count, count);
                count += 1;
                open.push(node);
            }
            if let Some(&to) = next[node].get(*seen) {
                *seen += 1;
                if index[to] == NEW {
                    path.push((to, 0));
                } else if !done[to] {
                    low[node] = low[node].min(index[to]);
                }
                continue;
            }
            path.pop();
            if let Some(&(parent, _)) = path.last() {
                low[parent] = low[parent].min(low[node]);
            }
            if low[node] == index[node] {
                let start = open.iter().rposition(|other| *other == node).unwrap_or(0);
                let component = open.split_off(start);
                component.iter().for_each(|member| done[*member] = true);
                found.push(component);
            }
        }
    }
    found.reverse();
    found
}

#[cfg(test)]
mod tests {
    use super::components;

    #[test]
    fn circles_are_one_and_the_rest_keeps_its_order() {
        // 0 -> 1 -> 2 -> 0, 2 -> 3 -> 4, 5 alone.
        let mut found = components(&[vec![1], vec![2], vec![0, 3], vec![4], vec![], vec![]]);
        found.iter_mut().for_each(|component| component.sort_unstable());
        let place = |node: usize| found.iter().position(|component| component.contains(&node)).unwrap();
        assert_eq!(found.len(), 4);
        assert_eq!(found[place(0)], [0, 1, 2]);
        assert!(place(0) < place(3) && place(3) < place(4));
    }
}
