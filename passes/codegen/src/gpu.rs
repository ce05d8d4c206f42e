//! Fast kernels for GPUs: tiles of convolutions and products, rows that a block of threads works on together. Vendors' libraries
//! may do the same, where they are installed; whatever follows element by element in a task is computed with it.

mod blocks;
mod concat;
mod conv;
mod finish;
mod matmul;
mod rows;
mod tile;

pub(crate) use blocks::{to_blocks, to_dense};

use crate::{error::Result, graph::Node, hot, lowering::Lowering};

/// Lowers the node at a position, and perhaps some behind it, if there are fast kernels for them; says how many nodes that are.
pub(crate) fn lower(cx: &mut Lowering<'_>, nodes: &[Node], position: usize) -> Result<Option<usize>> {
    let node = &nodes[position];
    match node.op.as_str() {
        "Conv" => conv::lower(cx, nodes, position),
        "MatMul" | "Gemm" => matmul::lower(cx, nodes, position),
        "Softmax" => rows::softmax(cx, node),
        "LayerNormalization" => rows::layer_normalization(cx, node),
        "GlobalAveragePool" | "ReduceMean" => rows::mean(cx, node),
        "Concat" => concat::lower(cx, node, nodes.len()),
        _ => hot::map(cx, nodes, position),
    }
}
