//! Softmax along the last axis: a row stays in the cache, and its exponentials are computed once.

use crate::{
    emit::{Builder, Compare, Reduction, V},
    epilogue,
    error::Result,
    graph::Node,
    lowering::Lowering,
};
use divi_onnx::{DType, Op, node::normalize_axis};

/// Longest row, whose exponentials are on the stack.
const LONGEST: i64 = 4096;
/// Difference from the largest element below which a share is 0. Shares of up to `LONGEST` elements above it are not subnormal:
/// subnormal numbers, which masks cause, would slow the kernel itself and the product that reads the shares about a hundredfold.
const SMALLEST: f64 = -79.0;
/// Minimal number of elements per thread.
const GRAIN: i64 = 2048;

/// Lowers a Softmax with the conversion of its result. Returns the number of nodes; `None` if there is no fast kernel.
pub(super) fn lower(cx: &mut Lowering<'_>, nodes: &[Node], position: usize) -> Result<Option<usize>> {
    let node = &nodes[position];
    let (input, result) = (node.input(0)?, node.output()?);
    let shape = cx.shape(input).to_vec();
    let lanes = cx.lanes() as i64;
    let Some(&size) = shape.last().filter(|size| (lanes..=LONGEST).contains(size)) else { return Ok(None) };
    let axis = normalize_axis(node.attributes().int_or("axis", -1)?, shape.len())?;
    let is_supported = node.op == Op::Softmax && axis + 1 == shape.len() && cx.dtype(input) == DType::F32;
    if !is_supported || cx.count(input) == 0 {
        return Ok(None);
    }
    let (more, fused, result) = epilogue::fuse_epilogue(cx, nodes, position + 1, result, &|_, _| false);
    let input = cx.dense(input);
    let rows = shape[..axis].iter().product();
    cx.call(rows, GRAIN / size, &[input], &[result], |b, kernel| {
        let (ty, rest) = (b.vector(), size % lanes);
        let [source, target] = [kernel.buffers[0], kernel.buffers[1]];
        let terms = b.alloca((size / lanes + 1) * lanes, b.f32());
        let vectors = size / lanes;
        let mask = (rest > 0).then(|| b.mask(rest as usize));
        let lowest = b.float(f64::NEG_INFINITY, ty);
        let zero = b.float(0.0, ty);
        b.for_each(kernel.begin, kernel.end, 1, |row| {
            let start = b.times(row, size);
            let end = b.plus(start, vectors * lanes);
            let largest = b.for_loop_carried(b.index(0), b.index(vectors), 1, &[lowest], |i, state| {
                vec![larger(b, state[0], b.load_vector(source, b.add(start, b.times(i, lanes)), ty))]
            })[0];
            let largest = mask.map_or(largest, |mask| {
                larger(b, largest, b.select(mask.lanes(), b.load_masked(source, end, mask), lowest))
            });
            let largest = b.broadcast(b.reduce(largest, Reduction::Largest), ty);
            let term = |x| term(b, x, largest, fused.is_rounded());
            let sum = b.for_loop_carried(b.index(0), b.index(vectors), 1, &[zero], |i, state| {
                let at = b.times(i, lanes);
                let term = term(b.load_vector(source, b.add(start, at), ty));
                b.store_vector(term, terms, at);
                vec![b.add(state[0], term)]
            })[0];
            let sum = mask.map_or(sum, |mask| {
                let term = term(b.load_masked(source, end, mask));
                b.store_vector(term, terms, b.index(vectors * lanes));
                b.add(sum, b.select(mask.lanes(), term, zero))
            });
            let sum = b.reduce(sum, Reduction::Sum);
            let factor = b.broadcast(b.div(b.float(1.0, b.f32()), sum, false), ty);
            let share = |at| fused.emit(b, b.mul(b.load_vector(terms, at, ty), factor), &[]);
            b.repeat(vectors, |i| {
                let at = b.times(i, lanes);
                b.store_vector(share(at), target, b.add(start, at));
            });
            if let Some(mask) = mask {
                b.store_masked(share(b.index(vectors * lanes)), target, end, mask);
            }
        });
    });
    Ok(Some(1 + more))
}

/// Returns the larger of two numbers. NaN is not the largest, but its term makes the sum NaN.
pub(super) fn larger(b: &Builder, state: V, x: V) -> V {
    b.select(b.compare(Compare::Greater, x, state, false), x, state)
}

/// Returns `e^(x - largest)` for a number up to the largest one: 0 if that would be subnormal as a share, and NaN for NaN.
pub(super) fn term(b: &Builder, x: V, largest: V, is_rough: bool) -> V {
    let ty = b.type_of(x);
    let smallest = b.float(SMALLEST, ty);
    let difference = b.sub(x, largest);
    let is_small = b.less(difference, smallest);
    let bounded = b.select(is_small, smallest, difference);
    let term = if is_rough { b.rough_exp_within(bounded) } else { b.exp(bounded) };
    b.select(is_small, b.float(0.0, ty), term)
}
