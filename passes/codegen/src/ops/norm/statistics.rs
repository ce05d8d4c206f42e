//! Reductions over axes of a tensor, which are kept with size 1.

use crate::{
    emit::{Builder, V},
    graph::{Id, strides},
    lowering::Lowering,
    ops::{
        blocks::{accumulator, grain},
        elementwise::collapse,
    },
};
use divi_onnx::DType;

/// Sizes and strides of kept and reduced axes of a tensor.
struct Parts {
    dtype: DType,
    kept: Vec<i64>,
    kept_steps: Vec<i64>,
    reduced: Vec<i64>,
    reduced_steps: Vec<i64>,
    /// Shape of the result.
    result: Vec<i64>,
}

impl Parts {
    fn new(cx: &Lowering<'_>, x: Id, axes: &[usize]) -> Self {
        let shape = cx.shape(x);
        let steps = strides(shape);
        let part = |is_reduced: bool| -> (Vec<i64>, Vec<i64>) {
            let chosen: Vec<_> = (0..shape.len()).filter(|axis| axes.contains(axis) == is_reduced).collect();
            let sizes: Vec<_> = chosen.iter().map(|&axis| shape[axis]).collect();
            let (sizes, mut steps) = collapse(&sizes, vec![chosen.iter().map(|&axis| steps[axis]).collect()]);
            (sizes, steps.pop().unwrap_or_default())
        };
        let ((kept, kept_steps), (reduced, reduced_steps)) = (part(false), part(true));
        let result = (0..shape.len()).map(|axis| if axes.contains(&axis) { 1 } else { shape[axis] }).collect();
        Self { dtype: cx.dtype(x), kept, kept_steps, reduced, reduced_steps, result }
    }

    fn extent(&self) -> i64 {
        self.kept.iter().product()
    }

    fn count(&self) -> i64 {
        self.reduced.iter().product()
    }

    /// Emits the sum of `term` over the elements that are reduced to result `number`.
    fn sum(&self, b: &Builder, x: V, number: V, term: impl FnOnce(V) -> V) -> V {
        let zero = b.zero(b.computed(accumulator(self.dtype)));
        let origin = b.offset(&b.coordinates(number, &self.kept), &self.kept_steps);
        b.fold_nest(&self.reduced, &[zero], |place, sum| {
            let value = b.load(x, self.dtype, b.add(origin, b.offset(place, &self.reduced_steps)));
            vec![b.accumulate(sum[0], term(value))]
        })[0]
    }

    fn divided(&self, b: &Builder, sum: V) -> V {
        b.div(sum, b.float(self.count() as f64, b.type_of(sum)), false)
    }
}

/// Adds a call that computes mean and variance in two passes. Returns both.
pub(super) fn moments(cx: &mut Lowering<'_>, x: Id, axes: &[usize]) -> [Id; 2] {
    let parts = Parts::new(cx, x, axes);
    let dtype = accumulator(parts.dtype);
    let results = [cx.temporary(dtype, &parts.result), cx.temporary(dtype, &parts.result)];
    cx.call(parts.extent(), grain(2 * parts.count()), &[x], &results, |b, kernel| {
        let (x, results) = (kernel.buffers[0], &kernel.buffers[1..]);
        b.for_each(kernel.begin, kernel.end, 1, |number| {
            let mean = parts.divided(b, parts.sum(b, x, number, |value| value));
            let squares = parts.sum(b, x, number, |value| {
                let difference = b.sub(value, mean);
                b.mul(difference, difference)
            });
            b.store(mean, results[0], dtype, number);
            b.store(parts.divided(b, squares), results[1], dtype, number);
        });
    });
    results
}

pub(super) fn mean_of_squares(cx: &mut Lowering<'_>, x: Id, axes: &[usize]) -> Id {
    summed(cx, x, axes, |b, parts, x, number| parts.divided(b, parts.sum(b, x, number, |value| b.mul(value, value))))
}

/// Returns sums of magnitudes (`is_first`), or of squares.
pub(super) fn sum_of_powers(cx: &mut Lowering<'_>, x: Id, axes: &[usize], is_first: bool) -> Id {
    summed(cx, x, axes, |b, parts, x, number| {
        parts.sum(b, x, number, |value| if is_first { b.abs(value) } else { b.mul(value, value) })
    })
}

fn summed(cx: &mut Lowering<'_>, x: Id, axes: &[usize], sum: impl FnOnce(&Builder, &Parts, V, V) -> V) -> Id {
    let parts = Parts::new(cx, x, axes);
    let dtype = accumulator(parts.dtype);
    let result = cx.temporary(dtype, &parts.result);
    cx.call(parts.extent(), grain(parts.count()), &[x], &[result], |b, kernel| {
        b.for_each(kernel.begin, kernel.end, 1, |number| {
            b.store(sum(b, &parts, kernel.buffers[0], number), kernel.buffers[1], dtype, number);
        });
    });
    result
}
