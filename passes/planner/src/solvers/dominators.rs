//! Cuts for piecewise planning (SortingHat's 3.1): tasks on every path from the inputs to the outputs, that is, the
//! dominators of the outputs.
//!
//! Some values bypass all of them, for instance a mask that every layer reads; strictly, no dominator follows such a
//! value. Only its first reader counts here: a piecewise planner tracks where the value was produced and where it has
//! been sent.

use std::ops::Range;

use crate::model::instance::{Instance, Tensor};
use crate::solvers::cuts::not_passed;

/// Minimum distance from producer to last reader, as a share of all tasks, of a value that bypasses dominators.
const FAR: f64 = 0.25;

/// Returns the tasks on every path from a source to a sink, in order. Edges are pairs of positions in the order,
/// ascending; `is_taken` excludes edges from paths.
pub(crate) fn dominators(
    count: usize,
    edges: &[(usize, usize)],
    is_taken: impl Fn(usize, usize) -> bool,
) -> Vec<usize> {
    let (mut is_entered, mut is_left) = (vec![false; count], vec![false; count]);
    // A path that avoids a task has an edge across its position, and every such edge lies on a path between source and
    // sink. Positions are shifted by one: zero is before all.
    let mut spans = Vec::new();
    for &(from, to) in edges {
        (is_left[from], is_entered[to]) = (true, true);
        spans.extend(is_taken(from, to).then_some((from + 1, to + 1)));
    }
    for place in 0..count {
        spans.extend((!is_entered[place]).then_some((0, place + 1)));
        spans.extend((!is_left[place]).then_some((place + 1, count + 1)));
    }
    let found = not_passed(count + 2, spans).into_iter();
    found.filter(|place| (1..=count).contains(place)).map(|place| place - 1).collect()
}

/// Returns pieces of the topological order, each ending with a dominator; `dominators_each` dominators per piece.
pub(crate) fn submodels(instance: &Instance, dominators_each: usize) -> Vec<Range<usize>> {
    let tasks = instance.tasks();
    let mut place = vec![0; tasks];
    instance.order().iter().enumerate().for_each(|(index, task)| place[*task] = index);
    let of_tensor = |tensor: &Tensor| -> Vec<(usize, usize)> {
        tensor.consumers.iter().map(|to| (place[tensor.producer], place[*to])).collect()
    };
    let edges: Vec<(usize, usize)> = instance.tensors().iter().flat_map(of_tensor).collect();
    let (mut nearest, mut farthest) = (vec![tasks; tasks], vec![0; tasks]);
    for &(from, to) in &edges {
        (nearest[from], farthest[from]) = (nearest[from].min(to), farthest[from].max(to));
    }
    let goes_past = |from: usize| farthest[from] as f64 - from as f64 > FAR * tasks as f64;
    let found = dominators(tasks, &edges, |from, to| !goes_past(from) || to == nearest[from]);
    let mut pieces = Vec::new();
    let mut start = 0;
    for last in found.chunks(dominators_each.max(1)).filter_map(|some| some.last()) {
        pieces.push(start..last + 1);
        start = last + 1;
    }
    if start < tasks {
        pieces.push(start..tasks);
    }
    pieces
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::plan::Objective;
    use crate::random::Random;
    use crate::testing::{Rwnn, rwnn};

    /// Returns true if a path from a source to a sink avoids a task.
    fn is_passed_by(task: usize, count: usize, edges: &[(usize, usize)]) -> bool {
        let is_first = |node: usize| edges.iter().all(|(_, to)| *to != node);
        let is_last = |node: usize| edges.iter().all(|(from, _)| *from != node);
        let mut reached: Vec<usize> = (0..count).filter(|node| *node != task && is_first(*node)).collect();
        let mut next = 0;
        while let Some(&node) = reached.get(next) {
            if is_last(node) {
                return true;
            }
            for (_, to) in edges.iter().filter(|(from, to)| *from == node && *to != task) {
                if !reached.contains(to) {
                    reached.push(*to);
                }
            }
            next += 1;
        }
        false
    }

    #[test]
    fn every_path_visits_them() {
        let mut random = Random::new(1);
        let mut found = 0;
        for _ in 0..500 {
            let count = 1 + random.below(9);
            let dense = random.between(0.1, 0.6);
            let pairs = (0..count).flat_map(|from| (from + 1..count).map(move |to| (from, to)));
            let edges: Vec<(usize, usize)> = pairs.filter(|_| random.chance(dense)).collect();
            let expected: Vec<usize> = (0..count).filter(|task| !is_passed_by(*task, count, &edges)).collect();
            assert_eq!(dominators(count, &edges, |_, _| true), expected, "{edges:?}");
            found += expected.len();
        }
        assert!(found > 200, "{found}");
    }

    /// Modules in sequence, and a value from the first task that the last tasks read.
    #[test]
    fn pieces_are_the_whole() {
        let mut problem = rwnn(&Rwnn { modules: 6, channels: 1, strong: true, seed: 1, ..Rwnn::default() }).unwrap();
        let instance = Instance::new(&problem, Objective::Latency).unwrap();
        let whole = submodels(&instance, 1);
        assert!(whole.len() > 5, "{whole:?}");
        let twice = submodels(&instance, 2);
        assert!(twice.len() < whole.len());
        for pieces in [&whole, &twice] {
            assert_eq!((pieces[0].start, pieces[pieces.len() - 1].end), (0, instance.tasks()));
            assert!(pieces.windows(2).all(|two| two[0].end == two[1].start));
        }
        // A value that bypasses everything.
        let (first, last) = (instance.order()[0], instance.order()[instance.tasks() - 1]);
        let edges = problem.edges.get_or_insert_default();
        if !edges.contains(&(first, last)) {
            edges.push((first, last));
        }
        let passed = submodels(&Instance::new(&problem, Objective::Latency).unwrap(), 1);
        assert!(passed.len() + 2 >= whole.len(), "{} of {}", passed.len(), whole.len());
    }
}
