//! Binary element-wise operators.

use super::{Lower, check_numbers, convert, is_unsigned, map};
use crate::{
    emit::{Builder, Compare, V},
    error::{Result, unsupported},
    graph::{Id, Node},
    lowering::Lowering,
};
use divi_onnx::{DType, Op};
use divi_runtime::bundle::Status;

pub(super) fn find(op: Op) -> Option<Lower> {
    Some(match op {
        Op::Add => |cx, node| binary(cx, node, |b, _, x, y| b.add_rounded(x, y)),
        Op::Sub => |cx, node| binary(cx, node, |b, _, x, y| b.sub_rounded(x, y)),
        Op::Mul => |cx, node| binary(cx, node, |b, _, x, y| b.mul_rounded(x, y)),
        Op::Div => div,
        Op::Mod => modulo,
        Op::Pow => pow,
        Op::PRelu => |cx, node| {
            binary(cx, node, |b, dtype, x, slope| {
                let is_negative = b.compare(Compare::Less, x, b.zero(b.type_of(x)), is_unsigned(dtype));
                b.select(is_negative, b.mul(x, slope), x)
            })
        },
        Op::Equal => |cx, node| compare(cx, node, Compare::Equal),
        Op::Less => |cx, node| compare(cx, node, Compare::Less),
        Op::LessOrEqual => |cx, node| compare(cx, node, Compare::LessOrEqual),
        Op::Greater => |cx, node| compare(cx, node, Compare::Greater),
        Op::GreaterOrEqual => |cx, node| compare(cx, node, Compare::GreaterOrEqual),
        Op::And | Op::BitwiseAnd => |cx, node| binary(cx, node, |b, _, x, y| b.and(x, y)),
        Op::Or | Op::BitwiseOr => |cx, node| binary(cx, node, |b, _, x, y| b.or(x, y)),
        Op::Xor | Op::BitwiseXor => |cx, node| binary(cx, node, |b, _, x, y| b.xor(x, y)),
        Op::BitShift => bit_shift,
        _ => return None,
    })
}

/// Lowers a function of two operands that are broadcast against each other.
fn binary(cx: &mut Lowering<'_>, node: &Node, compute: impl FnOnce(&Builder, DType, V, V) -> V) -> Result<()> {
    check_numbers(cx, node)?;
    let operands = [node.input(0)?, node.input(1)?];
    let dtype = cx.dtype(operands[0]);
    map(cx, &operands, node.output()?, |b, values| compute(b, dtype, values[0], values[1]));
    Ok(())
}

fn compare(cx: &mut Lowering<'_>, node: &Node, how: Compare) -> Result<()> {
    binary(cx, node, |b, dtype, x, y| b.compare(how, x, y, is_unsigned(dtype)))
}

fn div(cx: &mut Lowering<'_>, node: &Node) -> Result<()> {
    let may_be_zero = may_be_zero(cx, node.input(1)?);
    binary(cx, node, |b, dtype, x, y| {
        if dtype.is_float() {
            return b.div(x, y, false);
        }
        let (by, is_minus_one) = guarded(b, dtype, y, may_be_zero);
        let quotient = b.div(x, by, is_unsigned(dtype));
        is_minus_one.map_or(quotient, |is_minus_one| b.select(is_minus_one, b.neg(x), quotient))
    })
}

fn may_be_zero(cx: &Lowering<'_>, divisor: Id) -> bool {
    cx.ints(divisor).is_none_or(|values| values.contains(&0))
}

/// Replaces divisors for which integer division is undefined by 1: 0, which makes the kernel fail, and -1, for which the quotient of the
/// smallest integer overflows. Also returns the condition that the divisor is -1, for signed types.
fn guarded(b: &Builder, dtype: DType, divisor: V, may_be_zero: bool) -> (V, Option<V>) {
    let ty = b.type_of(divisor);
    let one = b.integer(1, ty);
    let mut by = divisor;
    if may_be_zero {
        let is_zero = b.equal(divisor, b.zero(ty));
        b.fail_if(is_zero, Status::DivisionByZero);
        by = b.select(is_zero, one, by);
    }
    if is_unsigned(dtype) {
        return (by, None);
    }
    let is_minus_one = b.equal(divisor, b.integer(-1, ty));
    (b.select(is_minus_one, one, by), Some(is_minus_one))
}

/// Lowers Mod. The result has the sign of the dividend under `fmod`, otherwise that of the divisor.
fn modulo(cx: &mut Lowering<'_>, node: &Node) -> Result<()> {
    let has_sign_of_dividend = node.attributes().flag("fmod", false)?;
    let may_be_zero = may_be_zero(cx, node.input(1)?);
    binary(cx, node, |b, dtype, x, y| {
        let by = if dtype.is_float() { y } else { guarded(b, dtype, y, may_be_zero).0 };
        let rest = b.rem(x, by, is_unsigned(dtype));
        if has_sign_of_dividend || is_unsigned(dtype) {
            return rest;
        }
        let zero = b.zero(b.type_of(rest));
        let differs = b.xor(b.less(rest, zero), b.less(y, zero));
        let is_rest = b.compare(Compare::NotEqual, rest, zero, false);
        b.select(b.and(differs, is_rest), b.add(rest, y), rest)
    })
}

fn bit_shift(cx: &mut Lowering<'_>, node: &Node) -> Result<()> {
    let is_left = match node.attributes().str_or("direction", "")? {
        "LEFT" => true,
        "RIGHT" => false,
        other => return unsupported(format!("attribute 'direction' is '{other}', must be LEFT or RIGHT")),
    };
    binary(cx, node, |b, dtype, x, by| {
        let ty = b.type_of(x);
        let (unsigned, last) = (is_unsigned(dtype), b.integer(dtype.bits() as i64 - 1, ty));
        // Shifts by the width or more are undefined in LLVM. Negative distances are large as unsigned numbers.
        let is_too_far = b.compare(Compare::Greater, by, last, true);
        if is_left {
            return b.select(is_too_far, b.zero(ty), b.shift_left(x, by));
        }
        let beyond = if unsigned { b.zero(ty) } else { b.shift_right(x, last, false) };
        b.select(is_too_far, beyond, b.shift_right(x, by, unsigned))
    })
}

// --- Powers -----------------------------------------------------------------------------------------------------------

fn pow(cx: &mut Lowering<'_>, node: &Node) -> Result<()> {
    check_numbers(cx, node)?;
    let (base, exponent, output) = (node.input(0)?, node.input(1)?, node.output()?);
    let (from, by) = (cx.dtype(base), cx.dtype(exponent));
    let known = cx.tensor(exponent).filter(|tensor| tensor.count() == 1).and_then(|tensor| {
        let floats = tensor.floats().or_else(|| Some(tensor.ints()?.into_iter().map(|value| value as f64).collect()));
        floats?.first().copied()
    });
    match known {
        Some(power) if power == 2.0 || power == 3.0 => map(cx, &[base], output, |b, values| {
            let square = b.mul_rounded(values[0], values[0]);
            if power == 2.0 { square } else { b.mul_rounded(square, values[0]) }
        }),
        // The exponent is a constant in the code, so that LLVM can simplify the call.
        Some(power) if from.is_float() => {
            map(cx, &[base], output, |b, values| b.powf(values[0], b.float(power, b.type_of(values[0]))))
        }
        _ => map(cx, &[base, exponent], output, |b, values| power(b, values[0], from, values[1], by)),
    }
    Ok(())
}

fn power(b: &Builder, base: V, from: DType, exponent: V, by: DType) -> V {
    if !from.is_float() && !by.is_float() {
        return integer_power(b, base, convert(b, exponent, by, DType::I64));
    }
    let wide = if from.is_float() && from != DType::F64 && by != DType::F64 { DType::F32 } else { DType::F64 };
    let result = b.powf(convert(b, base, from, wide), convert(b, exponent, by, wide));
    convert(b, result, wide, from)
}

/// Returns an integer power by repeated squaring; results between -1 and 1 are truncated to 0.
fn integer_power(b: &Builder, base: V, exponent: V) -> V {
    let ty = b.type_of(base);
    let (zero, one) = (b.zero(ty), b.integer(1, ty));
    let is_odd = |exponent| b.resize(exponent, b.i1(), true);
    let state = b.while_loop(
        &[one, base, exponent],
        |state| b.less(b.index(0), state[2]),
        |state| {
            let product = b.select(is_odd(state[2]), b.mul(state[0], state[1]), state[0]);
            vec![product, b.mul(state[1], state[1]), b.shift_right(state[2], b.index(1), false)]
        },
    );
    let is_one = b.equal(base, one);
    let is_minus_one = b.equal(base, b.integer(-1, ty));
    let alternating = b.select(is_odd(exponent), base, one);
    let inverse = b.select(is_one, one, b.select(is_minus_one, alternating, zero));
    b.select(b.less(exponent, b.index(0)), inverse, state[0])
}
