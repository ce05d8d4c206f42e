//! Modules of networks without single-task cuts: pieces of a topological order with few tensors between them.
//!
//! DiviML (IV-B2) uses the k-edge-connected components of the graph. In a network with tasks of degree below k those
//! fall apart into single tasks, and they need not be in sequence; so the order is cut instead, where the fewest
//! tensors pass, into pieces that are large enough to be worth solving and small enough to be solved.

use std::collections::BTreeSet;
use std::ops::Range;

use crate::model::instance::Instance;
use crate::solvers::list;

/// Minimum and maximum number of tasks of a module.
const LEAST: usize = 8;
const MOST: usize = 28;

/// An order that keeps few tensors live, and its division into modules.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Partition {
    pub(crate) order: Vec<usize>,
    pub(crate) modules: Vec<Range<usize>>,
}

impl Partition {
    pub(crate) fn new(instance: &Instance) -> Self {
        // The order with the narrowest boundaries depends on the network.
        let orders = [narrow_order(instance), instance.order().to_vec(), list::breadth_first(instance)];
        let cut = orders.map(|order| {
            let passing = passing(instance, &order);
            let modules = pieces(&passing);
            let sum: usize = modules.iter().map(|module| cost(passing[module.start])).sum();
            (sum, Self { order, modules })
        });
        let fewer = |best: (usize, Self), other: (usize, Self)| if other.0 < best.0 { other } else { best };
        cut.into_iter()
            .reduce(fewer)
            .map_or(Self { order: Vec::new(), modules: Vec::new() }, |(_, partition)| partition)
    }
}

/// Returns a topological order that greedily minimizes live tensors; ties go to the task that became ready last (depth
/// first).
fn narrow_order(instance: &Instance) -> Vec<usize> {
    let tasks = instance.tasks();
    let mut unread: Vec<usize> = instance.tensors().iter().map(|tensor| tensor.consumers.len()).collect();
    let mut waiting: Vec<usize> = (0..tasks).map(|task| instance.predecessors(task).len()).collect();
    let mut opens = vec![0_isize; tasks];
    for tensor in instance.tensors() {
        opens[tensor.producer] += isize::from(!tensor.consumers.is_empty());
    }
    // Change of the number of live tensors by a task.
    let growth = |task: usize, unread: &[usize]| {
        let closed = instance.predecessors(task).iter().filter(|arc| unread[arc.tensor] == 1).count();
        opens[task] - closed as isize
    };
    let mut key: Vec<Option<(isize, isize, usize)>> = vec![None; tasks];
    let mut ready = BTreeSet::new();
    for task in (0..tasks).filter(|task| waiting[*task] == 0) {
        let entry = (growth(task, &unread), 0, task);
        key[task] = Some(entry);
        ready.insert(entry);
    }
    let mut order = Vec::with_capacity(tasks);
    while let Some((_, _, task)) = ready.pop_first() {
        key[task] = None;
        order.push(task);
        for arc in instance.predecessors(task) {
            unread[arc.tensor] -= 1;
            // The last reader of a tensor has become a better choice.
            for &other in instance.tensors()[arc.tensor].consumers.iter().filter(|_| unread[arc.tensor] == 1) {
                if let Some(old) = key[other] {
                    let entry = (growth(other, &unread), old.1, other);
                    ready.remove(&old);
                    ready.insert(entry);
                    key[other] = Some(entry);
                }
            }
        }
        for arc in instance.successors(task) {
            waiting[arc.task] -= 1;
            if waiting[arc.task] == 0 {
                let entry = (growth(arc.task, &unread), -(order.len() as isize), arc.task);
                key[arc.task] = Some(entry);
                ready.insert(entry);
            }
        }
    }
    order
}

/// Returns the number of tensors that cross the boundary before each position of the order.
fn passing(instance: &Instance, order: &[usize]) -> Vec<usize> {
    let mut place_of = vec![0; order.len()];
    for (place, &task) in order.iter().enumerate() {
        place_of[task] = place;
    }
    let mut change = vec![0_isize; order.len() + 1];
    for tensor in instance.tensors() {
        if let Some(last) = tensor.consumers.iter().map(|consumer| place_of[*consumer]).max() {
            change[place_of[tensor.producer] + 1] += 1;
            change[last + 1] -= 1;
        }
    }
    let mut open = 0;
    let passing = change.into_iter().map(|change| {
        open += change;
        open.unsigned_abs()
    });
    passing.take(order.len()).collect()
}

/// Quadratic: two narrow boundaries are better than one wide one.
fn cost(passing: usize) -> usize {
    passing * passing
}

/// Returns the pieces of least total cost, by dynamic programming.
fn pieces(passing: &[usize]) -> Vec<Range<usize>> {
    let tasks = passing.len();
    // By end of a piece: least cost up to there, and beginning of the last piece.
    let mut least: Vec<Option<(usize, usize)>> = vec![None; tasks + 1];
    least[0] = Some((0, 0));
    for end in 1..=tasks {
        let shortest = if tasks < LEAST { 1 } else { LEAST };
        let from = (end.saturating_sub(MOST)..=end.saturating_sub(shortest)).filter(|from| end - from >= shortest);
        least[end] = from.filter_map(|from| Some((least[from]?.0 + cost(passing[from]), from))).min();
    }
    let mut pieces = Vec::new();
    let mut end = tasks;
    while end > 0 {
        // Some numbers of tasks are not a sum of piece sizes: then the order is one piece.
        let from = least[end].map_or(0, |(_, from)| from);
        pieces.push(from..end);
        end = from;
    }
    pieces.reverse();
    pieces
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::plan::Objective;
    use crate::testing::{Rwnn, rwnn};

    /// Tests that no more tensors cross than at the generator's own boundaries, and that pieces are in order and of
    /// valid size.
    #[test]
    fn modules_end_where_few_tensors_pass() {
        for (seed, channels) in [(1, 2), (2, 3), (3, 2)] {
            let shape = Rwnn { nodes: 10, modules: 8, channels, strong: true, seed, ..Rwnn::default() };
            let problem = rwnn(&shape).expect("a problem");
            let instance = Instance::new(&problem, Objective::Latency).expect("an instance");
            let Partition { order, modules } = Partition::new(&instance);
            let mut place_of = vec![0; order.len()];
            order.iter().enumerate().for_each(|(place, task)| place_of[*task] = place);
            for task in 0..instance.tasks() {
                assert!(instance.successors(task).iter().all(|arc| place_of[arc.task] > place_of[task]));
            }
            assert!(modules.iter().all(|module| (LEAST..=MOST).contains(&module.len())), "{modules:?}");
            assert!(modules.windows(2).all(|pair| pair[0].end == pair[1].start), "{modules:?}");
            let passing = passing(&instance, &order);
            let tensors: usize = modules[1..].iter().map(|module| passing[module.start]).sum();
            assert!(modules.len() > 3, "{modules:?}");
            assert!(tensors <= channels * 7, "{tensors} pass {modules:?}, there are seven times {channels}");
        }
    }

    #[test]
    fn odd_numbers_of_tasks_have_pieces_too() {
        for tasks in 0..200 {
            let pieces = pieces(&vec![1; tasks]);
            assert_eq!(pieces.iter().map(Range::len).sum::<usize>(), tasks);
        }
    }
}
