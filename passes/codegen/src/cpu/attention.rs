//! Attention in one pass: scores of a block of queries are computed, normalized and multiplied with values while they are in the cache.
//!
//! Keys beyond a number that fits into the cache are processed in blocks. The Softmax then keeps a running maximum and sum, and scales the
//! sums of earlier blocks when the maximum grows (FlashAttention). Operands are read with their strides, so transpositions cost nothing.

mod kernel;
mod pattern;
mod registers;
mod tiles;

use crate::{error::Result, graph::Node, lowering::Lowering};
use divi_onnx::Op;
use kernel::AttentionKernel;
use pattern::Attention;
use registers::RegisterProducts;
use tiles::TileProducts;

/// Largest number of elements of a query or value, which are on the stack.
const MOST_ELEMENTS: i64 = 512;

/// Lowers the task that starts at a position if it is attention. Returns the number of its nodes.
pub(super) fn lower(cx: &mut Lowering<'_>, nodes: &[Node], position: usize) -> Result<Option<usize>> {
    let task = nodes[position].task;
    // Nodes that read only constants are lowered one by one.
    let mut before = nodes[..position].iter().rev().take_while(|node| node.task == task);
    if before.any(|node| node.outputs.iter().flatten().any(|&id| !cx.is_constant(id))) {
        return Ok(None);
    }
    let count = nodes[position..].iter().take_while(|node| node.task == task).count();
    let nodes = &nodes[position..position + count];
    if !nodes.iter().any(|node| node.op == Op::Softmax) {
        return Ok(None);
    }
    let Some(attention) = Attention::of_task(cx, nodes, position)? else { return Ok(None) };
    let Attention { rows, keys, depth, columns, .. } = attention;
    let is_empty = [attention.result.count(), rows, keys, depth, columns].contains(&0);
    if is_empty || depth.max(columns) > MOST_ELEMENTS {
        return Ok(None);
    }
    if attention.is_bf16 && cx.has_tiles() {
        let products = TileProducts::new(&attention, cx.lanes());
        AttentionKernel::new(&attention, &products).lower(cx);
    } else {
        let products = RegisterProducts::new(&attention, cx.lanes(), cx.registers());
        AttentionKernel::new(&attention, &products).lower(cx);
    }
    Ok(Some(count))
}
