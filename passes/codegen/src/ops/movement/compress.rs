//! Operators that select elements by data. The number of selected elements must be known from the shape of the result; if it differs at
//! run time, the kernel fails.

use super::{Lower, raw, sizes_around};
use crate::{
    emit::{Builder, V},
    error::{Result, unsupported},
    graph::Node,
    lowering::Lowering,
    ops::elementwise::{check_numbers, convert, grain},
};
use divi_onnx::{DType, Op, node::normalize_axis};
use divi_runtime::bundle::Status;

pub(super) fn find(op: Op) -> Option<Lower> {
    Some(match op {
        Op::Compress => compress,
        Op::NonZero => non_zero,
        Op::Unique => |_, _| unsupported("the size of the result depends on data; remove the operator from the model"),
        _ => return None,
    })
}

/// Emits a loop over `0..count` that calls `found` for each selected index with the index and its rank among the selected ones. If their
/// number is not `expected`, the kernel fails; indices beyond it are skipped.
fn choose(b: &Builder, count: i64, expected: i64, is_chosen: impl FnOnce(V) -> V, found: impl FnOnce(V, V)) {
    let chosen = b.for_loop_carried(b.index(0), b.index(count), 1, &[b.index(0)], |i, state| {
        let is_chosen = is_chosen(i);
        let has_room = b.less(state[0], b.index(expected));
        b.if_then(b.and(is_chosen, has_room), || found(i, state[0]));
        vec![b.add(state[0], b.resize(is_chosen, b.i64(), true))]
    })[0];
    b.fail_if(b.not(b.equal(chosen, b.index(expected))), Status::BadValue);
}

/// Lowers Compress: first finds the selected indices, then copies their elements.
fn compress(cx: &mut Lowering<'_>, node: &Node) -> Result<()> {
    let (input, condition, output) = (node.input(0)?, node.input(1)?, node.output()?);
    let dtype = raw(cx.dtype(input))?;
    let (outer, size, inner, kept) = match node.attributes().int("axis")? {
        None => (1, cx.count(input), 1, cx.count(output)),
        Some(axis) => {
            let axis = normalize_axis(axis, cx.shape(input).len())?;
            let (outer, size, inner) = sizes_around(cx.shape(input), axis);
            (outer, size, inner, cx.shape(output)[axis])
        }
    };
    let length = cx.count(condition).min(size);
    let places = cx.temporary(DType::I64, &[kept]);
    cx.call(1, 1, &[condition], &[places], |b, kernel| {
        b.repeat(kept, |i| b.store(b.index(0), kernel.buffers[1], DType::I64, i));
        let is_kept = |i| b.load(kernel.buffers[0], DType::Bool, i);
        choose(b, length, kept, is_kept, |i, at| b.store(i, kernel.buffers[1], DType::I64, at));
    });
    let extent = outer * kept;
    cx.call(extent, grain(dtype, extent, 8192 / inner.max(1)), &[input, places], &[output], |b, kernel| {
        b.for_each(kernel.begin, kernel.end, 1, |number| {
            let (outer, at) = b.div_rem(number, kept);
            let place = b.load(kernel.buffers[1], DType::I64, at);
            let from = b.times(b.add(b.times(outer, size), place), inner);
            b.repeat(inner, |i| {
                let value = b.load(kernel.buffers[0], dtype, b.add(from, i));
                b.store(value, kernel.buffers[2], dtype, b.add(b.times(number, inner), i));
            });
        });
    });
    Ok(())
}

/// Lowers NonZero: the coordinates of non-zero elements, one row per axis.
fn non_zero(cx: &mut Lowering<'_>, node: &Node) -> Result<()> {
    check_numbers(cx, node)?;
    let (input, output) = (node.input(0)?, node.output()?);
    let (shape, dtype) = (cx.shape(input).to_vec(), cx.dtype(input));
    let (count, columns) = (cx.count(input), cx.shape(output)[1]);
    cx.call(1, 1, &[input], &[output], |b, kernel| {
        let is_set = |i| convert(b, b.load(kernel.buffers[0], dtype, i), dtype, DType::Bool);
        choose(b, count, columns, is_set, |i, column| {
            for (axis, coordinate) in b.coordinates(i, &shape).into_iter().enumerate() {
                b.store(coordinate, kernel.buffers[1], DType::I64, b.plus(column, axis as i64 * columns));
            }
        });
    });
    Ok(())
}
