//! Building blocks of lowerings: views, conversions, contractions.

use super::elementwise::collapse;
use crate::{
    emit::{Builder, V},
    graph::{Id, strides},
    half_precision::is_half,
    lowering::Lowering,
};
use divi_onnx::DType;

/// Minimal number of arithmetic operations per thread.
pub(super) const GRAIN: i64 = 32 * 1024;

/// Returns the minimal number of iterations per thread, given the arithmetic operations of an iteration.
pub(crate) fn grain(work: i64) -> i64 {
    (GRAIN / work.max(1)).max(1)
}

/// Returns a view of a value with another shape.
pub(super) fn view(cx: &mut Lowering<'_>, id: Id, shape: &[i64]) -> Id {
    let view = cx.temporary(cx.dtype(id), shape);
    cx.alias(view, id);
    view
}

/// Returns the type in which sums of elements are accumulated.
pub(super) fn accumulator(dtype: DType) -> DType {
    if is_half(dtype) { DType::F32 } else { dtype }
}

/// Converts a loaded element to a floating-point type.
pub(super) fn to_float(b: &Builder, value: V, dtype: DType, ty: crate::emit::Type) -> V {
    if dtype.is_float() { b.resize_float(value, ty) } else { b.int_to_float(value, ty, !dtype.is_signed_int()) }
}

/// Converts a loaded integer to `i64`.
pub(super) fn to_index(b: &Builder, value: V, dtype: DType) -> V {
    b.resize(value, b.i64(), !dtype.is_signed_int())
}

/// Operand of a contraction.
#[derive(Clone, Debug)]
pub(super) struct ContractionOperand {
    pub(super) id: Id,
    /// Strides along the axes of the result.
    pub(super) steps: Vec<i64>,
    /// Strides along the reduced axes.
    pub(super) depth_steps: Vec<i64>,
}

/// Elements of a row of the result whose sums are accumulated together, on the stack.
const CHUNK: i64 = 256;

/// Adds the call of a tensor contraction: each element of the result, whose shape is `shape`, is the sum over the axes `depth` of the
/// products of the factors.
pub(super) fn contract(
    cx: &mut Lowering<'_>,
    factors: &[ContractionOperand],
    shape: &[i64],
    depth: &[i64],
    result: Id,
) {
    let mut steps: Vec<_> = factors.iter().map(|factor| factor.steps.clone()).collect();
    steps.push(strides(shape));
    let (shape, mut steps) = collapse(shape, steps);
    steps.pop();
    let (depth, depth_steps) = collapse(depth, factors.iter().map(|factor| factor.depth_steps.clone()).collect());
    let row_step = |i: usize| steps[i].last().copied().unwrap_or(0);
    let length = shape.last().copied().unwrap_or(1);
    let is_row_dense = (0..factors.len()).all(|i| (0..=1).contains(&row_step(i)));
    let is_depth_dense = depth_steps.iter().all(|steps| steps.last().is_none_or(|step| (0..=1).contains(step)));
    let sum = Contraction {
        accumulator: accumulator(cx.dtype(result)),
        dtypes: factors.iter().map(|factor| cx.dtype(factor.id)).collect(),
        result: cx.dtype(result),
        shape,
        steps,
        depth,
        depth_steps,
    };
    let reads: Vec<_> = factors.iter().map(|factor| factor.id).collect();
    let work = sum.depth.iter().product::<i64>().max(1);
    let count: i64 = sum.shape.iter().product();
    if is_row_dense && (length >= 8 || !is_depth_dense) && count > 0 && !cx.is_simt() {
        let chunks = (length + CHUNK - 1) / CHUNK;
        let extent = count / length * chunks;
        cx.call(extent, grain(work * length.min(CHUNK)), &reads, &[result], |b, kernel| {
            sum.by_rows(b, kernel.buffers, kernel.begin, kernel.end);
        });
    } else {
        cx.call(count, grain(work), &reads, &[result], |b, kernel| {
            sum.one_by_one(b, kernel.buffers, kernel.begin, kernel.end);
        });
    }
}

/// Parameters of a contraction with collapsed axes.
struct Contraction {
    accumulator: DType,
    dtypes: Vec<DType>,
    result: DType,
    shape: Vec<i64>,
    steps: Vec<Vec<i64>>,
    depth: Vec<i64>,
    depth_steps: Vec<Vec<i64>>,
}

impl Contraction {
    fn load(&self, b: &Builder, buffers: &[V], factor: usize, offset: V) -> V {
        let value = b.load(buffers[factor], self.dtypes[factor], offset);
        let (dtype, ty) = (self.dtypes[factor], b.computed(self.accumulator));
        match (dtype.is_float(), self.accumulator.is_float()) {
            (_, true) => to_float(b, value, dtype, ty),
            _ => b.resize(value, ty, !dtype.is_signed_int()),
        }
    }

    /// Emits loops whose innermost one is the reduction, for one element of the result at a time.
    fn one_by_one(&self, b: &Builder, buffers: &[V], begin: V, end: V) {
        let ty = b.computed(self.accumulator);
        b.for_each(begin, end, 1, |number| {
            let place = b.coordinates(number, &self.shape);
            let origins: Vec<_> = self.steps.iter().map(|steps| b.offset(&place, steps)).collect();
            let sum = b.fold_nest(&self.depth, &[b.zero(ty)], |depth, sum| {
                let values = (0..origins.len()).map(|i| {
                    let offset = b.add(origins[i], b.offset(depth, &self.depth_steps[i]));
                    self.load(b, buffers, i, offset)
                });
                let product = values.reduce(|a, c| b.mul(a, c)).expect("products have factors");
                vec![b.accumulate(sum[0], product)]
            });
            b.store(sum[0], buffers[origins.len()], self.result, number);
        });
    }

    /// Emits loops whose innermost one is along a row of the result, which is contiguous or constant in all factors.
    fn by_rows(&self, b: &Builder, buffers: &[V], begin: V, end: V) {
        let ty = b.computed(self.accumulator);
        let (&length, outer) = self.shape.split_last().expect("results with rows have axes");
        let chunks = (length + CHUNK - 1) / CHUNK;
        let scratch = b.alloca(CHUNK.min(length), ty);
        // All rows of a matrix are computed for one chunk of columns, so that the chunk of the right operand stays in the cache.
        let split = outer.len().saturating_sub(1);
        let mut shape = outer.to_vec();
        shape.insert(split, chunks);
        let (same, along): (Vec<usize>, Vec<usize>) =
            (0..self.steps.len()).partition(|&i| self.steps[i].last() == Some(&0));
        b.for_each(begin, end, 1, |number| {
            let mut place = b.coordinates(number, &shape);
            let chunk = place.remove(split);
            let first = b.times(chunk, CHUNK);
            let count = b.min(b.sub(b.index(length), first), b.index(CHUNK), false);
            let origins: Vec<_> = self.steps.iter().map(|steps| b.offset(&place, steps)).collect();
            let zero = b.index(0);
            b.for_each(zero, count, 1, |i| b.store(b.zero(ty), scratch, self.accumulator, i));
            b.nest(&self.depth, |depth| {
                let at = |i: usize| b.add(origins[i], b.offset(depth, &self.depth_steps[i]));
                let common = same.iter().map(|&i| self.load(b, buffers, i, at(i))).reduce(|x, y| b.mul(x, y));
                let starts: Vec<_> = along.iter().map(|&i| b.add(at(i), first)).collect();
                b.for_each(zero, count, 1, |i| {
                    let values = along
                        .iter()
                        .zip(&starts)
                        .map(|(&factor, &start)| self.load(b, buffers, factor, b.add(start, i)));
                    let product = common.into_iter().chain(values).reduce(|x, y| b.mul(x, y));
                    let product = product.expect("products have factors");
                    let sum = b.accumulate(b.load(scratch, self.accumulator, i), product);
                    b.store(sum, scratch, self.accumulator, i);
                });
            });
            let target = b.add(b.offset(&place, &strides_of_rows(outer, length)), first);
            b.for_each(zero, count, 1, |i| {
                let sum = b.load(scratch, self.accumulator, i);
                b.store(sum, buffers[self.steps.len()], self.result, b.add(target, i));
            });
        });
    }
}

/// Returns the strides of the axes outside of rows of a length.
fn strides_of_rows(outer: &[i64], length: i64) -> Vec<i64> {
    strides(outer).iter().map(|stride| stride * length).collect()
}
