//! Unary element-wise operators.

use super::{Lower, check_numbers, convert, is_unsigned, map};
use crate::{
    emit::{Builder, Compare, Math, V},
    error::Result,
    graph::Node,
    lowering::Lowering,
};
use divi_onnx::{DType, Op};

pub(super) fn find(op: Op) -> Option<Lower> {
    Some(match op {
        Op::Abs => |cx, node| unary(cx, node, |b, dtype, x| if is_unsigned(dtype) { x } else { b.abs(x) }),
        Op::Acos => |cx, node| unary(cx, node, |b, _, x| b.math(Math::Acos, x)),
        Op::Acosh => |cx, node| unary(cx, node, |b, _, x| b.math(Math::Acosh, x)),
        Op::Asin => |cx, node| unary(cx, node, |b, _, x| b.math(Math::Asin, x)),
        Op::Asinh => |cx, node| unary(cx, node, |b, _, x| b.math(Math::Asinh, x)),
        Op::Atan => |cx, node| unary(cx, node, |b, _, x| b.math(Math::Atan, x)),
        Op::Atanh => |cx, node| unary(cx, node, |b, _, x| b.math(Math::Atanh, x)),
        Op::BitwiseNot | Op::Not => |cx, node| unary(cx, node, |b, _, x| b.not(x)),
        Op::Ceil => |cx, node| unary(cx, node, |b, _, x| b.ceil(x)),
        Op::Cos => |cx, node| unary(cx, node, |b, _, x| b.math(Math::Cos, x)),
        Op::Cosh => |cx, node| unary(cx, node, |b, _, x| b.math(Math::Cosh, x)),
        Op::Erf => |cx, node| unary(cx, node, erf),
        Op::Exp => |cx, node| unary(cx, node, |b, _, x| b.exp(x)),
        Op::Floor => |cx, node| unary(cx, node, |b, _, x| b.floor(x)),
        Op::IsInf => is_inf,
        Op::IsNaN => |cx, node| unary(cx, node, |b, _, x| b.is_nan(x)),
        Op::Log => |cx, node| unary(cx, node, |b, _, x| b.math(Math::Log, x)),
        Op::Neg => |cx, node| unary(cx, node, |b, _, x| b.neg(x)),
        Op::Reciprocal => |cx, node| unary(cx, node, |b, _, x| b.div(b.number(1.0, b.type_of(x)), x, false)),
        Op::Round => |cx, node| unary(cx, node, |b, _, x| b.round_even(x)),
        Op::Sign => |cx, node| unary(cx, node, sign),
        Op::Sin => |cx, node| unary(cx, node, |b, _, x| b.math(Math::Sin, x)),
        Op::Sinh => |cx, node| unary(cx, node, |b, _, x| b.math(Math::Sinh, x)),
        Op::Sqrt => |cx, node| unary(cx, node, |b, _, x| b.sqrt(x)),
        Op::Tan => |cx, node| unary(cx, node, |b, _, x| b.math(Math::Tan, x)),
        Op::Tanh => |cx, node| unary(cx, node, |b, _, x| b.tanh(x)),
        _ => return None,
    })
}

/// Lowers a function of one operand.
pub(super) fn unary(cx: &mut Lowering<'_>, node: &Node, compute: impl FnOnce(&Builder, DType, V) -> V) -> Result<()> {
    check_numbers(cx, node)?;
    let input = node.input(0)?;
    let dtype = cx.dtype(input);
    map(cx, &[input], node.output()?, |b, values| compute(b, dtype, values[0]));
    Ok(())
}

/// Returns erf(x); for integers, computed as `double` and truncated.
fn erf(b: &Builder, dtype: DType, x: V) -> V {
    let wide = if dtype.is_float() { dtype } else { DType::F64 };
    convert(b, b.erf(convert(b, x, dtype, wide)), wide, dtype)
}

fn sign(b: &Builder, dtype: DType, x: V) -> V {
    let ty = b.type_of(x);
    let zero = b.zero(ty);
    let is_positive = b.compare(Compare::Greater, x, zero, is_unsigned(dtype));
    if is_unsigned(dtype) {
        return b.resize(is_positive, ty, true);
    }
    // Zeros and NaN are unchanged.
    let negative = b.select(b.less(x, zero), b.number(-1.0, ty), x);
    b.select(is_positive, b.number(1.0, ty), negative)
}

fn is_inf(cx: &mut Lowering<'_>, node: &Node) -> Result<()> {
    let attributes = node.attributes();
    let detects_negative = attributes.flag("detect_negative", true)?;
    let detects_positive = attributes.flag("detect_positive", true)?;
    unary(cx, node, |b, _, x| {
        let ty = b.type_of(x);
        let when = |detects: bool, infinity| {
            let is_equal = b.equal(x, b.float(infinity, ty));
            b.and(is_equal, b.integer(i64::from(detects), b.i1()))
        };
        b.or(when(detects_negative, f64::NEG_INFINITY), when(detects_positive, f64::INFINITY))
    })
}
