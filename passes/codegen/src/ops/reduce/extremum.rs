//! ArgMax, ArgMin and Hardmax.

use super::{super::blocks::accumulator, fold::Fold, neutral_extremum};
use crate::{
    emit::{Builder, Compare, V},
    error::Result,
    graph::{Id, Node},
    lowering::Lowering,
    ops::{
        elementwise::{check_numbers, convert, grain, is_unsigned},
        movement::sizes_around,
    },
};
use divi_onnx::{DType, node::normalize_axis};

/// Emits the condition that an element replaces the best one so far; NaN replaces all numbers.
fn is_better(b: &Builder, dtype: DType, is_max: bool, wins_ties: bool, x: V, best: V) -> V {
    let how = match (is_max, wins_ties) {
        (true, false) => Compare::Greater,
        (true, true) => Compare::GreaterOrEqual,
        (false, false) => Compare::Less,
        (false, true) => Compare::LessOrEqual,
    };
    let beats = b.compare(how, x, best, is_unsigned(dtype));
    if !dtype.is_float() {
        return beats;
    }
    let is_first_nan = if wins_ties { b.is_nan(x) } else { b.and(b.is_nan(x), b.not(b.is_nan(best))) };
    b.or(beats, is_first_nan)
}

pub(super) fn arg(cx: &mut Lowering<'_>, node: &Node, is_max: bool) -> Result<()> {
    check_numbers(cx, node)?;
    let attributes = node.attributes();
    let input = node.input(0)?;
    let axis = normalize_axis(attributes.int_or("axis", 0)?, cx.shape(input).len())?;
    let wins_ties = attributes.flag("select_last_index", false)?;
    index_of_extremum(cx, input, axis, node.output()?, is_max, wins_ties);
    Ok(())
}

/// Adds a call that computes the index of the extremum of an axis. If `wins_ties`, the last of equal elements is selected.
fn index_of_extremum(cx: &mut Lowering<'_>, input: Id, axis: usize, output: Id, is_max: bool, wins_ties: bool) {
    let dtype = cx.dtype(input);
    Fold::new(cx, input, &[axis]).call(
        cx,
        None,
        output,
        &[accumulator(dtype), DType::I64],
        |b| vec![neutral_extremum(b, dtype, is_max), b.index(0)],
        |b, state, item| {
            let is_better = is_better(b, dtype, is_max, wins_ties, item.value, state[0]);
            vec![b.select(is_better, item.value, state[0]), b.select(is_better, item.number, state[1])]
        },
        |_, state, _| state[1],
    );
}

/// Lowers Hardmax: one at the first of the largest elements of an axis, zero elsewhere.
pub(super) fn hardmax(cx: &mut Lowering<'_>, node: &Node) -> Result<()> {
    check_numbers(cx, node)?;
    let (input, output) = (node.input(0)?, node.output()?);
    let (shape, dtype) = (cx.shape(input).to_vec(), cx.dtype(output));
    let axis = normalize_axis(node.attributes().int_or("axis", -1)?, shape.len())?;
    let (outer, size, inner) = sizes_around(&shape, axis);
    let places = cx.temporary(DType::I64, &[outer, inner]);
    index_of_extremum(cx, input, axis, places, true, false);
    let grain = grain(dtype, outer, 16 * 1024 / (size * inner).max(1));
    cx.call(outer, grain, &[places], &[output], |b, kernel| {
        b.for_each(kernel.begin, kernel.end, 1, |outer| {
            b.nest(&[size, inner], |place| {
                let largest = b.load(kernel.buffers[0], DType::I64, b.add(b.times(outer, inner), place[1]));
                let value = convert(b, b.equal(largest, place[0]), DType::Bool, dtype);
                let at = b.add(b.times(b.add(b.times(outer, size), place[0]), inner), place[1]);
                b.store(value, kernel.buffers[1], dtype, at);
            });
        });
    });
    Ok(())
}
