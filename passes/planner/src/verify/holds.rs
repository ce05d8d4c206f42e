//! Memory of a block of a pipeline that runs its tasks in sequence.

use std::collections::BTreeSet;

use crate::model::error::Finding;
use crate::model::problem::Problem;
use crate::model::units::Bytes;

/// Checks that the order contains each block's tasks once, in topological order within the block.
pub(super) fn check_order(
    problem: &Problem,
    block: &[usize],
    k: u32,
    order: &[Vec<usize>],
) -> Result<(), Vec<Finding>> {
    let wrong = |message: String| Err(vec![Finding::new("order", message)]);
    if order.len() != k as usize {
        return wrong(format!("has {} blocks, but there are {k}", order.len()));
    }
    let mut place = vec![None; block.len()];
    for (of, tasks) in order.iter().enumerate() {
        for (index, &node) in tasks.iter().enumerate() {
            if block.get(node) != Some(&of) {
                return wrong(format!("{} is not in block {of}", problem.node_label(node)));
            }
            if place[node].replace(index).is_some() {
                return wrong(format!("duplicate {}", problem.node_label(node)));
            }
        }
    }
    if let Some(missing) = place.iter().position(Option::is_none) {
        return wrong(format!("{} is missing", problem.node_label(missing)));
    }
    let edges = problem.edges.iter().flatten().copied();
    let more = problem.tensors.iter().flatten().flat_map(|tensor| tensor.to.iter().map(|to| (tensor.from, *to)));
    for (from, to) in edges.chain(more) {
        if block[from] == block[to] && place[from] > place[to] {
            let (from, to) = (problem.node_label(from), problem.node_label(to));
            return wrong(format!("{to} is before {from}, whose value it reads"));
        }
    }
    Ok(())
}

/// Returns the peak memory of a block: parameters and all live tensors. A tensor from another block is live from the
/// start to its last reader here; one of this block from its task to its last reader, or to the end if a reader is in
/// another block; scratch while its task runs.
pub(super) fn most(problem: &Problem, tensors: &[(usize, Bytes, Vec<usize>)], tasks: &[usize]) -> Bytes {
    let here: BTreeSet<usize> = tasks.iter().copied().collect();
    let touched: Vec<&(usize, Bytes, Vec<usize>)> = tensors
        .iter()
        .filter(|(from, _, readers)| here.contains(from) || readers.iter().any(|reader| here.contains(reader)))
        .collect();
    let mut highest = Bytes::ZERO;
    for (step, &running) in tasks.iter().enumerate() {
        let to_come: BTreeSet<usize> = tasks[step..].iter().copied().collect();
        let is_alive = |(from, _, readers): &(usize, Bytes, Vec<usize>)| {
            let made = !here.contains(from) || !to_come.contains(from) || *from == running;
            let wanted = readers.iter().any(|reader| to_come.contains(reader))
                || (here.contains(from) && readers.iter().any(|reader| !here.contains(reader)));
            made && (wanted || *from == running)
        };
        let alive: Bytes = touched.iter().filter(|tensor| is_alive(tensor)).map(|(_, bytes, _)| bytes).sum();
        highest = highest.max(alive + problem.nodes[running].scratch);
    }
    highest + tasks.iter().map(|task| problem.nodes[*task].weight).sum::<Bytes>()
}
