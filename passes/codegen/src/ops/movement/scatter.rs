//! Operators that write elements at indices that are computed at run time into a copy of a tensor.

use super::{GRAIN, Lower, copy, gather::Tuples, load_index, raw};
use crate::{
    emit::{Builder, Compare, V},
    error::{Result, unsupported},
    graph::{Node, strides},
    lowering::Lowering,
    ops::elementwise::{check_numbers, grain, is_unsigned},
};
use divi_onnx::{DType, Op, node::normalize_axis};
use divi_runtime::bundle::Status;

pub(super) fn find(op: Op) -> Option<Lower> {
    Some(match op {
        Op::Scatter | Op::ScatterElements => scatter_elements,
        Op::ScatterND => scatter_nd,
        Op::TensorScatter => tensor_scatter,
        _ => return None,
    })
}

/// Combination of an update with the current element.
#[derive(Clone, Copy)]
enum Reduction {
    None,
    Add,
    Mul,
    Max,
    Min,
}

impl Reduction {
    /// Returns the reduction of a node, and the type as which elements are loaded and stored.
    fn of(cx: &Lowering<'_>, node: &Node) -> Result<(Self, DType)> {
        let dtype = cx.dtype(node.output()?);
        let reduction = match node.attributes().str_or("reduction", "none")? {
            "none" => return Ok((Self::None, raw(dtype)?)),
            "add" => Self::Add,
            "mul" => Self::Mul,
            "max" => Self::Max,
            "min" => Self::Min,
            other => {
                return unsupported(format!("attribute 'reduction' is '{other}', must be none, add, mul, max or min"));
            }
        };
        check_numbers(cx, node)?;
        Ok((reduction, dtype))
    }

    /// Emits the update of an element of the result.
    fn apply(self, b: &Builder, dtype: DType, pointer: V, at: V, update: V) {
        let old = |combine: &dyn Fn(V, V) -> V| combine(b.load(pointer, dtype, at), update);
        let unsigned = is_unsigned(dtype);
        let value = match self {
            Self::None => update,
            Self::Add if dtype == DType::Bool => old(&|a, c| b.or(a, c)),
            Self::Add => old(&|a, c| b.add(a, c)),
            Self::Mul if dtype == DType::Bool => old(&|a, c| b.and(a, c)),
            Self::Mul => old(&|a, c| b.mul(a, c)),
            Self::Max => old(&|a, c| b.max(a, c, unsigned)),
            Self::Min => old(&|a, c| b.min(a, c, unsigned)),
        };
        b.store(value, pointer, dtype, at);
    }
}

/// Lowers ScatterElements. Updates whose coordinates differ along another axis than `axis` go to different elements, so threads may split
/// the first axis unless that is `axis`.
fn scatter_elements(cx: &mut Lowering<'_>, node: &Node) -> Result<()> {
    let (data, indices, updates, output) = (node.input(0)?, node.input(1)?, node.input(2)?, node.output()?);
    let (shape, to) = (cx.shape(indices).to_vec(), strides(cx.shape(data)));
    let axis = normalize_axis(node.attributes().int_or("axis", 0)?, shape.len())?;
    let size = cx.shape(data)[axis];
    let (reduction, dtype) = Reduction::of(cx, node)?;
    let index_dtype = cx.dtype(indices);
    copy(cx, data, output);
    let (outer, inner) = (shape[0], &shape[1..]);
    let count: i64 = inner.iter().product();
    let scatter = |b: &Builder, buffers: &[V], mut place: Vec<V>| {
        let at = b.offset(&place, &strides(&shape));
        let update = b.load(buffers[1], dtype, at);
        place[axis] = b.checked_index(load_index(b, buffers[0], index_dtype, at), size);
        reduction.apply(b, dtype, buffers[2], b.offset(&place, &to), update);
    };
    if axis == 0 {
        // Threads split the other axes, and each executes the updates of its elements in the order of the first axis.
        let grain = grain(dtype, count, GRAIN / (8 * outer.max(1)));
        cx.call(count, grain, &[indices, updates], &[output], |b, kernel| {
            b.repeat(outer, |first| {
                b.for_each(kernel.begin, kernel.end, 1, |i| {
                    scatter(b, kernel.buffers, [&[first], &b.coordinates(i, inner)[..]].concat());
                });
            });
        });
    } else {
        let grain = grain(dtype, outer, GRAIN / (8 * count.max(1)));
        cx.call(outer, grain, &[indices, updates], &[output], |b, kernel| {
            b.for_each(kernel.begin, kernel.end, 1, |first| {
                b.nest(inner, |rest| scatter(b, kernel.buffers, [&[first], rest].concat()));
            });
        });
    }
    Ok(())
}

/// Lowers ScatterND. Several tuples of indices may address the same elements, so threads split the contiguous elements of a tuple, not the
/// tuples.
fn scatter_nd(cx: &mut Lowering<'_>, node: &Node) -> Result<()> {
    let (data, indices, updates, output) = (node.input(0)?, node.input(1)?, node.input(2)?, node.output()?);
    let (reduction, dtype) = Reduction::of(cx, node)?;
    let tuples = Tuples::new(cx, data, indices, 0);
    let shape = cx.shape(indices);
    let count: i64 = shape[..shape.len() - 1].iter().product();
    copy(cx, data, output);
    if count == 0 {
        return Ok(());
    }
    let grain = grain(dtype, tuples.run, GRAIN / (8 * count));
    cx.call(tuples.run, grain, &[indices, updates], &[output], |b, kernel| {
        b.repeat(count, |number| {
            let start = tuples.offset(b, kernel.buffers[0], number);
            b.for_each(kernel.begin, kernel.end, 1, |i| {
                let update = b.load(kernel.buffers[1], dtype, b.add(b.times(number, tuples.run), i));
                reduction.apply(b, dtype, kernel.buffers[2], b.add(start, i), update);
            });
        });
    });
    Ok(())
}

/// Lowers TensorScatter: writes updates into a cache, from a different index on for each sequence.
fn tensor_scatter(cx: &mut Lowering<'_>, node: &Node) -> Result<()> {
    let (cache, update, output) = (node.input(0)?, node.input(1)?, node.output()?);
    let attributes = node.attributes();
    let is_circular = attributes.str_or("mode", "linear")? == "circular";
    let shape = cx.shape(cache).to_vec();
    let axis = normalize_axis(attributes.int_or("axis", -2)?, shape.len())?;
    let (outer, size, run) = super::sizes_around(&shape, axis);
    let length = cx.shape(update)[axis];
    let per_batch: i64 = shape[1..axis].iter().product();
    let dtype = raw(cx.dtype(cache))?;
    copy(cx, cache, output);
    let mut reads = vec![update];
    reads.extend(node.optional(2));
    let index_dtype = node.optional(2).map(|id| cx.dtype(id));
    let grain = grain(dtype, outer, GRAIN / (8 * (length * run).max(1)));
    cx.call(outer, grain, &reads, &[output], |b, kernel| {
        b.for_each(kernel.begin, kernel.end, 1, |prefix| {
            let (batch, _) = b.div_rem(prefix, per_batch.max(1));
            let first = index_dtype.map_or(b.index(0), |dtype| load_index(b, kernel.buffers[1], dtype, batch));
            b.repeat(length, |i| {
                let at = b.add(first, i);
                let at = if is_circular {
                    let is_negative = b.compare(Compare::Less, at, b.index(0), false);
                    b.fail_if(is_negative, Status::IndexOutOfRange);
                    b.div_rem(b.select(is_negative, b.index(0), at), size.max(1)).1
                } else {
                    b.checked_index(at, size)
                };
                let from = b.times(b.add(b.times(prefix, length), i), run);
                let to = b.times(b.add(b.times(prefix, size), at), run);
                b.repeat(run, |j| {
                    let value = b.load(kernel.buffers[0], dtype, b.add(from, j));
                    b.store(value, kernel.buffers[reads.len()], dtype, b.add(to, j));
                });
            });
        });
    });
    Ok(())
}
