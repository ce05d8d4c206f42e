//! Functions of one element.

use super::{Lower, check_numbers, convert, is_unsigned, map};
use crate::{
    emit::{Builder, Compare, V},
    error::Result,
    graph::Node,
    lowering::Lowering,
};
use divi_onnx::DType;

pub(super) fn find(op: &str) -> Option<Lower> {
    Some(match op {
        "Abs" => |cx, node| unary(cx, node, |b, dtype, x| if is_unsigned(dtype) { x } else { b.abs(x) }),
        "Acos" => |cx, node| unary(cx, node, |b, _, x| b.math("acos", &[x])),
        "Acosh" => |cx, node| unary(cx, node, |b, _, x| b.math("acosh", &[x])),
        "Asin" => |cx, node| unary(cx, node, |b, _, x| b.math("asin", &[x])),
        "Asinh" => |cx, node| unary(cx, node, |b, _, x| b.math("asinh", &[x])),
        "Atan" => |cx, node| unary(cx, node, |b, _, x| b.math("atan", &[x])),
        "Atanh" => |cx, node| unary(cx, node, |b, _, x| b.math("atanh", &[x])),
        "BitwiseNot" | "Not" => |cx, node| unary(cx, node, |b, _, x| b.not(x)),
        "Ceil" => |cx, node| unary(cx, node, |b, _, x| b.math("ceil", &[x])),
        "Cos" => |cx, node| unary(cx, node, |b, _, x| b.math("cos", &[x])),
        "Cosh" => |cx, node| unary(cx, node, |b, _, x| b.math("cosh", &[x])),
        "Erf" => |cx, node| unary(cx, node, erf),
        "Exp" => |cx, node| unary(cx, node, |b, _, x| b.exp(x)),
        "Floor" => |cx, node| unary(cx, node, |b, _, x| b.floor(x)),
        "IsInf" => is_inf,
        "IsNaN" => |cx, node| unary(cx, node, |b, _, x| b.is_nan(x)),
        "Log" => |cx, node| unary(cx, node, |b, _, x| b.math("log", &[x])),
        "Neg" => |cx, node| unary(cx, node, |b, _, x| b.neg(x)),
        "Reciprocal" => |cx, node| unary(cx, node, |b, _, x| b.div(b.number(1.0, b.type_of(x)), x, false)),
        "Round" => |cx, node| unary(cx, node, |b, _, x| b.round_even(x)),
        "Sign" => |cx, node| unary(cx, node, sign),
        "Sin" => |cx, node| unary(cx, node, |b, _, x| b.math("sin", &[x])),
        "Sinh" => |cx, node| unary(cx, node, |b, _, x| b.math("sinh", &[x])),
        "Sqrt" => |cx, node| unary(cx, node, |b, _, x| b.sqrt(x)),
        "Tan" => |cx, node| unary(cx, node, |b, _, x| b.math("tan", &[x])),
        "Tanh" => |cx, node| unary(cx, node, |b, _, x| b.tanh(x)),
        _ => return None,
    })
}

/// A function of elements of the operand's type.
pub(super) fn unary(cx: &mut Lowering<'_>, node: &Node, compute: impl FnOnce(&Builder, DType, V) -> V) -> Result<()> {
    check_numbers(cx, node)?;
    let input = node.input(0)?;
    let dtype = cx.dtype(input);
    map(cx, &[input], node.output()?, |b, values| compute(b, dtype, values[0]));
    Ok(())
}

/// Of integers, the function is that of `double`, truncated.
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
    // Zeros and what is no number stay what they are.
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
