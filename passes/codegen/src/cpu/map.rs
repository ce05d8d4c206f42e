//! Chains of operators that compute element by element, in one loop.

use super::image::Access;
use crate::{
    chain,
    epilogue::{Program, absorb_chain},
    error::Result,
    graph::{Id, Node},
    lowering::Lowering,
};

/// Lowers a chain of operators on `f32`, preferably on images in blocks. Returns the number of nodes.
pub(super) fn lower(cx: &mut Lowering<'_>, nodes: &[Node], position: usize) -> Result<Option<usize>> {
    let starts = chain::starts(cx, &nodes[position]).unwrap_or_default();
    if let Some(start) = starts.into_iter().find(|&id| cx.is_blocked(id)) {
        let shape = cx.shape(start).to_vec();
        let accept = |cx: &Lowering<'_>, id| Access::is_possible(cx, id, &shape);
        let (count, program, result) = absorb_chain(cx, nodes, position, start, &accept);
        if count > 0 {
            images(cx, start, &program, result, &shape);
            return Ok(Some(count));
        }
    }
    chain::lower(cx, nodes, position)
}

/// A chain on images in blocks.
fn images(cx: &mut Lowering<'_>, start: Id, program: &Program, result: Id, shape: &[i64]) {
    let accesses: Vec<_> =
        std::iter::once(start).chain(program.operands.iter().copied()).map(|id| Access::of(cx, id, shape)).collect();
    let target = cx.make_blocked(result);
    let reads: Vec<_> = accesses.iter().map(Access::buffer).collect();
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
                let value = program.emit(b, values[0], &values[1..]);
                b.store_aligned(value, out[0], target.at(b, plane, y, x));
            });
        });
    });
}
