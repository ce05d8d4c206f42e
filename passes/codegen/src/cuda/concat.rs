//! Concatenation without copies: operands are written where the result has them.

use crate::{error::Result, graph::Node, lowering::Lowering};
use divi_onnx::node::normalize_axis;

/// Places operands inside of the result where they lie in one piece, and copies the others.
pub(super) fn lower(cx: &mut Lowering<'_>, node: &Node, node_count: usize) -> Result<Option<usize>> {
    let result = node.output()?;
    let shape = cx.shape(result).to_vec();
    let axis = normalize_axis(node.attributes().int_or("axis", 0)?, shape.len())?;
    let is_in_one_piece = shape[..axis].iter().all(|&size| size == 1);
    if !is_in_one_piece || cx.dtype(result).bits() < 8 || shape.contains(&0) {
        return Ok(None);
    }
    let element = cx.dtype(result).bits() / 8;
    let mut first = 0;
    for &part in node.inputs.iter().flatten() {
        let bytes = cx.count(part) as u64 * element;
        cx.place_part(part, result, first, node_count);
        first += bytes;
    }
    Ok(Some(1))
}
