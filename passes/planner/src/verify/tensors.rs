//! Tensors of a problem, also if it has edges.

use crate::model::problem::Problem;
use crate::model::units::Bytes;

/// All tensors: producer, size and readers.
pub(super) type Values = Vec<(usize, Bytes, Vec<usize>)>;

/// Returns all tensors; with edges, each node's result.
pub(super) fn tensors(problem: &Problem) -> Values {
    match &problem.tensors {
        Some(tensors) => tensors.iter().map(|tensor| (tensor.from, tensor.bytes, tensor.to.clone())).collect(),
        None => {
            let mut all: Values =
                problem.nodes.iter().map(|node| (node.id, node.output.unwrap_or(Bytes::ZERO), Vec::new())).collect();
            problem.edges.iter().flatten().for_each(|(from, to)| all[*from].2.push(*to));
            all
        }
    }
}
