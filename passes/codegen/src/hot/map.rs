//! Chains of operators that compute element by element, in one loop.

use super::{
    image::Access,
    program::{self, Program},
};
use crate::{
    error::Result,
    graph::{Id, Node},
    lowering::Lowering,
};
use divi_onnx::DType;

/// Lowers a chain of operators on `f32`; says how many nodes that are.
pub(crate) fn lower(cx: &mut Lowering<'_>, nodes: &[Node], position: usize) -> Result<Option<usize>> {
    let Some(result) = nodes[position].result(0).filter(|&id| cx.dtype(id) == DType::F32) else { return Ok(None) };
    let shape = cx.shape(result).to_vec();
    // The chain begins with an operand that has the result's shape, preferably an image in blocks.
    let starts = nodes[position].inputs.iter().flatten().copied().filter(|&id| cx.shape(id) == shape);
    let starts: Vec<_> = starts.filter(|&id| cx.dtype(id) == DType::F32 && cx.expression(id).is_none()).collect();
    let blocked = starts.iter().copied().find(|&id| cx.is_blocked(id));
    if let Some(start) = blocked {
        let accept = |cx: &Lowering<'_>, id| Access::is_possible(cx, id, &shape);
        let (count, program, result) = program::absorb_chain(cx, nodes, position, start, &accept);
        if count > 0 {
            images(cx, start, &program, result, &shape);
            return Ok(Some(count));
        }
    }
    let Some(&start) = starts.first() else { return Ok(None) };
    let (count, program, result) = program::absorb_chain(cx, nodes, position, start, &|_, _| true);
    if count == 0 {
        return Ok(None);
    }
    let mut operands = vec![cx.dense(start)];
    operands.extend(program.operands.iter().map(|&id| cx.dense(id)));
    crate::ops::map(cx, &operands, result, |b, values| program.emit(b, values[0], &values[1..]));
    Ok(Some(count))
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
