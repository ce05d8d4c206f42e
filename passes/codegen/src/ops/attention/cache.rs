//! Caches of keys and values that are written in place of older ones.

use crate::{
    emit::Compare,
    error::{Result, unsupported},
    graph::Node,
    lowering::Lowering,
    ops::blocks::grain,
};
use divi_onnx::{DType, node::normalize_axis};
use divi_runtime::bundle::Status;

/// A type of the same width, whose elements are moved without a look at them.
fn moved_as(dtype: DType) -> Result<DType> {
    Ok(match dtype.bits() {
        8 => DType::U8,
        16 => DType::U16,
        32 => DType::U32,
        64 => DType::U64,
        _ => return unsupported(format!("there is no code for caches of {dtype}: use a wider type")),
    })
}

pub(super) fn tensor_scatter(cx: &mut Lowering<'_>, node: &Node) -> Result<()> {
    let (past, update, y) = (node.input(0)?, node.input(1)?, node.output()?);
    let shape = cx.shape(past).to_vec();
    let axis = normalize_axis(node.attributes().int_or("axis", -2)?, shape.len())?;
    let is_circular = match node.attributes().str_or("mode", "linear")? {
        "linear" => false,
        "circular" => true,
        other => return unsupported(format!("attribute 'mode' must be linear or circular, is {other}")),
    };
    let dtype = moved_as(cx.dtype(past))?;
    let (length, new) = (shape[axis], cx.shape(update)[axis]);
    let row: i64 = shape[axis + 1..].iter().product();
    // Slices before the axis, and how many of them a batch has.
    let slices: i64 = shape[..axis].iter().product();
    let by_batch: i64 = shape.iter().take(axis).skip(1).product();
    let indices = node.optional(2);
    let reads: Vec<_> = [past, update].into_iter().chain(indices).collect();
    cx.call(slices, grain(length * row), &reads, &[y], |b, kernel| {
        let y = kernel.buffers[reads.len()];
        b.for_each(kernel.begin, kernel.end, 1, |slice| {
            let origin = b.times(slice, length * row);
            b.repeat(length * row, |i| {
                let at = b.add(origin, i);
                b.store(b.load(kernel.buffers[0], dtype, at), y, dtype, at);
            });
            let start = match indices {
                Some(_) => b.load(kernel.buffers[2], DType::I64, b.div_rem(slice, by_batch.max(1)).0),
                None => b.index(0),
            };
            b.repeat(new, |i| {
                let place = b.add(start, i);
                let place = if is_circular {
                    let rest = b.rem(place, b.index(length), false);
                    b.select(b.less(rest, b.index(0)), b.plus(rest, length), rest)
                } else {
                    let is_outside = b.compare(Compare::GreaterOrEqual, place, b.index(length), true);
                    b.fail_when(is_outside, Status::IndexOutOfRange);
                    b.select(is_outside, b.index(0), place)
                };
                let from = b.times(b.add(b.times(slice, new), i), row);
                let to = b.add(origin, b.times(place, row));
                b.repeat(row, |j| {
                    b.store(b.load(kernel.buffers[1], dtype, b.add(from, j)), y, dtype, b.add(to, j));
                });
            });
        });
    });
    Ok(())
}
