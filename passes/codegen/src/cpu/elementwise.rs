//! Chains of element-wise operators on blocked images.

use super::epilogue_operand::{OperandAccess, keep_finite_lanes};
use crate::{
    elementwise_chain,
    epilogue::{FusedEpilogue, fuse_chain},
    error::Result,
    graph::{Id, Node},
    lowering::Lowering,
};

/// Lowers a chain of element-wise `f32` operators, on blocked images if the chain can start from one. Returns the number of nodes.
pub(super) fn lower(cx: &mut Lowering<'_>, nodes: &[Node], position: usize) -> Result<Option<usize>> {
    let starts = elementwise_chain::starts(cx, &nodes[position]).unwrap_or_default();
    if let Some(start) = starts.into_iter().find(|&id| cx.is_blocked(id)) {
        let shape = cx.shape(start).to_vec();
        let accept = |cx: &Lowering<'_>, id| OperandAccess::is_possible(cx, id, &shape);
        let (count, fused, result) = fuse_chain(cx, nodes, position, start, &accept);
        if count > 0 {
            images(cx, start, &fused, result, &shape);
            return Ok(Some(count));
        }
    }
    elementwise_chain::lower(cx, nodes, position)
}

/// Adds the call of a chain on blocked images.
fn images(cx: &mut Lowering<'_>, start: Id, fused: &FusedEpilogue, result: Id, shape: &[i64]) {
    let accesses: Vec<_> = std::iter::once(start)
        .chain(fused.operands.iter().copied())
        .map(|id| OperandAccess::of(cx, id, shape))
        .collect();
    let target = cx.make_blocked(result);
    keep_finite_lanes(cx, fused, &accesses, result);
    let reads: Vec<_> = accesses.iter().map(OperandAccess::buffer).collect();
    let rows = target.batch * target.blocks() * target.height;
    let grain = (4096 / target.row()).max(1);
    cx.call(rows, grain, &reads, &[result], |b, kernel| {
        let (pointers, out) = kernel.buffers.split_at(accesses.len());
        b.for_each(kernel.begin, kernel.end, 1, |number| {
            let (plane, y) = b.div_rem(number, target.height);
            let (image, block) = b.div_rem(plane, target.blocks());
            b.repeat(target.width, |x| {
                let values: Vec<_> = accesses
                    .iter()
                    .zip(pointers)
                    .map(|(access, &pointer)| access.load(b, pointer, image, block, y, x))
                    .collect();
                let value = fused.emit(b, values[0], &values[1..]);
                b.store_aligned(value, out[0], target.at(b, plane, y, x));
            });
        });
    });
}
