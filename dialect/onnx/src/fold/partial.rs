//! Arithmetic on dimensions that are known, symbolic or unknown.
//!
//! A symbolic dimension is the size of a tensor, so it is nonnegative; an unknown element may be any integer.

use super::{
    arithmetic::int_op,
    array::Array,
    source::{Source, content},
};
use crate::{DType, Dim, Node, Op, node::KnownElements};
use std::cmp::Ordering;

/// Decodes an operand to dimensions.
pub(super) fn decode(source: &Source<'_>) -> Option<Array<Dim>> {
    Some(Array { dims: source.dims.to_vec(), data: source.to_dims()?.into_owned() })
}

/// Evaluates a binary operator; variadic ones are applied from the left.
pub(super) fn binary(node: &Node<'_>, op: Op) -> Option<KnownElements> {
    let first = Source::of_value_or_unknown(node.optional(0)?)?;
    let dtype = first.dtype;
    let mut result = decode(&first)?;
    for value in &node.inputs[1..] {
        let operand = Source::of_value_or_unknown((*value)?)?;
        if operand.dtype != dtype {
            return None;
        }
        result = result.zip(&decode(&operand)?, |a, b| Some(combine(op, dtype, a, b)))?;
    }
    content(dtype, result.dims, result.data)
}

/// Applies a binary operator to a pair of elements.
pub(super) fn combine(op: Op, dtype: DType, a: Dim, b: Dim) -> Dim {
    match (op, a, b) {
        (_, Dim::Known(a), Dim::Known(b)) => {
            int_op(op).and_then(|f| f(a, b)).map_or(Dim::Unknown, |value| Dim::Known(wrap(dtype, value)))
        }
        (Op::Add, x, Dim::Known(0)) | (Op::Add, Dim::Known(0), x) | (Op::Sub, x, Dim::Known(0)) => x,
        (Op::Mul, x, Dim::Known(1)) | (Op::Mul, Dim::Known(1), x) | (Op::Div, x, Dim::Known(1)) => x,
        (Op::Mul, _, Dim::Known(0)) | (Op::Mul, Dim::Known(0), _) => Dim::Known(0),
        (Op::Sub, Dim::Symbol(a), Dim::Symbol(b)) if a == b => Dim::Known(0),
        (Op::Max | Op::Min, Dim::Symbol(a), Dim::Symbol(b)) if a == b => Dim::Symbol(a),
        (Op::Max, size @ Dim::Symbol(_), Dim::Known(..=0)) | (Op::Max, Dim::Known(..=0), size @ Dim::Symbol(_)) => size,
        (Op::Min, Dim::Symbol(_), low @ Dim::Known(..=0)) | (Op::Min, low @ Dim::Known(..=0), Dim::Symbol(_)) => low,
        _ => Dim::Unknown,
    }
}

/// Wraps an integer to `dtype`, which is `I32` or `I64`.
pub(super) fn wrap(dtype: DType, value: i64) -> i64 {
    if dtype == DType::I32 { i64::from(value as i32) } else { value }
}

/// Evaluates a unary operator; `known` evaluates it on known elements.
pub(super) fn unary(node: &Node<'_>, known: impl Fn(i64) -> i64) -> Option<KnownElements> {
    let source = Source::of(node, 0)?;
    let dtype = source.dtype;
    let result = decode(&source)?.map(|element| {
        Some(match (node.op, element) {
            (_, Dim::Known(value)) => Dim::Known(wrap(dtype, known(value))),
            (Op::Abs | Op::Relu, size @ Dim::Symbol(_)) => size,
            _ => Dim::Unknown,
        })
    })?;
    content(dtype, result.dims, result.data)
}

/// Evaluates a comparison if it can be decided for all elements.
pub(super) fn compare(node: &Node<'_>, holds: impl Fn(Ordering) -> bool) -> Option<KnownElements> {
    let a = Source::of(node, 0)?;
    let b = Source::of(node, 1).filter(|b| b.dtype == a.dtype)?;
    let result = decode(&a)?.zip(&decode(&b)?, |a, b| order(a, b).map(|order| Dim::Known(holds(order).into())))?;
    content(DType::Bool, result.dims, result.data)
}

fn order(a: Dim, b: Dim) -> Option<Ordering> {
    match (a, b) {
        (Dim::Known(a), Dim::Known(b)) => Some(a.cmp(&b)),
        (Dim::Symbol(a), Dim::Symbol(b)) if a == b => Some(Ordering::Equal),
        (Dim::Symbol(_), Dim::Known(..0)) => Some(Ordering::Greater),
        (Dim::Known(..0), Dim::Symbol(_)) => Some(Ordering::Less),
        _ => None,
    }
}
