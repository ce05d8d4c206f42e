//! What the blocks of a pipeline cost, as eq. (3) defines it: tensors that come in, work, parameters that do not fit, tensors
//! that go out. Searches have this incrementally; what they answer is measured here.

use crate::model::options::PipelineCost;
use crate::model::problem::{Pipeline, Problem, Tensor};
use crate::model::units::{Bytes, Micros};

/// One pipeline: each node's block, and for all nodes together an order in which those of a block run.
pub(super) struct Blocks<'a> {
    pub(super) block: &'a [usize],
    pub(super) order: &'a [usize],
    pub(super) k: usize,
}

/// The slowest block's time.
pub(super) fn bottleneck(problem: &Problem, view: &Pipeline, cost: PipelineCost, blocks: &Blocks<'_>) -> Micros {
    let tensors = problem.all_tensors();
    let mut work = vec![0.0; blocks.k];
    let mut io = vec![0.0; blocks.k];
    for (node, time) in view.work.iter().enumerate() {
        work[blocks.block[node]] += time;
    }
    for tensor in &tensors {
        // Once for each block it enters, and once for the one it leaves, however many read it there.
        let home = blocks.block[tensor.from];
        let mut touched: Vec<usize> = tensor.to.iter().map(|to| blocks.block[*to]).chain([home]).collect();
        touched.sort_unstable();
        touched.dedup();
        if touched.len() > 1 {
            touched.into_iter().for_each(|block| io[block] += tensor.bytes / view.bandwidth);
        }
    }
    let overflow = match view.memory {
        Some(capacity) => overflow(problem, &tensors, blocks, capacity, view.bandwidth),
        None => vec![0.0; blocks.k],
    };
    let cost_of = |block: usize| cost.of(work[block] + overflow[block], io[block]);
    (0..blocks.k).map(cost_of).fold(0.0, f64::max)
}

/// Eq. (2): what of parameters and peak is beyond the memory has to be streamed.
fn overflow(
    problem: &Problem,
    tensors: &[Tensor],
    blocks: &Blocks<'_>,
    capacity: Bytes,
    bandwidth: f64,
) -> Vec<Micros> {
    let mut held: Vec<Bytes> = peaks(problem, tensors, blocks);
    problem.nodes.iter().for_each(|node| held[blocks.block[node.id]] += node.weight);
    held.into_iter().map(|held| (held - capacity).max(0.0) / bandwidth).collect()
}

/// The most that is alive in each block. A stage gets its inputs before it runs and hands its outputs on when it has run: a
/// tensor from elsewhere is alive from the start until its last reader here has run, one made here from then until its
/// last reader has, or until the end where one is elsewhere. Scratch is alive while its task runs.
fn peaks(problem: &Problem, tensors: &[Tensor], blocks: &Blocks<'_>) -> Vec<Bytes> {
    // A node's step in its block, and how many steps each block has.
    let mut step = vec![0; problem.nodes.len()];
    let mut steps = vec![0; blocks.k];
    for &node in blocks.order {
        let block = blocks.block[node];
        step[node] = steps[block];
        steps[block] += 1;
    }
    // What begins to be alive at each step, and what has ended there.
    let mut change: Vec<Vec<Bytes>> = steps.iter().map(|steps| vec![0.0; steps + 1]).collect();
    let mut alive = |block: usize, first: usize, last: usize, bytes: Bytes| {
        change[block][first] += bytes;
        change[block][last + 1] -= bytes;
    };
    for node in &problem.nodes {
        alive(blocks.block[node.id], step[node.id], step[node.id], node.scratch);
    }
    for tensor in tensors {
        let home = blocks.block[tensor.from];
        let mut readers: Vec<(usize, usize)> = tensor.to.iter().map(|to| (blocks.block[*to], step[*to])).collect();
        let leaves = readers.iter().any(|(block, _)| *block != home);
        let own = readers.iter().filter(|(block, _)| *block == home).map(|(_, step)| *step).max();
        let last = if leaves { steps[home] - 1 } else { own.unwrap_or(step[tensor.from]) };
        alive(home, step[tensor.from], last, tensor.bytes);
        // The last reader in each other block.
        readers.sort_unstable_by(|a, b| b.cmp(a));
        readers.dedup_by_key(|(block, _)| *block);
        for (block, last) in readers.into_iter().filter(|(block, _)| *block != home) {
            alive(block, 0, last, tensor.bytes);
        }
    }
    let peak = |change: Vec<Bytes>| {
        let held = change.into_iter().scan(0.0, |held, change| {
            *held += change;
            Some(*held)
        });
        held.fold(0.0, f64::max)
    };
    change.into_iter().map(peak).collect()
}
