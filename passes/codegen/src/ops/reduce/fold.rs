//! Loop nests of reductions.
//!
//! If the last axis is reduced, each element of the result is accumulated in registers. If it is kept, several adjacent elements of the
//! result are accumulated on the stack. Either way, the innermost loop reads contiguous elements of the operand.

use crate::{
    emit::{Builder, V},
    graph::Id,
    lowering::Lowering,
    ops::elementwise::grain,
};
use divi_onnx::DType;

/// Adjacent elements of the result that are computed together.
const BLOCK: i64 = 64;
/// Minimal number of elements of the operand per thread.
const GRAIN: i64 = 16 * 1024;

/// Operand of a reduction with its kept and reduced axes.
pub(super) struct Fold {
    input: Id,
    dtype: DType,
    /// Sizes and strides of kept axes, without axes of size 1 and with adjacent axes merged.
    kept: Vec<(i64, i64)>,
    /// Sizes and strides of reduced axes, likewise.
    folded: Vec<(i64, i64)>,
    /// Size of a kept last axis, which is contiguous in operand and result; 1 if the last axis is reduced.
    run: i64,
}

/// An element of the operand.
pub(super) struct Item {
    pub(super) value: V,
    /// Index among the elements that are reduced to the same result.
    pub(super) number: V,
    /// Corresponding element of the additional operand.
    pub(super) beside: Option<V>,
}

impl Fold {
    pub(super) fn new(cx: &Lowering<'_>, input: Id, axes: &[usize]) -> Self {
        let mut kept: Vec<(i64, i64)> = vec![];
        let mut folded: Vec<(i64, i64)> = vec![];
        let shape = cx.shape(input);
        let strides = crate::graph::strides(shape);
        let mut was_folded = None;
        for (axis, (&size, stride)) in shape.iter().zip(strides).enumerate().filter(|(_, (size, _))| **size != 1) {
            let is_folded = axes.contains(&axis);
            let list = if is_folded { &mut folded } else { &mut kept };
            match list.last_mut() {
                Some(last) if was_folded == Some(is_folded) => *last = (last.0 * size, stride),
                _ => list.push((size, stride)),
            }
            was_folded = Some(is_folded);
        }
        let run = match kept.last() {
            Some(&(size, 1)) if !folded.is_empty() => {
                kept.pop();
                size
            }
            _ => 1,
        };
        Self { input, dtype: cx.dtype(input), kept, folded, run }
    }

    /// Adds the call of the reduction: `start` returns the initial state, `step` updates it by an element of the operand, `finish`
    /// converts it to an element of the result. `wide` are the types of the state. `beside` is an additional operand of the size of the
    /// result that is passed to `step` and `finish`.
    #[expect(clippy::too_many_arguments, reason = "a reduction has an initial state, a step, and a final conversion")]
    pub(super) fn call(
        &self,
        cx: &mut Lowering<'_>,
        beside: Option<Id>,
        output: Id,
        wide: &[DType],
        start: impl FnOnce(&Builder) -> Vec<V>,
        step: impl FnOnce(&Builder, &[V], Item) -> Vec<V>,
        finish: impl FnOnce(&Builder, &[V], Option<V>) -> V,
    ) {
        let result = cx.dtype(output);
        let beside_dtype = beside.map(|id| cx.dtype(id));
        let mut reads = vec![self.input];
        reads.extend(beside);
        let (kept, kept_strides): (Vec<_>, Vec<_>) = self.kept.iter().copied().unzip();
        let (folded, folded_strides): (Vec<_>, Vec<_>) = self.folded.iter().copied().unzip();
        let folded_numbers = crate::graph::strides(&folded);
        let folded_count: i64 = folded.iter().product();
        let at_once = cx.elements_per_iteration(BLOCK);
        let blocks = (self.run + at_once - 1) / at_once;
        let extent = kept.iter().product::<i64>() * blocks;
        let grain = grain(result, extent, GRAIN / (folded_count * self.run.min(at_once)).max(1));
        cx.call(extent, grain, &reads, &[output], |b, kernel| {
            let (source, target) = (kernel.buffers[0], kernel.buffers[reads.len()]);
            let load_beside = |at| beside_dtype.map(|dtype| b.load(kernel.buffers[1], dtype, at));
            if self.run == 1 {
                return b.for_each(kernel.begin, kernel.end, 1, |number| {
                    let base = b.offset(&b.coordinates(number, &kept), &kept_strides);
                    let beside = load_beside(number);
                    let state = b.fold_nest(&folded, &start(b), |place, state| {
                        let value = b.load(source, self.dtype, b.add(base, b.offset(place, &folded_strides)));
                        step(b, state, Item { value, number: b.offset(place, &folded_numbers), beside })
                    });
                    b.store(finish(b, &state, beside), target, result, number);
                });
            }
            let states: Vec<V> = wide.iter().map(|_| b.alloca(at_once, b.i64())).collect();
            let load = |i| states.iter().zip(wide).map(|(&state, &dtype)| b.load(state, dtype, i)).collect::<Vec<_>>();
            let store = |values: Vec<V>, i| {
                for ((value, &state), &dtype) in values.into_iter().zip(&states).zip(wide) {
                    b.store(value, state, dtype, i);
                }
            };
            b.for_each(kernel.begin, kernel.end, 1, |number| {
                let (row, block) = b.div_rem(number, blocks);
                let first = b.times(block, at_once);
                let count = b.min(b.index(at_once), b.sub(b.index(self.run), first), false);
                let base = b.add(b.offset(&b.coordinates(row, &kept), &kept_strides), first);
                let target_base = b.add(b.times(row, self.run), first);
                b.for_each(b.index(0), count, 1, |i| store(start(b), i));
                b.nest(&folded, |place| {
                    let row = b.add(base, b.offset(place, &folded_strides));
                    let number = b.offset(place, &folded_numbers);
                    b.for_each(b.index(0), count, 1, |i| {
                        let value = b.load(source, self.dtype, b.add(row, i));
                        let beside = load_beside(b.add(target_base, i));
                        store(step(b, &load(i), Item { value, number, beside }), i);
                    });
                });
                b.for_each(b.index(0), count, 1, |i| {
                    let at = b.add(target_base, i);
                    b.store(finish(b, &load(i), load_beside(at)), target, result, at);
                });
            });
        });
    }
}
