//! Reductions and scans.

mod extremum;
mod fold;
mod scan;
mod softmax;
#[cfg(test)]
mod tests;
mod top_k;

use super::{
    Lower,
    blocks::accumulator,
    elementwise::{check_numbers, convert, is_unsigned},
};
use crate::{
    emit::{Builder, Math, V},
    error::Result,
    graph::{Id, Node},
    lowering::Lowering,
};
use divi_onnx::{DType, Op, node::normalize_axes};
use fold::Fold;

pub(super) fn find(op: Op) -> Option<Lower> {
    Some(match op {
        Op::ReduceSum => {
            |cx, node| reduce(cx, node, accumulator, 0.0, |b, _, sum, x| b.accumulate(sum, x), |_, _, x| x)
        }
        Op::ReduceMean => mean,
        Op::ReduceProd => |cx, node| reduce(cx, node, accumulator, 1.0, |b, _, all, x| b.mul(all, x), |_, _, x| x),
        Op::ReduceMax | Op::ReduceMaxV18 => |cx, node| extremum(cx, node, true),
        Op::ReduceMin | Op::ReduceMinV18 => |cx, node| extremum(cx, node, false),
        Op::ReduceL1 => |cx, node| {
            let step = |b: &Builder, dtype, sum, x| b.accumulate(sum, if is_unsigned(dtype) { x } else { b.abs(x) });
            reduce(cx, node, accumulator, 0.0, step, |_, _, x| x)
        },
        Op::ReduceL2 => {
            |cx, node| reduce(cx, node, real, 0.0, |b, _, sum, x| b.accumulate(sum, b.mul(x, x)), |b, _, x| b.sqrt(x))
        }
        Op::ReduceSumSquare => {
            |cx, node| reduce(cx, node, accumulator, 0.0, |b, _, sum, x| b.accumulate(sum, b.mul(x, x)), |_, _, x| x)
        }
        Op::ReduceLogSum => {
            |cx, node| reduce(cx, node, real, 0.0, |b, _, sum, x| b.accumulate(sum, x), |b, _, x| b.math(Math::Log, x))
        }
        Op::ReduceLogSumExp => log_sum_exp,
        Op::ArgMax => |cx, node| extremum::arg(cx, node, true),
        Op::ArgMin => |cx, node| extremum::arg(cx, node, false),
        Op::CumSum => |cx, node| scan::scan(cx, node, 0.0, |b, all, x| b.add(all, x)),
        Op::CumProd => |cx, node| scan::scan(cx, node, 1.0, |b, all, x| b.mul(all, x)),
        Op::Softmax => |cx, node| softmax::softmax(cx, node, false),
        Op::LogSoftmax => |cx, node| softmax::softmax(cx, node, true),
        Op::Hardmax => extremum::hardmax,
        Op::TopK => top_k::top_k,
        _ => return None,
    })
}

/// As [`accumulator`], for functions with real results; `double` for integers.
fn real(dtype: DType) -> DType {
    if dtype.is_float() { accumulator(dtype) } else { DType::F64 }
}

/// Returns the axes that a node reduces.
fn folded_axes(cx: &Lowering<'_>, node: &Node) -> Result<Vec<usize>> {
    let rank = cx.shape(node.input(0)?).len();
    let axes = match node.optional(1) {
        Some(axes) if cx.count(axes) > 0 => normalize_axes(&cx.known_ints(axes, "the axes")?, rank)?,
        _ if node.attributes().flag("noop_with_empty_axes", false)? => vec![],
        _ => (0..rank).collect(),
    };
    Ok(axes)
}

/// Lowers a reduction with initial value `start`. `wide` maps the element type to the type of the accumulator; `finish` is applied to the
/// result.
fn reduce(
    cx: &mut Lowering<'_>,
    node: &Node,
    wide: fn(DType) -> DType,
    start: f64,
    step: impl FnOnce(&Builder, DType, V, V) -> V,
    finish: impl FnOnce(&Builder, DType, V) -> V,
) -> Result<()> {
    check_numbers(cx, node)?;
    let (input, output) = (node.input(0)?, node.output()?);
    let (dtype, result) = (cx.dtype(input), cx.dtype(output));
    let wide = wide(dtype);
    let axes = folded_axes(cx, node)?;
    Fold::new(cx, input, &axes).call(
        cx,
        None,
        output,
        &[wide],
        |b| vec![b.number(start, b.computed(wide))],
        |b, state, item| vec![step(b, wide, state[0], convert(b, item.value, dtype, wide))],
        |b, state, _| convert(b, finish(b, wide, state[0]), wide, result),
    );
    Ok(())
}

fn mean(cx: &mut Lowering<'_>, node: &Node) -> Result<()> {
    let shape = cx.shape(node.input(0)?);
    let count: i64 = folded_axes(cx, node)?.into_iter().map(|axis| shape[axis]).product();
    reduce(
        cx,
        node,
        accumulator,
        0.0,
        |b, _, sum, x| b.accumulate(sum, x),
        |b, dtype, sum| {
            let ty = b.type_of(sum);
            if dtype.is_float() {
                return b.div(sum, b.float(count as f64, ty), false);
            }
            b.div(sum, b.integer(count.max(1), ty), is_unsigned(dtype))
        },
    )
}

/// Returns the smallest or the largest number of a type: the neutral element of a maximum or minimum.
fn neutral_extremum(b: &Builder, dtype: DType, is_lowest: bool) -> V {
    let ty = b.computed(dtype);
    if dtype.is_float() {
        return b.float(if is_lowest { f64::NEG_INFINITY } else { f64::INFINITY }, ty);
    }
    if is_unsigned(dtype) {
        return b.integer(if is_lowest { 0 } else { -1 }, ty);
    }
    let lowest = -1i64 << (dtype.bits() - 1);
    b.integer(if is_lowest { lowest } else { !lowest }, ty)
}

fn extremum(cx: &mut Lowering<'_>, node: &Node, is_max: bool) -> Result<()> {
    check_numbers(cx, node)?;
    let (input, output) = (node.input(0)?, node.output()?);
    let axes = folded_axes(cx, node)?;
    reduce_extremum(cx, input, &axes, output, is_max);
    Ok(())
}

fn reduce_extremum(cx: &mut Lowering<'_>, input: Id, axes: &[usize], output: Id, is_max: bool) {
    let dtype = cx.dtype(input);
    let unsigned = is_unsigned(dtype);
    Fold::new(cx, input, axes).call(
        cx,
        None,
        output,
        &[accumulator(dtype)],
        |b| vec![neutral_extremum(b, dtype, is_max)],
        |b, state, item| {
            vec![if is_max { b.max(state[0], item.value, unsigned) } else { b.min(state[0], item.value, unsigned) }]
        },
        |_, state, _| state[0],
    );
}

/// Lowers ReduceLogSumExp. The maximum is subtracted from all elements, so that no term overflows.
fn log_sum_exp(cx: &mut Lowering<'_>, node: &Node) -> Result<()> {
    check_numbers(cx, node)?;
    let (input, output) = (node.input(0)?, node.output()?);
    let (dtype, result) = (cx.dtype(input), cx.dtype(output));
    let wide = real(dtype);
    let axes = folded_axes(cx, node)?;
    let shape = cx.shape(output).to_vec();
    let largest = cx.temporary(accumulator(dtype), &shape);
    reduce_extremum(cx, input, &axes, largest, true);
    // An infinite maximum is not subtracted.
    let shift = move |b: &Builder, largest: V| {
        let largest = convert(b, largest, accumulator(dtype), wide);
        let infinity = b.float(f64::INFINITY, b.type_of(largest));
        b.select(b.less(b.abs(largest), infinity), largest, b.zero(b.type_of(largest)))
    };
    Fold::new(cx, input, &axes).call(
        cx,
        Some(largest),
        output,
        &[wide],
        |b| vec![b.zero(b.computed(wide))],
        |b, state, item| {
            let largest = shift(b, item.beside.expect("there is a value beside"));
            vec![b.accumulate(state[0], b.exp(b.sub(convert(b, item.value, dtype, wide), largest)))]
        },
        |b, state, beside| {
            let largest = shift(b, beside.expect("there is a value beside"));
            convert(b, b.add(b.math(Math::Log, state[0]), largest), wide, result)
        },
    );
    Ok(())
}
