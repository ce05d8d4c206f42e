//! Variadic and ternary element-wise operators.

use super::{Lower, StridedAccess, activation::clamp, check_numbers, is_unsigned, map, nest};
use crate::{
    emit::{Builder, V},
    error::{Result, unsupported},
    graph::{Id, Node},
    lowering::Lowering,
    ops::movement::raw,
};
use divi_onnx::{DType, Op};

pub(super) fn find(op: Op) -> Option<Lower> {
    Some(match op {
        Op::Max => |cx, node| variadic(cx, node, |b, dtype, x, y| b.max(x, y, is_unsigned(dtype)), |_, x, _| x),
        Op::Min => |cx, node| variadic(cx, node, |b, dtype, x, y| b.min(x, y, is_unsigned(dtype)), |_, x, _| x),
        Op::Sum => |cx, node| variadic(cx, node, |b, _, x, y| b.add_rounded(x, y), |_, x, _| x),
        Op::Mean => |cx, node| {
            let divide = |b: &Builder, sum, count| b.div(sum, b.number(count as f64, b.type_of(sum)), false);
            variadic(cx, node, |b, _, x, y| b.add_rounded(x, y), divide)
        },
        Op::Where => where_,
        Op::Clip => clip,
        _ => return None,
    })
}

/// Lowers a left fold over the operands. `finish` gets the result of the fold and the number of operands.
fn variadic(
    cx: &mut Lowering<'_>,
    node: &Node,
    combine: impl Fn(&Builder, DType, V, V) -> V,
    finish: impl FnOnce(&Builder, V, usize) -> V,
) -> Result<()> {
    check_numbers(cx, node)?;
    let operands: Vec<Id> = node.inputs.iter().flatten().copied().collect();
    let Some(&first) = operands.first() else { return unsupported("needs at least one operand") };
    let dtype = cx.dtype(first);
    map(cx, &operands, node.output()?, |b, values| {
        let all = values.iter().copied().reduce(|x, y| combine(b, dtype, x, y));
        finish(b, all.unwrap_or_else(|| b.zero(b.computed(dtype))), values.len())
    });
    Ok(())
}

/// Lowers Where, which only copies elements, so that all types are supported.
fn where_(cx: &mut Lowering<'_>, node: &Node) -> Result<()> {
    let output = node.output()?;
    let (shape, dtype) = (cx.shape(output).to_vec(), raw(cx.dtype(output))?);
    let walk = |id, dtype| StridedAccess::broadcast(cx, id, dtype, &shape);
    let operands = [walk(node.input(0)?, DType::Bool), walk(node.input(1)?, dtype), walk(node.input(2)?, dtype)];
    let result = walk(output, dtype);
    nest(cx, &shape, &operands, &result, |b, values| b.select(values[0], values[1], values[2]));
    Ok(())
}

fn clip(cx: &mut Lowering<'_>, node: &Node) -> Result<()> {
    check_numbers(cx, node)?;
    let input = node.input(0)?;
    let dtype = cx.dtype(input);
    let bounds = [node.optional(1), node.optional(2)];
    let mut operands = vec![input];
    operands.extend(bounds.iter().flatten());
    map(cx, &operands, node.output()?, |b, values| {
        let mut rest = values[1..].iter().copied();
        let [low, high] = bounds.map(|bound| bound.and_then(|_| rest.next()));
        clamp(b, dtype, values[0], low, high)
    });
    Ok(())
}
