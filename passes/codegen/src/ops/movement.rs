//! Operators that move elements, and compute nothing.

use super::Lower;
use crate::{
    error::Result,
    graph::{Id, Node, strides},
    lowering::Lowering,
};
use divi_onnx::DType;

/// Fewer bytes are not worth a thread.
const GRAIN: i64 = 64 * 1024;

pub(super) fn find(op: &str) -> Option<Lower> {
    Some(match op {
        "Transpose" => transpose,
        _ => return None,
    })
}

/// Copies all bytes of a value.
pub(crate) fn copy(cx: &mut Lowering<'_>, from: Id, to: Id) {
    let bytes = cx.dtype(from).byte_len(cx.count(from) as u64).expect("tensors fit into memory") as i64;
    cx.call(bytes, GRAIN, &[from], &[to], |b, kernel| {
        b.for_each(kernel.begin, kernel.end, 1, |i| {
            let byte = b.load(kernel.buffers[0], DType::U8, i);
            b.store(byte, kernel.buffers[1], DType::U8, i);
        });
    });
}

fn transpose(cx: &mut Lowering<'_>, node: &Node) -> Result<()> {
    let (input, output) = (node.input(0)?, node.output()?);
    let rank = cx.shape(input).len();
    let order: Vec<usize> = match node.attributes().ints("perm")? {
        Some(order) => order.iter().map(|&axis| axis as usize).collect(),
        None => (0..rank).rev().collect(),
    };
    let from = strides(cx.shape(input));
    let steps = order.iter().map(|&axis| from[axis]).collect();
    super::elementwise::gather_strided(cx, input, output, 0, steps);
    Ok(())
}
