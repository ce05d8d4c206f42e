//! Concatenation without copies: operands are computed in place inside the result.

use crate::{error::Result, graph::Node, lowering::Lowering};
use divi_onnx::node::normalize_axis;

/// Places operands inside the result if all axes before the concatenated one have size 1; operands that cannot be placed are copied.
pub(super) fn lower(cx: &mut Lowering<'_>, node: &Node, node_count: usize) -> Result<Option<usize>> {
    let result = node.output()?;
    let shape = cx.shape(result).to_vec();
    let axis = normalize_axis(node.attributes().int_or("axis", 0)?, shape.len())?;
    let is_contiguous = shape[..axis].iter().all(|&size| size == 1);
    if !is_contiguous || cx.dtype(result).bits() < 8 || shape.contains(&0) {
        return Ok(None);
    }
    let element = cx.dtype(result).bits() / 8;
    let mut first = 0;
    for &part in node.inputs.iter().flatten() {
        let bytes = cx.count(part) as u64 * element;
        cx.place_or_copy_subview(part, result, first, node_count);
        first += bytes;
    }
    Ok(Some(1))
}
