//! Max pooling, with and without indices, and unpooling.

use super::{Start, axes, pool};
use crate::{
    emit::{Builder, Compare, V},
    error::Result,
    graph::{Node, strides},
    lowering::Lowering,
    ops::blocks::{accumulator, grain},
};
use divi_onnx::DType;
use divi_runtime::bundle::Status;

/// Returns the smallest number of a type.
fn least(b: &Builder, dtype: DType) -> V {
    let ty = b.computed(dtype);
    match dtype {
        _ if dtype.is_float() => b.float(f64::NEG_INFINITY, ty),
        _ if dtype.is_signed_int() => b.integer(i64::MIN >> (64 - b.bits(ty)), ty),
        _ => b.zero(ty),
    }
}

/// Lowers max pooling without indices. The first element of a window is replaced by larger ones, so the result is NaN if and only if the
/// first element is NaN, as in ONNX's reference.
pub(super) fn max_pool_values(cx: &mut Lowering<'_>, node: &Node) -> Result<()> {
    let dtype = cx.dtype(node.input(0)?);
    let is_unsigned = dtype.is_unsigned_int();
    pool(
        cx,
        node,
        Start::First,
        |b| least(b, accumulator(dtype)),
        |b, most, value| b.select(b.compare(Compare::Greater, value, most, is_unsigned), value, most),
        |_, _, _, most| most,
    )
}

/// Lowers max pooling with the indices of the maxima in the whole tensor.
pub(super) fn max_pool(cx: &mut Lowering<'_>, node: &Node) -> Result<()> {
    let Some(indices) = node.result(1) else { return max_pool_values(cx, node) };
    let axes = axes(cx, node)?;
    let (x, y) = (node.input(0)?, node.output()?);
    let (image, result) = (cx.shape(x).to_vec(), cx.shape(y).to_vec());
    let dtype = cx.dtype(x);
    let is_unsigned = dtype.is_unsigned_int();
    let plane: i64 = image[2..].iter().product();
    let image_steps = strides(&image[2..]);
    // Strides of indices within a plane: row-major or column-major.
    let index_steps = if node.attributes().int_or("storage_order", 0)? == 0 {
        image_steps.clone()
    } else {
        (0..axes.len()).map(|i| image[2..2 + i].iter().product()).collect()
    };
    let positions = result[2..].to_vec();
    let position_count: i64 = positions.iter().product();
    let kernel_shape: Vec<_> = axes.iter().map(|axis| axis.kernel).collect();
    let work = position_count * kernel_shape.iter().product::<i64>();
    cx.call(result[0] * result[1], grain(work), &[x], &[y, indices], |b, kernel| {
        b.for_each(kernel.begin, kernel.end, 1, |channel| {
            let (origin, target) = (b.times(channel, plane), b.times(channel, position_count));
            b.nest(&positions, |position| {
                let start = [least(b, dtype), b.index(-1)];
                let found = b.fold_nest(&kernel_shape, &start, |element, state| {
                    let places: Vec<_> = (0..axes.len()).map(|i| axes[i].place(b, position[i], element[i])).collect();
                    let inside = axes
                        .iter()
                        .zip(&places)
                        .map(|(axis, &at)| super::super::window::is_in_range(b, at, axis.image));
                    let inside = inside.reduce(|a, c| b.and(a, c)).expect("windows have axes");
                    let take = || {
                        let value = b.load(kernel.buffers[0], dtype, b.add(origin, b.offset(&places, &image_steps)));
                        let is_first = b.less(state[1], b.index(0));
                        let is_more = b.compare(Compare::Greater, value, state[0], is_unsigned);
                        let is_new = b.or(is_first, is_more);
                        let index = b.add(origin, b.offset(&places, &index_steps));
                        vec![b.select(is_new, value, state[0]), b.select(is_new, index, state[1])]
                    };
                    b.if_else(inside, take, || state.to_vec())
                });
                let at = b.add(target, b.offset(position, &strides(&positions)));
                b.store(found[0], kernel.buffers[1], dtype, at);
                b.store(found[1], kernel.buffers[2], DType::I64, at);
            });
        });
    });
    Ok(())
}

/// Lowers MaxUnpool. Indices refer to an image whose size follows from the attributes; the result may be larger.
pub(super) fn max_unpool(cx: &mut Lowering<'_>, node: &Node) -> Result<()> {
    let (x, indices, y) = (node.input(0)?, node.input(1)?, node.output()?);
    let (input, result) = (cx.shape(x).to_vec(), cx.shape(y).to_vec());
    let kernel_shape = node.attributes().ints("kernel_shape")?.unwrap_or_default().to_vec();
    let axes = super::super::window::sliding(node, &result[2..], &input[2..], &kernel_shape)?;
    let mut image = input[..2].to_vec();
    image.extend(axes.iter().map(|axis| (axis.positions - 1) * axis.stride + axis.kernel - axis.before - axis.after));
    let (dtype, count, size) = (cx.dtype(x), cx.count(x), cx.count(y));
    let image_count = image.iter().product();
    // Indices may repeat, so a single thread writes all elements, for a deterministic result.
    cx.call(1, 1, &[x, indices], &[y], |b, kernel| {
        let zero = b.zero(b.computed(dtype));
        b.for_each(b.index(0), b.index(size), 1, |i| b.store(zero, kernel.buffers[2], dtype, i));
        b.for_each(b.index(0), b.index(count), 1, |i| {
            let index = b.checked_index(b.load(kernel.buffers[1], DType::I64, i), image_count);
            let place = b.coordinates(index, &image);
            let target = b.offset(&place, &strides(&result));
            let outside = b.compare(Compare::GreaterOrEqual, target, b.index(size), true);
            b.fail_if(outside, Status::IndexOutOfRange);
            let value = b.load(kernel.buffers[0], dtype, i);
            b.store(value, kernel.buffers[2], dtype, b.select(outside, b.index(0), target));
        });
    });
    Ok(())
}
