//! Pooling and unpooling as plain loops.

mod global;
mod max;

use super::{
    Lower,
    blocks::{accumulator, grain},
    window::{Axis, SlidingWindow, sliding},
};
use crate::{
    emit::{Builder, V},
    error::{Result, unsupported},
    graph::{Node, strides},
    lowering::Lowering,
};
use divi_onnx::Op;

pub(super) fn find(op: Op) -> Option<Lower> {
    Some(match op {
        Op::MaxPool => max::max_pool,
        Op::MaxPoolSingleOut => |cx, node| max::max_pool_values(cx, node),
        Op::AveragePool => average_pool,
        Op::LpPool => lp_pool,
        Op::MaxUnpool => max::max_unpool,
        Op::GlobalAveragePool => |cx, node| global::pool(cx, node, global::Kind::Average),
        Op::GlobalMaxPool => |cx, node| global::pool(cx, node, global::Kind::Max),
        Op::GlobalLpPool => |cx, node| {
            let p = node.attributes().int_or("p", 2)?;
            global::pool(cx, node, global::Kind::Norm(p))
        },
        _ => return None,
    })
}

fn axes(cx: &Lowering<'_>, node: &Node) -> Result<Vec<Axis>> {
    let (image, positions) = (cx.shape(node.input(0)?), cx.shape(node.output()?));
    let kernel = node.attributes().ints("kernel_shape")?.unwrap_or_default();
    if image.len() < 3 || positions.len() != image.len() {
        return unsupported("pooling needs a batch, channels and at least one spatial axis");
    }
    sliding(node, &image[2..], &positions[2..], kernel)
}

/// Initial value of each window.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Start {
    /// Neutral element of the reduction.
    Neutral,
    /// First element of the window inside the image; the neutral element if there is none.
    First,
}

/// Adds a call that reduces each window from an initial value on. `finish` gets the position of the window and the result of the reduction.
fn pool(
    cx: &mut Lowering<'_>,
    node: &Node,
    start: Start,
    neutral: impl FnOnce(&Builder) -> V,
    combine: impl Fn(&Builder, V, V) -> V,
    finish: impl Fn(&Builder, &[Axis], &[V], V) -> V,
) -> Result<()> {
    let axes = axes(cx, node)?;
    let (x, y) = (node.input(0)?, node.output()?);
    let result = cx.shape(y).to_vec();
    let (x_steps, y_steps) = (strides(cx.shape(x)), strides(&result));
    let dtype = cx.dtype(x);
    if result.contains(&0) {
        return Ok(());
    }
    let kernel_count: i64 = axes.iter().map(|axis| axis.kernel).product();
    let extent = SlidingWindow::extent(cx, &result);
    cx.call(extent, grain(kernel_count * result[result.len() - 1]), &[x], &[y], |b, kernel| {
        let neutral = neutral(b);
        let load = |offset| b.load(kernel.buffers[0], dtype, offset);
        let slide = SlidingWindow {
            axes: &axes,
            lead: &result[..2],
            depth: 1,
            accumulator: accumulator(dtype),
            start: &|place| match start {
                Start::Neutral => neutral,
                Start::First => {
                    let (offset, exists) = first_element(b, &axes, place, &x_steps);
                    exists.map_or_else(
                        || load(offset),
                        |exists| b.select(exists, load(b.select(exists, offset, b.index(0))), neutral),
                    )
                }
            },
            plane: &|place, _| b.offset(&place[..2], &x_steps),
            factor: &|_, _, _| neutral,
            combine: &|sum, offset, _| combine(b, sum, load(offset)),
            finish: &|place, value| {
                let value = finish(b, &axes, &place[2..], value);
                b.store(value, kernel.buffers[1], dtype, b.offset(place, &y_steps));
            },
        };
        slide.emit(b, kernel.begin, kernel.end);
    });
    Ok(())
}

/// Returns the offset of the first element inside the image of the window at a place (batch, channel, positions), and the condition that it
/// exists; `None` if it always does.
fn first_element(b: &Builder, axes: &[Axis], place: &[V], steps: &[i64]) -> (V, Option<V>) {
    let mut at = place[..2].to_vec();
    let mut exists = None;
    for (axis, &position) in axes.iter().zip(&place[2..]) {
        if axis.is_inside() {
            at.push(axis.place(b, position, b.index(0)));
            continue;
        }
        let (first, last) = axis.elements(b, position, 0, axis.image);
        let has_some = b.less(first, last);
        exists = Some(exists.map_or(has_some, |all| b.and(all, has_some)));
        at.push(axis.place(b, position, first));
    }
    (b.offset(&at, steps), exists)
}

/// Lowers AveragePool. The divisor includes padding if 'count_include_pad' is set, but never elements beyond it in the last window.
fn average_pool(cx: &mut Lowering<'_>, node: &Node) -> Result<()> {
    let counts_padding = node.attributes().flag("count_include_pad", false)?;
    let sum = accumulator(cx.dtype(node.input(0)?));
    pool(
        cx,
        node,
        Start::Neutral,
        |b| b.zero(b.computed(sum)),
        |b, sum, value| b.accumulate(sum, value),
        |b, axes, position, sum| {
            let counts = axes.iter().zip(position).map(|(axis, &position)| {
                let (from, end) =
                    if counts_padding { (-axis.before, axis.image + axis.after) } else { (0, axis.image) };
                let (first, last) = axis.elements(b, position, from, end);
                b.sub(last, first)
            });
            let count = counts.reduce(|a, c| b.mul(a, c)).expect("windows have axes");
            b.div(sum, b.int_to_float(count, b.type_of(sum), false), false)
        },
    )
}

fn lp_pool(cx: &mut Lowering<'_>, node: &Node) -> Result<()> {
    let p = node.attributes().int_or("p", 2)?;
    let sum = accumulator(cx.dtype(node.input(0)?));
    pool(
        cx,
        node,
        Start::Neutral,
        |b| b.zero(b.computed(sum)),
        |b, sum, value| b.accumulate(sum, power(b, value, p)),
        |b, _, _, sum| root(b, sum, p),
    )
}

/// Returns `|value|^p`.
fn power(b: &Builder, value: V, p: i64) -> V {
    match p {
        1 => b.abs(value),
        2 => b.mul(value, value),
        _ => b.powf(b.abs(value), b.float(p as f64, b.type_of(value))),
    }
}

/// Returns the p-th root.
fn root(b: &Builder, value: V, p: i64) -> V {
    match p {
        1 => value,
        2 => b.sqrt(value),
        _ => b.powf(value, b.float(1.0 / p as f64, b.type_of(value))),
    }
}

#[cfg(test)]
mod tests;
