//! Operators that compute each element from elements at the same place.

mod unary;

use super::Lower;
use crate::{
    emit::{Builder, Compare, V},
    error::Result,
    graph::{Id, Node, broadcast_strides},
    lowering::Lowering,
};
use divi_onnx::DType;

/// Fewer elements are not worth a thread.
const GRAIN: i64 = 16 * 1024;

pub(super) fn find(op: &str) -> Option<Lower> {
    Some(match op {
        "Add" => |cx, node| binary(cx, node, |b, _, x, y| b.add(x, y)),
        "Sub" => |cx, node| binary(cx, node, |b, _, x, y| b.sub(x, y)),
        "Mul" => |cx, node| binary(cx, node, |b, _, x, y| b.mul(x, y)),
        "Equal" => |cx, node| compare(cx, node, Compare::Equal),
        "Less" => |cx, node| compare(cx, node, Compare::Less),
        "LessOrEqual" => |cx, node| compare(cx, node, Compare::LessOrEqual),
        "Greater" => |cx, node| compare(cx, node, Compare::Greater),
        "GreaterOrEqual" => |cx, node| compare(cx, node, Compare::GreaterOrEqual),
        "And" => |cx, node| binary(cx, node, |b, _, x, y| b.and(x, y)),
        "Or" => |cx, node| binary(cx, node, |b, _, x, y| b.or(x, y)),
        "Xor" => |cx, node| binary(cx, node, |b, _, x, y| b.xor(x, y)),
        _ => return unary::find(op),
    })
}

/// Two operands, broadcast against each other.
fn binary(cx: &mut Lowering<'_>, node: &Node, compute: fn(&Builder, DType, V, V) -> V) -> Result<()> {
    let operands = [node.input(0)?, node.input(1)?];
    let dtype = cx.dtype(operands[0]);
    map(cx, &operands, node.output()?, |b, values| compute(b, dtype, values[0], values[1]));
    Ok(())
}

fn compare(cx: &mut Lowering<'_>, node: &Node, how: Compare) -> Result<()> {
    let operands = [node.input(0)?, node.input(1)?];
    let is_unsigned = matches!(cx.dtype(operands[0]), DType::Bool) || cx.dtype(operands[0]).is_unsigned_int();
    map(cx, &operands, node.output()?, |b, values| b.compare(how, values[0], values[1], is_unsigned));
    Ok(())
}

/// Copies the elements of an operand that are `steps` apart on each axis of the result, from element `start` on.
pub(super) fn gather_strided(cx: &mut Lowering<'_>, operand: Id, result: Id, start: i64, steps: Vec<i64>) {
    let shape = cx.shape(result).to_vec();
    nest(cx, &[operand], result, &shape, vec![steps], vec![start], |_, values| values[0]);
}

/// Computes each element of the result from those of the operands at its place, which are broadcast to it.
pub(crate) fn map(cx: &mut Lowering<'_>, operands: &[Id], result: Id, compute: impl FnOnce(&Builder, &[V]) -> V) {
    let shape = cx.shape(result).to_vec();
    let strides: Vec<_> = operands.iter().map(|&id| broadcast_strides(cx.shape(id), &shape)).collect();
    let starts = vec![0; operands.len()];
    nest(cx, operands, result, &shape, strides, starts, compute);
}

/// Computes each element of the result from elements that lie, on each of its axes, some steps apart.
fn nest(
    cx: &mut Lowering<'_>,
    operands: &[Id],
    result: Id,
    shape: &[i64],
    strides: Vec<Vec<i64>>,
    starts: Vec<i64>,
    compute: impl FnOnce(&Builder, &[V]) -> V,
) {
    let (shape, strides) = collapse(shape, strides);
    let dtypes: Vec<_> = operands.iter().map(|&id| cx.dtype(id)).collect();
    let dtype = cx.dtype(result);
    // One axis alone is split over threads as it is, several at the first.
    let (outer, inner) = shape.split_first().map_or((1, &[][..]), |(&outer, inner)| (outer, inner));
    let inner_count: i64 = inner.iter().product();
    // Threads must not share a byte.
    let grain = if dtype.bits() < 8 { outer } else { GRAIN / inner_count.max(1) };
    cx.call(outer, grain, operands, &[result], |b, kernel| {
        let (pointers, target) = kernel.buffers.split_at(operands.len());
        b.for_each(kernel.begin, kernel.end, 1, |first| {
            b.nest(inner, |rest| {
                let mut place = vec![first];
                place.extend(rest);
                let sources = pointers.iter().zip(&dtypes).zip(strides.iter().zip(&starts));
                let values: Vec<_> = sources
                    .map(|((&pointer, &dtype), (strides, &start))| {
                        b.load(pointer, dtype, b.plus(b.offset(&place, strides), start))
                    })
                    .collect();
                let value = compute(b, &values);
                b.store(value, target[0], dtype, b.offset(&place, &crate::graph::strides(&shape)));
            });
        });
    });
}

/// Fewer axes: those of size 1 go, and neighbours become one where all operands step through both as through one.
pub(super) fn collapse(shape: &[i64], strides: Vec<Vec<i64>>) -> (Vec<i64>, Vec<Vec<i64>>) {
    let mut axes: Vec<(i64, Vec<i64>)> = vec![];
    for (axis, &size) in shape.iter().enumerate() {
        if size == 1 {
            continue;
        }
        let steps: Vec<_> = strides.iter().map(|strides| strides[axis]).collect();
        match axes.last_mut() {
            Some((outer, outer_steps))
                if outer_steps.iter().zip(&steps).all(|(outer, inner)| *outer == inner * size) =>
            {
                *outer *= size;
                *outer_steps = steps;
            }
            _ => axes.push((size, steps)),
        }
    }
    if axes.is_empty() {
        axes.push((shape.iter().product(), vec![0; strides.len()]));
    }
    let shape = axes.iter().map(|(size, _)| *size).collect();
    let strides = (0..strides.len()).map(|i| axes.iter().map(|(_, steps)| steps[i]).collect()).collect();
    (shape, strides)
}
