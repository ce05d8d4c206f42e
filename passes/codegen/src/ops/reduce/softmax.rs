//! Softmax and LogSoftmax.

use super::{super::blocks::accumulator, check_numbers};
use crate::{
    emit::{Builder, Math, V},
    error::Result,
    graph::{Id, Node},
    lowering::Lowering,
    ops::movement::sizes_around,
};
use divi_onnx::node::normalize_axis;

/// Adjacent columns that are computed together if the axis is not the last one.
const BLOCK: i64 = 64;
/// Minimal number of elements per thread.
const GRAIN: i64 = 2048;

pub(super) fn softmax(cx: &mut Lowering<'_>, node: &Node, is_log: bool) -> Result<()> {
    check_numbers(cx, node)?;
    let (input, output) = (node.input(0)?, node.output()?);
    let shape = cx.shape(input).to_vec();
    let axis = normalize_axis(node.attributes().int_or("axis", -1)?, shape.len())?;
    let sizes = sizes_around(&shape, axis);
    if sizes.2 == 1 {
        along_rows(cx, input, output, sizes, is_log)
    } else {
        along_columns(cx, input, output, sizes, is_log)
    }
    Ok(())
}

/// Returns the normalization of a row from its sum: a factor, or for LogSoftmax the subtrahend.
fn finished(b: &Builder, sum: V, is_log: bool) -> V {
    if is_log { b.math(Math::Log, sum) } else { b.div(b.float(1.0, b.type_of(sum)), sum, false) }
}

/// Returns an element of the result from the maximum of its row and the normalization of [`finished`].
fn share(b: &Builder, x: V, largest: V, whole: V, is_log: bool) -> V {
    let below = b.sub(x, largest);
    if is_log { b.sub(below, whole) } else { b.mul(b.exp(below), whole) }
}

/// Adds the call for contiguous rows, in three passes: maximum, sum, normalization. Exponentials are kept in the result if its type has
/// full precision.
fn along_rows(cx: &mut Lowering<'_>, input: Id, output: Id, (rows, size, _): (i64, i64, i64), is_log: bool) {
    let dtype = cx.dtype(input);
    let keeps = !is_log && dtype == accumulator(dtype);
    cx.call(rows, GRAIN / size.max(1), &[input], &[output], |b, kernel| {
        let ty = b.computed(dtype);
        let [source, target] = [kernel.buffers[0], kernel.buffers[1]];
        b.for_each(kernel.begin, kernel.end, 1, |row| {
            let start = b.times(row, size);
            let (zero, count) = (b.index(0), b.index(size));
            let lowest = b.float(f64::NEG_INFINITY, ty);
            let largest = b.for_loop_carried(zero, count, 1, &[lowest], |i, state| {
                vec![b.max(state[0], b.load(source, dtype, b.add(start, i)), false)]
            })[0];
            let sum = b.for_loop_carried(zero, count, 1, &[b.zero(ty)], |i, state| {
                let at = b.add(start, i);
                let term = b.exp(b.sub(b.load(source, dtype, at), largest));
                if keeps {
                    b.store(term, target, dtype, at);
                }
                vec![b.accumulate(state[0], term)]
            })[0];
            let whole = finished(b, sum, is_log);
            b.for_each(zero, count, 1, |i| {
                let at = b.add(start, i);
                let value = if keeps {
                    b.mul(b.load(target, dtype, at), whole)
                } else {
                    share(b, b.load(source, dtype, at), largest, whole, is_log)
                };
                b.store(value, target, dtype, at);
            });
        });
    });
}

/// Adds the call for columns. Several adjacent columns are computed together, with maxima and sums on the stack.
fn along_columns(cx: &mut Lowering<'_>, input: Id, output: Id, (outer, size, inner): (i64, i64, i64), is_log: bool) {
    let dtype = cx.dtype(input);
    let wide = accumulator(dtype);
    let at_once = cx.elements_per_iteration(BLOCK);
    let blocks = (inner + at_once - 1) / at_once;
    cx.call(outer * blocks, GRAIN / (size * inner.min(at_once)).max(1), &[input], &[output], |b, kernel| {
        let ty = b.computed(dtype);
        let [source, target] = [kernel.buffers[0], kernel.buffers[1]];
        let [largest, sums] = [0, 1].map(|_| b.alloca(at_once, b.i64()));
        b.for_each(kernel.begin, kernel.end, 1, |number| {
            let (outer, block) = b.div_rem(number, blocks);
            let first = b.times(block, at_once);
            let count = b.min(b.index(at_once), b.sub(b.index(inner), first), false);
            let base = b.add(b.times(outer, size * inner), first);
            let columns = |body: &dyn Fn(V)| b.for_each(b.index(0), count, 1, body);
            let elements = |body: &dyn Fn(V, V)| {
                b.for_each(b.index(0), b.index(size), 1, |i| {
                    let row = b.add(base, b.times(i, inner));
                    columns(&|j| body(b.add(row, j), j));
                });
            };
            columns(&|j| {
                b.store(b.float(f64::NEG_INFINITY, ty), largest, wide, j);
                b.store(b.zero(ty), sums, wide, j);
            });
            elements(&|at, j| {
                let value = b.max(b.load(largest, wide, j), b.load(source, dtype, at), false);
                b.store(value, largest, wide, j);
            });
            elements(&|at, j| {
                let term = b.exp(b.sub(b.load(source, dtype, at), b.load(largest, wide, j)));
                b.store(b.add(b.load(sums, wide, j), term), sums, wide, j);
            });
            columns(&|j| b.store(finished(b, b.load(sums, wide, j), is_log), sums, wide, j));
            elements(&|at, j| {
                let (largest, whole) = (b.load(largest, wide, j), b.load(sums, wide, j));
                b.store(share(b, b.load(source, dtype, at), largest, whole, is_log), target, dtype, at);
            });
        });
    });
}
