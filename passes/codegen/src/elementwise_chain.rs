//! Fusion of chains of element-wise operators into one loop.

use crate::{
    epilogue::fuse_chain,
    error::Result,
    graph::{Id, Node},
    lowering::Lowering,
    ops,
};

/// Returns the operands that a chain can start from: non-constant values with the shape of its result, which are computed in `f32`. `None`
/// if the result is not.
pub(crate) fn starts(cx: &Lowering<'_>, node: &Node) -> Option<Vec<Id>> {
    let result = node.result(0).filter(|&id| cx.is_computed_in_f32(id))?;
    let is_start =
        |&id: &Id| cx.shape(id) == cx.shape(result) && cx.is_computed_in_f32(id) && cx.expression(id).is_none();
    Some(node.inputs.iter().flatten().copied().filter(is_start).collect())
}

/// Lowers the chain at a position to one loop over row-major values. Returns the number of nodes; `None` if there is no chain.
pub(crate) fn lower(cx: &mut Lowering<'_>, nodes: &[Node], position: usize) -> Result<Option<usize>> {
    let Some(start) = starts(cx, &nodes[position]).and_then(|starts| starts.first().copied()) else {
        return Ok(None);
    };
    let (count, fused, result) = fuse_chain(cx, nodes, position, start, &|_, _| true);
    if count == 0 {
        return Ok(None);
    }
    let mut operands = vec![cx.dense(start)];
    operands.extend(fused.operands.iter().map(|&id| cx.dense(id)));
    ops::map(cx, &operands, result, |b, values| fused.emit(b, values[0], &values[1..]));
    Ok(Some(count))
}
