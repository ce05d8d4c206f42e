//! Conversions between element types.

use super::{Lower, is_unsigned, map};
use crate::{
    emit::{Builder, Compare, Type, V},
    error::{Result, unsupported},
    graph::Node,
    half_precision::{is_half, rounds_to},
    lowering::Lowering,
    ops::movement::copy,
};
use divi_onnx::{DType, Op};

pub(super) fn find(op: Op) -> Option<Lower> {
    Some(match op {
        Op::Cast | Op::CastLike => cast,
        Op::BitCast => bit_cast,
        _ => return None,
    })
}

fn cast(cx: &mut Lowering<'_>, node: &Node) -> Result<()> {
    let (input, output) = (node.input(0)?, node.output()?);
    let (from, to) = (cx.dtype(input), cx.dtype(output));
    if let Some(half) = rounds_to(node, from, to) {
        map(cx, &[input], output, |b, values| b.rounded_to_half(values[0], half));
        return Ok(());
    }
    if from == to {
        cx.alias(output, input);
        return Ok(());
    }
    let has_code =
        |dtype: DType| dtype.is_float() || dtype.is_int() || dtype == DType::Bool || Builder::is_small_float(dtype);
    if !has_code(from) || !has_code(to) {
        return unsupported(format!("conversion from {from} to {to} is not supported"));
    }
    let attributes = node.attributes();
    let saturates = attributes.flag("saturate", true)?;
    let rounding = attributes.str_or("round_mode", "up")?;
    map(cx, &[input], output, |b, values| {
        let is_small = Builder::is_small_float(from);
        let (value, from) =
            if is_small { (b.decode_small_float(values[0], from), DType::F32) } else { (values[0], from) };
        if !Builder::is_small_float(to) {
            return convert(b, value, from, to);
        }
        // The type has at most half the precision of `f32`, so rounding `double` to odd first avoids double rounding.
        let value = if from == DType::F64 { round_to_odd(b, value) } else { convert(b, value, from, DType::F32) };
        if to == DType::F8E8M0 {
            b.encode_power(value, saturates, rounding)
        } else {
            b.encode_small_float(value, to, saturates)
        }
    });
    Ok(())
}

/// Lowers BitCast to an alias: the element types have the same width. An alias between types of half precision would be converted.
fn bit_cast(cx: &mut Lowering<'_>, node: &Node) -> Result<()> {
    let (input, output) = (node.input(0)?, node.output()?);
    let (from, to) = (cx.dtype(input), cx.dtype(output));
    if is_half(from) && is_half(to) && from != to {
        copy(cx, input, output);
    } else {
        cx.alias(output, input);
    }
    Ok(())
}

/// Converts an element to another type. Integers wrap; floating-point numbers are truncated toward zero. Numbers out of range yield the
/// result of x86's instructions on every device, as in ONNX Runtime and ONNX's reference (NumPy).
pub(in crate::ops) fn convert(b: &Builder, value: V, from: DType, to: DType) -> V {
    let ty = b.computed(to);
    if from == to {
        return value;
    }
    if to == DType::Bool {
        return b.compare(Compare::NotEqual, value, b.zero(b.computed(from)), false);
    }
    match (from.is_float(), to.is_float()) {
        (true, true) if from == DType::F64 && to.bits() == 16 => round_to_odd(b, value),
        (true, true) => b.resize_float(value, ty),
        (true, false) => match to {
            DType::U32 if from.bits() > 16 => to_unsigned(b, value, ty),
            DType::U64 => to_unsigned(b, value, ty),
            DType::I64 | DType::U32 => b.resize(to_signed(b, value, b.i64()), ty, false),
            _ => b.resize(to_signed(b, value, b.int(32)), ty, false),
        },
        (false, true) => b.int_to_float(value, ty, is_unsigned(from)),
        (false, false) => b.resize(value, ty, is_unsigned(from)),
    }
}

/// Truncates to a signed integer; the smallest one for numbers out of range and NaN.
fn to_signed(b: &Builder, value: V, ty: Type) -> V {
    let float = b.type_of(value);
    let bits = b.bits(ty);
    let half = 2f64.powi(bits as i32 - 1);
    let is_above = b.compare(Compare::GreaterOrEqual, value, b.float(-half, float), false);
    let fits = b.and(is_above, b.less(value, b.float(half, float)));
    let safe = b.select(fits, value, b.zero(float));
    b.select(fits, b.float_to_int(safe, ty, false), b.integer(i64::MIN >> (64 - bits), ty))
}

/// Truncates to an unsigned integer. Numbers below `2^(bits - 1)` are converted as signed ones, so that negative numbers wrap; others are
/// converted after subtracting `2^(bits - 1)`.
fn to_unsigned(b: &Builder, value: V, ty: Type) -> V {
    let half = b.float(2f64.powi(b.bits(ty) as i32 - 1), b.type_of(value));
    let top = b.integer(i64::MIN >> (64 - b.bits(ty)), ty);
    let upper = b.xor(to_signed(b, b.sub(value, half), ty), top);
    b.select(b.compare(Compare::GreaterOrEqual, value, half, false), upper, to_signed(b, value, ty))
}

/// Converts an `f64` to `f32` with rounding to odd, so that a second rounding to 16 bits or less yields the correctly rounded number: an
/// inexact result has an odd last bit and is never mistaken for a tie.
fn round_to_odd(b: &Builder, value: V) -> V {
    let (single, double, bits) = (b.f32(), b.f64(), b.int(32));
    let nearest = b.resize_float(value, single);
    let back = b.resize_float(nearest, double);
    let is_away = b.less(b.abs(value), b.abs(back));
    let toward_zero = b.sub(b.bitcast(nearest, bits), b.resize(is_away, bits, true));
    let odd = b.bitcast(b.or(toward_zero, b.integer(1, bits)), single);
    let is_exact = b.or(b.equal(back, value), b.is_nan(value));
    b.select(is_exact, nearest, odd)
}
