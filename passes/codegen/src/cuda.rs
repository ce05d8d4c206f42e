//! Fast kernels for GPUs: tiles of convolutions and products, rows that a block of threads works on together. Vendors' libraries
//! may do the same, where they are installed; whatever follows element by element in a task is computed with it.

mod blocks;
mod concat;
mod conv;
mod finish;
mod matmul;
mod rows;
mod tile;

use crate::{
    chain,
    error::Result,
    graph::{Id, Node},
    layout::Blocked,
    lowering::{Hooks, Lowering},
};
use divi_onnx::DType;

/// Lowering hooks of CUDA devices.
pub(crate) struct CudaHooks;

impl Hooks for CudaHooks {
    fn lower_fast(&self, cx: &mut Lowering<'_>, nodes: &[Node], position: usize) -> Result<Option<usize>> {
        let node = &nodes[position];
        match node.op.as_str() {
            "Conv" => conv::lower(cx, nodes, position),
            "MatMul" | "Gemm" => matmul::lower(cx, nodes, position),
            "Softmax" => rows::softmax(cx, node),
            "LayerNormalization" => rows::layer_normalization(cx, node),
            "GlobalAveragePool" | "ReduceMean" => rows::mean(cx, node),
            "Concat" => concat::lower(cx, node, nodes.len()),
            _ => chain::lower(cx, nodes, position),
        }
    }

    fn read_blocked(&self, cx: &mut Lowering<'_>, input: usize, value: Id, layout: Blocked) {
        let blocked = cx.temporary(DType::F32, &layout.shape());
        cx.place_at_input(blocked, input);
        blocks::to_dense(cx, blocked, value, layout);
    }

    fn write_blocked(&self, cx: &mut Lowering<'_>, output: usize, value: Id, layout: Blocked, _: bool) {
        let copy = cx.temporary(DType::F32, &layout.shape());
        cx.place_at_output(copy, output);
        blocks::to_blocks(cx, value, copy, layout);
    }
}
