//! Operators that read elements at indices that are computed at run time.

use super::{GRAIN, Lower, load_index, raw, sizes_around};
use crate::{
    emit::{Builder, V},
    error::Result,
    graph::{Id, Node, strides},
    lowering::Lowering,
    ops::elementwise::grain,
};
use divi_onnx::{DType, Op, node::normalize_axis};

pub(super) fn find(op: Op) -> Option<Lower> {
    Some(match op {
        Op::Gather => gather,
        Op::GatherElements => gather_elements,
        Op::GatherND => gather_nd,
        Op::ReverseSequence => reverse_sequence,
        _ => return None,
    })
}

/// Returns the minimal number of iterations per thread, each of which copies `count` elements.
fn grain_of(dtype: DType, extent: i64, count: i64) -> i64 {
    grain(dtype, extent, GRAIN / (count.max(1) * 8))
}

fn gather(cx: &mut Lowering<'_>, node: &Node) -> Result<()> {
    let (data, indices, output) = (node.input(0)?, node.input(1)?, node.output()?);
    let axis = normalize_axis(node.attributes().int_or("axis", 0)?, cx.shape(data).len())?;
    let (outer, size, inner) = sizes_around(cx.shape(data), axis);
    let (count, index_dtype) = (cx.count(indices), cx.dtype(indices));
    if let (1, Some(&[index])) = (outer, cx.ints(indices).as_deref()) {
        let index = if index < 0 { index + size } else { index };
        if (0..size).contains(&index) && cx.try_view_part(output, data, index * inner) {
            return Ok(());
        }
    }
    let dtype = raw(cx.dtype(data))?;
    // An iteration copies a run of contiguous elements on a CPU, and a single element on a GPU.
    let run = cx.elements_per_iteration(inner);
    let parts = if run == 0 { 1 } else { inner / run };
    let extent = outer * count * parts;
    cx.call(extent, grain_of(dtype, extent, run), &[data, indices], &[output], |b, kernel| {
        b.for_each(kernel.begin, kernel.end, 1, |number| {
            let (row, part) = b.div_rem(number, parts.max(1));
            let (outer, place) = b.div_rem(row, count.max(1));
            let index = b.checked_index(load_index(b, kernel.buffers[1], index_dtype, place), size);
            let from = b.add(b.times(b.add(b.times(outer, size), index), inner), part);
            copy_run(b, kernel.buffers[0], from, kernel.buffers[2], b.times(number, run), dtype, run);
        });
    });
    Ok(())
}

/// Copies contiguous elements.
fn copy_run(b: &Builder, from: V, from_start: V, to: V, to_start: V, dtype: DType, count: i64) {
    b.repeat(count, |i| {
        let value = b.load(from, dtype, b.add(from_start, i));
        b.store(value, to, dtype, b.add(to_start, i));
    });
}

/// Lowers GatherElements: the result has the shape of the indices, each of which replaces the coordinate along the axis.
fn gather_elements(cx: &mut Lowering<'_>, node: &Node) -> Result<()> {
    let (data, indices, output) = (node.input(0)?, node.input(1)?, node.output()?);
    let (shape, from) = (cx.shape(output).to_vec(), strides(cx.shape(data)));
    let axis = normalize_axis(node.attributes().int_or("axis", 0)?, shape.len())?;
    let size = cx.shape(data)[axis];
    let (index_dtype, dtype) = (cx.dtype(indices), raw(cx.dtype(data))?);
    let (outer, inner) = (shape[0], &shape[1..]);
    let per_row: i64 = inner.iter().product();
    cx.call(outer, grain_of(dtype, outer, per_row), &[data, indices], &[output], |b, kernel| {
        b.for_each(kernel.begin, kernel.end, 1, |first| {
            b.nest(inner, |rest| {
                let mut place = vec![first];
                place.extend(rest);
                let at = b.offset(&place, &strides(&shape));
                place[axis] = b.checked_index(load_index(b, kernel.buffers[1], index_dtype, at), size);
                let value = b.load(kernel.buffers[0], dtype, b.offset(&place, &from));
                b.store(value, kernel.buffers[2], dtype, at);
            });
        });
    });
    Ok(())
}

/// Tuples of indices, each of which addresses contiguous elements of a tensor.
pub(super) struct Tuples {
    /// Indices per tuple.
    pub(super) length: usize,
    /// Sizes and strides of the axes that the indices address.
    axes: Vec<(i64, i64)>,
    /// Number of elements that a tuple addresses.
    pub(super) run: i64,
    dtype: DType,
}

impl Tuples {
    /// Creates tuples of indices into the axes of `data` from axis `first` on.
    pub(super) fn new(cx: &Lowering<'_>, data: Id, indices: Id, first: usize) -> Self {
        let shape = cx.shape(data);
        let length = cx.shape(indices).last().map_or(0, |&length| length as usize);
        let axes = shape.iter().copied().zip(strides(shape)).skip(first).take(length).collect();
        Self { length, axes, run: shape[first + length..].iter().product(), dtype: cx.dtype(indices) }
    }

    /// Emits the offset of the first element that tuple `number` addresses.
    pub(super) fn offset(&self, b: &Builder, pointer: V, number: V) -> V {
        let start = b.times(number, self.length as i64);
        let terms = self.axes.iter().enumerate().map(|(i, &(size, stride))| {
            let index = load_index(b, pointer, self.dtype, b.plus(start, i as i64));
            b.times(b.checked_index(index, size), stride)
        });
        terms.reduce(|sum, term| b.add(sum, term)).unwrap_or_else(|| b.index(0))
    }
}

fn gather_nd(cx: &mut Lowering<'_>, node: &Node) -> Result<()> {
    let (data, indices, output) = (node.input(0)?, node.input(1)?, node.output()?);
    let batch_axes = node.attributes().int_or("batch_dims", 0)? as usize;
    let tuples = Tuples::new(cx, data, indices, batch_axes);
    let shape = cx.shape(indices);
    let count: i64 = shape[..shape.len() - 1].iter().product();
    let per_batch: i64 = shape[batch_axes..shape.len() - 1].iter().product();
    let batch_size: i64 = cx.shape(data)[batch_axes..].iter().product();
    let dtype = raw(cx.dtype(data))?;
    cx.call(count, grain_of(dtype, count, tuples.run), &[data, indices], &[output], |b, kernel| {
        b.for_each(kernel.begin, kernel.end, 1, |number| {
            let (batch, _) = b.div_rem(number, per_batch.max(1));
            let from = b.add(b.times(batch, batch_size), tuples.offset(b, kernel.buffers[1], number));
            copy_run(b, kernel.buffers[0], from, kernel.buffers[2], b.times(number, tuples.run), dtype, tuples.run);
        });
    });
    Ok(())
}

/// Lowers ReverseSequence: reverses the first `length` elements of each sequence of a batch.
fn reverse_sequence(cx: &mut Lowering<'_>, node: &Node) -> Result<()> {
    let (data, lengths, output) = (node.input(0)?, node.input(1)?, node.output()?);
    let is_batch_first = node.attributes().int_or("batch_axis", 1)? == 0;
    let (shape, dtype) = (cx.shape(data).to_vec(), raw(cx.dtype(data))?);
    let [first, second, ..] = shape[..] else {
        return crate::error::unsupported("the operand must have rank 2 or more");
    };
    let run: i64 = shape[2..].iter().product();
    let (time_size, length_dtype) = (if is_batch_first { second } else { first }, cx.dtype(lengths));
    let extent = first * second;
    cx.call(extent, grain_of(dtype, extent, run), &[data, lengths], &[output], |b, kernel| {
        b.for_each(kernel.begin, kernel.end, 1, |number| {
            let (row, column) = b.div_rem(number, second);
            let (batch, time) = if is_batch_first { (row, column) } else { (column, row) };
            let length = load_index(b, kernel.buffers[1], length_dtype, batch);
            let last = b.plus(length, -1);
            let mirrored = b.select(b.less(time, length), b.sub(last, time), time);
            let source = b.checked_index(mirrored, time_size);
            let from = if is_batch_first {
                b.add(b.times(batch, second), source)
            } else {
                b.add(b.times(source, second), batch)
            };
            let (from, to) = (b.times(from, run), b.times(number, run));
            copy_run(b, kernel.buffers[0], from, kernel.buffers[2], to, dtype, run);
        });
    });
    Ok(())
}
