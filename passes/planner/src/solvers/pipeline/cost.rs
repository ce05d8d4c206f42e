//! Cost of the blocks of a pipeline by eq. (3): incoming tensors, work, parameters that do not fit, outgoing tensors.
//! Searches compute it incrementally; their results are evaluated here.

use crate::model::options::PipelineCost;
use crate::model::problem::{Pipeline, Problem, Tensor};
use crate::model::units::{Bytes, BytesPerMicro, Micros};

/// Pipeline: each node's block, and an order of all nodes that determines the order within blocks.
pub(super) struct Blocks<'a> {
    pub(super) block: &'a [usize],
    pub(super) order: &'a [usize],
    pub(super) k: usize,
}

/// Returns the time of the slowest block.
pub(super) fn bottleneck(problem: &Problem, view: &Pipeline, cost: PipelineCost, blocks: &Blocks<'_>) -> Micros {
    costs(problem, view, cost, blocks).into_iter().fold(Micros::ZERO, Micros::max)
}

/// Returns the time of each block.
pub(super) fn costs(problem: &Problem, view: &Pipeline, cost: PipelineCost, blocks: &Blocks<'_>) -> Vec<Micros> {
    let tensors = problem.all_tensors();
    let mut work = vec![Micros::ZERO; blocks.k];
    let mut io = vec![Micros::ZERO; blocks.k];
    for (node, time) in view.work.iter().enumerate() {
        work[blocks.block[node]] += *time;
    }
    for tensor in &tensors {
        // Counted once for each block that it enters, and once for the one it leaves, regardless of the number of
        // readers.
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
        None => vec![Micros::ZERO; blocks.k],
    };
    let cost_of = |block: usize| cost.of(work[block] + overflow[block], io[block]);
    (0..blocks.k).map(cost_of).collect()
}

/// Eq. (2): bytes of parameters and peak beyond the memory are streamed.
fn overflow(
    problem: &Problem,
    tensors: &[Tensor],
    blocks: &Blocks<'_>,
    capacity: Bytes,
    bandwidth: BytesPerMicro,
) -> Vec<Micros> {
    let mut held: Vec<Bytes> = peaks(problem, tensors, blocks);
    problem.nodes.iter().for_each(|node| held[blocks.block[node.id]] += node.weight);
    held.into_iter().map(|held| (held - capacity).max(Bytes::ZERO) / bandwidth).collect()
}

/// Returns the peak of live bytes in each block. A stage receives its inputs before it runs and sends its outputs
/// after: a tensor from another block is live from the start until its last reader, one produced here from its producer
/// until its last reader, or until the end if a reader is in another block. Scratch is live while its task runs.
fn peaks(problem: &Problem, tensors: &[Tensor], blocks: &Blocks<'_>) -> Vec<Bytes> {
    // Step of each node in its block, and number of steps of each block.
    let mut step = vec![0; problem.nodes.len()];
    let mut steps = vec![0; blocks.k];
    for &node in blocks.order {
        let block = blocks.block[node];
        step[node] = steps[block];
        steps[block] += 1;
    }
    // Changes of live bytes by step.
    let mut change: Vec<Vec<Bytes>> = steps.iter().map(|steps| vec![Bytes::ZERO; steps + 1]).collect();
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
        let held = change.into_iter().scan(Bytes::ZERO, |held, change| {
            *held += change;
            Some(*held)
        });
        held.fold(Bytes::ZERO, Bytes::max)
    };
    change.into_iter().map(peak).collect()
}
