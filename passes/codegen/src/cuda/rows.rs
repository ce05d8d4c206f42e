//! Reductions of contiguous rows by a block of threads per row: softmax, layer normalization, mean.

use super::launch::launch;
use crate::{
    emit::{Builder, Signature, V},
    error::Result,
    graph::{Id, Node},
    lowering::{Distribution, Lowering, SimtKernelSpec},
};
use divi_onnx::Op;
use divi_onnx::{
    DType,
    node::{normalize_axes, normalize_axis},
};

const WARP: i64 = 32;
/// Minimal row length; shorter rows use the plain kernels, with one thread per row.
const SHORT: i64 = 32;

/// Returns the number of threads for a row.
fn threads(size: i64) -> i64 {
    match size {
        ..=256 => 32,
        257..=1024 => 128,
        _ => 256,
    }
}

/// Adds a launch with one block of threads per row.
fn block_a_row(
    cx: &mut Lowering<'_>,
    count: i64,
    threads: i64,
    reads: &[Id],
    output: Id,
    body: &dyn Fn(&Builder, &Signature<'_>),
) {
    launch(
        cx,
        reads,
        &[output],
        &[SimtKernelSpec { extent: count, distribution: Distribution::Blocks(threads as u32), body }],
        None,
    );
}

/// Reduces a value over the threads of a warp; all threads get the result.
pub(super) fn across_warp(b: &Builder, value: V, combine: &dyn Fn(V, V) -> V) -> V {
    [16, 8, 4, 2, 1].into_iter().fold(value, |all, bits| combine(all, b.shuffled(all, bits)))
}

/// Reduces a value over the threads of a block; all threads get the result. `memory` has one element per warp.
fn combined(b: &Builder, value: V, threads: i64, memory: V, combine: &dyn Fn(V, V) -> V) -> V {
    let warp = across_warp(b, value, combine);
    if threads == WARP {
        return warp;
    }
    let (number, lane) = b.div_rem(b.thread(), WARP);
    // Other threads may still read the result of a previous reduction.
    b.barrier();
    b.if_then(b.equal(lane, b.index(0)), || b.store(warp, memory, DType::F32, number));
    b.barrier();
    let others = (0..threads / WARP).map(|i| b.load(memory, DType::F32, b.index(i)));
    others.reduce(combine).expect("a block has warps")
}

/// Folds the elements of a row that belong to this thread. The row begins at `start`; `step` gets the offset of an element.
fn fold(b: &Builder, size: i64, threads: i64, start: V, first: V, step: &dyn Fn(V, V) -> V) -> V {
    b.for_loop_carried(b.thread(), b.index(size), threads, &[first], |i, state| vec![step(b.add(start, i), state[0])])
        [0]
}

/// Emits a loop over the elements of a row that belong to this thread. `body` gets the index in the row and the offset.
fn each(b: &Builder, size: i64, threads: i64, start: V, body: &dyn Fn(V, V)) {
    b.for_each(b.thread(), b.index(size), threads, |i| body(i, b.add(start, i)));
}

/// Returns the number of rows and their length if all axes from `axis` on are reduced.
fn rows(cx: &Lowering<'_>, id: Id, axis: usize) -> (i64, i64) {
    let shape = cx.shape(id);
    (shape[..axis].iter().product(), shape[axis..].iter().product())
}

/// Lowers a softmax along the last axis.
pub(super) fn softmax(cx: &mut Lowering<'_>, node: &Node) -> Result<Option<usize>> {
    let (input, output) = (node.input(0)?, node.output()?);
    let rank = cx.shape(input).len();
    let axis = normalize_axis(node.attributes().int_or("axis", -1)?, rank)?;
    let (count, size) = rows(cx, input, axis);
    if axis + 1 != rank || cx.dtype(input) != DType::F32 || size < SHORT || count == 0 {
        return Ok(None);
    }
    let threads = threads(size);
    block_a_row(cx, count, threads, &[input], output, &|b, kernel| {
        let [source, target] = [kernel.buffers[0], kernel.buffers[1]];
        let memory = b.shared(WARP);
        let start = b.times(b.block(), size);
        let load = |at| b.load(source, DType::F32, at);
        let lowest = b.float(f64::NEG_INFINITY, b.f32());
        let largest = fold(b, size, threads, start, lowest, &|at, most| b.max(most, load(at), false));
        let largest = combined(b, largest, threads, memory, &|x, y| b.max(x, y, false));
        let zero = b.float(0.0, b.f32());
        let sum = fold(b, size, threads, start, zero, &|at, sum| b.add(sum, b.exp(b.sub(load(at), largest))));
        let sum = combined(b, sum, threads, memory, &|x, y| b.add(x, y));
        let factor = b.div(b.float(1.0, b.f32()), sum, false);
        each(b, size, threads, start, &|_, at| {
            b.store(b.mul(b.exp(b.sub(load(at), largest)), factor), target, DType::F32, at);
        });
    });
    Ok(Some(1))
}

/// Lowers a layer normalization without the optional results.
pub(super) fn layer_normalization(cx: &mut Lowering<'_>, node: &Node) -> Result<Option<usize>> {
    let (input, output) = (node.input(0)?, node.output()?);
    let rank = cx.shape(input).len();
    let axis = normalize_axis(node.attributes().int_or("axis", -1)?, rank)?;
    let (count, size) = rows(cx, input, axis);
    let is_row = |id: Id| cx.dtype(id) == DType::F32 && cx.count(id) == size;
    let affine = [node.optional(1), node.optional(2)];
    let has_others = node.result(1).is_some() || node.result(2).is_some();
    let is_plain = cx.dtype(input) == DType::F32 && !has_others && affine.iter().flatten().all(|&id| is_row(id));
    if !is_plain || size < SHORT || count == 0 {
        return Ok(None);
    }
    let epsilon: f64 = node.attributes().float("epsilon")?.unwrap_or(1e-5).into();
    let threads = threads(size);
    let reads: Vec<Id> = [input].into_iter().chain(affine.into_iter().flatten()).collect();
    block_a_row(cx, count, threads, &reads, output, &|b, kernel| {
        let (source, target) = (kernel.buffers[0], kernel.buffers[reads.len()]);
        let memory = b.shared(WARP);
        let start = b.times(b.block(), size);
        let load = |at| b.load(source, DType::F32, at);
        let (zero, length) = (b.float(0.0, b.f32()), b.float(size as f64, b.f32()));
        let add = |x, y| b.add(x, y);
        let sum = fold(b, size, threads, start, zero, &|at, sum| b.add(sum, load(at)));
        let mean = b.div(combined(b, sum, threads, memory, &add), length, false);
        let squares = fold(b, size, threads, start, zero, &|at, sum| {
            let distance = b.sub(load(at), mean);
            b.fma(distance, distance, sum)
        });
        let variance = b.div(combined(b, squares, threads, memory, &add), length, false);
        let deviation = b.sqrt(b.add(variance, b.float(epsilon, b.f32())));
        let factor = b.div(b.float(1.0, b.f32()), deviation, false);
        each(b, size, threads, start, &|i, at| {
            let mut value = b.mul(b.sub(load(at), mean), factor);
            let mut buffers = kernel.buffers[1..].iter();
            if affine[0].is_some() {
                value = b.mul(value, b.load(*buffers.next().expect("the scale is read"), DType::F32, i));
            }
            if affine[1].is_some() {
                value = b.add(value, b.load(*buffers.next().expect("the bias is read"), DType::F32, i));
            }
            b.store(value, target, DType::F32, at);
        });
    });
    Ok(Some(1))
}

/// Lowers a global average pooling, or a mean over the last axes.
pub(super) fn mean(cx: &mut Lowering<'_>, node: &Node) -> Result<Option<usize>> {
    let (input, output) = (node.input(0)?, node.output()?);
    let rank = cx.shape(input).len();
    let first = if node.op == Op::GlobalAveragePool {
        2
    } else {
        let Some(axes) = node.optional(1).and_then(|axes| cx.ints(axes)) else { return Ok(None) };
        let mut axes = normalize_axes(&axes, rank)?;
        axes.sort_unstable();
        let is_last = axes.iter().rev().zip((0..rank).rev()).all(|(&axis, expected)| axis == expected);
        match axes.first() {
            Some(&first) if is_last => first,
            _ => return Ok(None),
        }
    };
    let (count, size) = rows(cx, input, first.min(rank));
    if cx.dtype(input) != DType::F32 || size < SHORT || count == 0 {
        return Ok(None);
    }
    let threads = threads(size);
    block_a_row(cx, count, threads, &[input], output, &|b, kernel| {
        let memory = b.shared(WARP);
        let start = b.times(b.block(), size);
        let zero = b.float(0.0, b.f32());
        let sum = fold(b, size, threads, start, zero, &|at, sum| b.add(sum, b.load(kernel.buffers[0], DType::F32, at)));
        let sum = combined(b, sum, threads, memory, &|x, y| b.add(x, y));
        b.if_then(b.equal(b.thread(), b.index(0)), || {
            let mean = b.div(sum, b.float(size as f64, b.f32()), false);
            b.store(mean, kernel.buffers[1], DType::F32, b.block());
        });
    });
    Ok(Some(1))
}
