//! Arithmetic on two or more operands, with numpy broadcasting.

use super::{
    array::{Array, Decoded, constant},
    partial,
};
use crate::{DType, Node, Op, Tensor, node::KnownElements};

type IntOp = fn(i64, i64) -> Option<i64>;

/// Returns an operator on integers, which wraps at 64 bits; narrower results wrap when they are encoded. The operator returns
/// `None` if the result is undefined, such as for division by zero.
pub(super) fn int_op(op: Op) -> Option<IntOp> {
    Some(match op {
        Op::Add => |a, b| Some(a.wrapping_add(b)),
        Op::Sub => |a, b| Some(a.wrapping_sub(b)),
        Op::Mul => |a, b| Some(a.wrapping_mul(b)),
        Op::Div => i64::checked_div,
        Op::Max => |a, b| Some(a.max(b)),
        Op::Min => |a, b| Some(a.min(b)),
        Op::BitwiseAnd => |a, b| Some(a & b),
        Op::BitwiseOr => |a, b| Some(a | b),
        Op::BitwiseXor => |a, b| Some(a ^ b),
        _ => return None,
    })
}

/// Returns an operator on floating-point numbers. Rounding its result from `f64` to a narrower type gives the correctly
/// rounded result of the narrower operation.
pub(super) fn float_op(op: Op) -> Option<fn(f64, f64) -> f64> {
    Some(match op {
        Op::Add => |a, b| a + b,
        Op::Sub => |a, b| a - b,
        Op::Mul => |a, b| a * b,
        Op::Div => |a, b| a / b,
        Op::Max => maximum,
        Op::Min => minimum,
        _ => return None,
    })
}

/// Returns the maximum; unlike `f64::max`, NaN if an operand is NaN.
pub(super) fn maximum(a: f64, b: f64) -> f64 {
    if a.is_nan() || a >= b { a } else { b }
}

/// Returns the minimum; NaN if an operand is NaN.
fn minimum(a: f64, b: f64) -> f64 {
    if a.is_nan() || a <= b { a } else { b }
}

/// Applies `ints` or `floats`, depending on the element type of the operands, which must be the same. The result has the same
/// type.
fn apply(
    a: &Tensor,
    b: &Tensor,
    ints: Option<impl Fn(i64, i64) -> Option<i64>>,
    floats: Option<impl Fn(f64, f64) -> f64>,
) -> Option<Tensor> {
    let dtype = a.dtype();
    if b.dtype() != dtype || dtype == DType::Bool {
        return None;
    }
    let result = match (Decoded::of(a)?, Decoded::of(b)?) {
        (Decoded::Ints(a), Decoded::Ints(b)) => Decoded::Ints(a.zip(&b, ints?)?),
        (Decoded::Floats(a), Decoded::Floats(b)) => {
            let floats = floats?;
            Decoded::Floats(a.zip(&b, |a, b| Some(floats(a, b)))?)
        }
        _ => return None,
    };
    result.tensor(dtype)
}

fn by_name(op: Op, a: &Tensor, b: &Tensor) -> Option<Tensor> {
    apply(a, b, int_op(op), float_op(op))
}

pub(super) fn binary(node: &Node<'_>) -> Option<KnownElements> {
    match (constant(node, 0), constant(node, 1)) {
        (Some(a), Some(b)) => by_name(node.op, a, b).map(KnownElements::Constant),
        _ if node.inputs.len() == 2 => partial::binary(node, node.op),
        _ => None,
    }
}

/// Returns the binary operator that a variadic operator repeats.
fn repeated(node: &Node<'_>) -> Op {
    if node.op == Op::Sum { Op::Add } else { node.op }
}

pub(super) fn variadic(node: &Node<'_>) -> Option<KnownElements> {
    let constants: Option<Vec<&Tensor>> = (0..node.inputs.len()).map(|i| constant(node, i)).collect();
    match constants {
        Some(constants) => accumulate(repeated(node), &constants).map(KnownElements::Constant),
        None => partial::binary(node, repeated(node)),
    }
}

fn accumulate(op: Op, operands: &[&Tensor]) -> Option<Tensor> {
    let (&first, rest) = operands.split_first()?;
    rest.iter().try_fold(first.clone(), |result, operand| by_name(op, &result, operand))
}

pub(super) fn mean(node: &Node<'_>) -> Option<KnownElements> {
    let operands: Vec<&Tensor> = (0..node.inputs.len()).map(|i| constant(node, i)).collect::<Option<_>>()?;
    let sum = accumulate(Op::Add, &operands)?;
    let Decoded::Floats(values) = Decoded::of(&sum)? else { return None };
    let count = operands.len() as f64;
    Decoded::Floats(values.map(|value| Some(value / count))?).content(sum.dtype())
}

/// Evaluates `Min(max, Max(input, min))`; either bound may be absent.
pub(super) fn clip(node: &Node<'_>) -> Option<KnownElements> {
    let data = constant(node, 0)?;
    let mut result = data.clone();
    for (index, op) in [(1, Op::Max), (2, Op::Min)] {
        if node.optional(index).is_some() {
            let bound = constant(node, index)?;
            result = (bound.count() == 1).then(|| by_name(op, &result, bound)).flatten()?;
        }
    }
    // Bounds are scalars, but lists of one element are accepted and must not raise the rank.
    if result.count() > super::MAX_ELEMENTS {
        None
    } else {
        result.reshaped(data.dims().to_vec()).map(KnownElements::Constant)
    }
}

pub(super) fn modulo(node: &Node<'_>) -> Option<KnownElements> {
    let truncating = node.flag("fmod", false).ok()?;
    let (a, b) = (constant(node, 0)?, constant(node, 1)?);
    let ints: IntOp = if truncating { i64::checked_rem } else { floor_mod_ints };
    let floats: fn(f64, f64) -> f64 = if truncating { |a, b| a % b } else { floor_mod };
    apply(a, b, Some(ints), Some(floats)).map(KnownElements::Constant)
}

/// Returns the remainder with the sign of the divisor.
fn floor_mod_ints(a: i64, b: i64) -> Option<i64> {
    let rest = a.checked_rem(b)?;
    Some(if rest != 0 && (rest < 0) != (b < 0) { rest + b } else { rest })
}

fn floor_mod(a: f64, b: f64) -> f64 {
    let rest = a % b;
    if rest == 0.0 {
        0f64.copysign(b)
    } else if (rest < 0.0) != (b < 0.0) {
        rest + b
    } else {
        rest
    }
}

pub(super) fn logical(node: &Node<'_>) -> Option<KnownElements> {
    let (a, b) = (constant(node, 0)?, constant(node, 1)?);
    if [a.dtype(), b.dtype()] != [DType::Bool; 2] {
        return None;
    }
    let (Decoded::Ints(a), Decoded::Ints(b)) = (Decoded::of(a)?, Decoded::of(b)?) else { return None };
    let f: IntOp = match node.op {
        Op::And => |a, b| Some(a & b),
        Op::Or => |a, b| Some(a | b),
        _ => |a, b| Some(a ^ b),
    };
    Decoded::Ints(a.zip(&b, f)?).content(DType::Bool)
}

/// Evaluates `BitShift`. Amounts that are negative or at least the width shift out all bits.
pub(super) fn bit_shift(node: &Node<'_>) -> Option<KnownElements> {
    let (a, b) = (constant(node, 0)?, constant(node, 1)?);
    let bits = a.dtype().bits() as i64;
    let left = match node.str("direction").ok()?? {
        "LEFT" => true,
        "RIGHT" => false,
        _ => return None,
    };
    let shift = |value: i64, amount: i64| {
        Some(match (0..bits).contains(&amount) {
            true if left => value << amount,
            true => value >> amount,
            false if !left && value < 0 => -1,
            false => 0,
        })
    };
    apply(a, b, Some(shift), None::<fn(f64, f64) -> f64>).map(KnownElements::Constant)
}

/// Evaluates `Pow`. The exponent may have another type; the result has the type of the base.
pub(super) fn pow(node: &Node<'_>) -> Option<KnownElements> {
    let (base, exponent) = (constant(node, 0)?, constant(node, 1)?);
    if [base.dtype(), exponent.dtype()].contains(&DType::Bool) {
        return None;
    }
    let to_floats = |array: Array<i64>| array.map(|value| Some(value as f64));
    let dtype = base.dtype();
    let result = match (Decoded::of(base)?, Decoded::of(exponent)?) {
        (Decoded::Ints(a), Decoded::Ints(b)) => {
            Decoded::Ints(a.zip(&b, |a, b| Some(a.wrapping_pow(u32::try_from(b).ok()?)))?)
        }
        // Not folded: the result is truncated, and undefined if out of range.
        (Decoded::Ints(_), Decoded::Floats(_)) => return None,
        (Decoded::Floats(a), Decoded::Ints(b)) => Decoded::Floats(power(&a, &to_floats(b)?)?),
        (Decoded::Floats(a), Decoded::Floats(b)) => Decoded::Floats(power(&a, &b)?),
    };
    result.content(dtype)
}

fn power(a: &Array<f64>, b: &Array<f64>) -> Option<Array<f64>> {
    a.zip(b, |a, b| Some(a.powf(b)))
}

#[cfg(test)]
mod tests {
    use super::super::testing::{N, S, bools, floats, ints, partial, scalar_partial, tensor};
    use crate::{DType, Dim, Tensor, Value, infer::testing::Case, node::KnownElements};

    fn of_ints(op: &'static str, a: &[i64], b: &[i64]) -> Case {
        Case::new(op).shape_input(a).shape_input(b)
    }

    fn of_floats(op: &'static str, a: &[f64], b: &[f64]) -> Case {
        Case::new(op).constant(floats(&[a.len() as i64], a)).constant(floats(&[b.len() as i64], b))
    }

    #[test]
    fn integers() {
        of_ints("Add", &[1, i64::MAX], &[2, 1]).folds_to(ints(&[2], &[3, i64::MIN]));
        of_ints("Sub", &[1, 5], &[2]).folds_to(ints(&[2], &[-1, 3]));
        of_ints("Mul", &[3], &[-2]).folds_to(ints(&[1], &[-6]));
        of_ints("Div", &[7, -7, 7], &[2, 2, -2]).folds_to(ints(&[3], &[3, -3, -3]));
        of_ints("Div", &[1], &[0]).folds_to_nothing("int64[*]");
        of_ints("Div", &[i64::MIN], &[-1]).folds_to_nothing("int64[*]");
        of_ints("Add", &[1, 2], &[1, 2, 3]).folds_to_nothing("int64[*]");
        let bytes = |v: i64| tensor(DType::I8, &[], &[v]);
        Case::new("Add").constant(bytes(100)).constant(bytes(100)).folds_to(bytes(-56));
        let unsigned = |v: i64| tensor(DType::U64, &[], &[v]);
        Case::new("Sub").constant(unsigned(0)).constant(unsigned(1)).folds_to(unsigned(-1));
        Case::new("Add").constant(bytes(1)).shape_input(&[1]).folds_to_nothing("int8[*]");
    }

    #[test]
    fn floating_point() {
        of_floats("Add", &[0.1], &[0.2]).folds_to(floats(&[1], &[f64::from(0.1f32 + 0.2f32)]));
        of_floats("Div", &[1.0, 1.0], &[3.0, 0.0]).folds_to(floats(&[2], &[f64::from(1f32 / 3f32), f64::INFINITY]));
        let half = |v: f64| Tensor::from_floats(DType::F16, vec![], &[v]).unwrap();
        Case::new("Mul").constant(half(300.0)).constant(half(300.0)).folds_to(half(f64::INFINITY));
        let case = Case::new("Sub").constant(floats(&[2, 1], &[1.0, 2.0])).constant(floats(&[2], &[0.5, 1.0]));
        case.folds_to(floats(&[2, 2], &[0.5, 0.0, 1.5, 1.0]));
    }

    #[test]
    fn partly_known() {
        let with = |op, a: &[Dim], b: &[i64]| Case::new(op).value(partial(a)).shape_input(b);
        with("Add", &[N, 2.into()], &[0, 3]).folds_to_partial("int64[2]", &[N, 5.into()]);
        with("Sub", &[N, 2.into()], &[0]).folds_to_partial("int64[2]", &[N, 2.into()]);
        with("Mul", &[N, Dim::Unknown, 4.into()], &[1, 0, 2]).folds_to_partial("int64[3]", &[N, 0.into(), 8.into()]);
        with("Mul", &[N, Dim::Unknown], &[0]).folds_to(ints(&[2], &[0, 0]));
        with("Mul", &[N], &[2]).folds_to_nothing("int64[1]");
        with("Div", &[N, 7.into()], &[1, 2]).folds_to_partial("int64[2]", &[N, 3.into()]);
        with("Div", &[N, 7.into()], &[1, 0]).folds_to_partial("int64[2]", &[N, Dim::Unknown]);
        with("Max", &[N, N], &[0, 1]).folds_to_partial("int64[2]", &[N, Dim::Unknown]);
        with("Min", &[N, N], &[0, 1]).folds_to_partial("int64[2]", &[0.into(), Dim::Unknown]);
        Case::new("Sub").value(partial(&[N])).value(partial(&[N])).folds_to(ints(&[1], &[0]));
        Case::new("Sub").value(partial(&[N])).value(partial(&[S])).folds_to_nothing("int64[1]");
        Case::new("Sum").value(partial(&[N])).shape_input(&[0]).folds_to_partial("int64[1]", &[N]);
        Case::new("Mul").value(scalar_partial(N)).shape_input(&[1, 0]).folds_to_partial("int64[2]", &[N, 0.into()]);
        Case::new("Mul").input("int64[2]").shape_input(&[3, 0]).folds_to_partial("int64[2]", &[Dim::Unknown, 0.into()]);
        let ty = crate::TensorType::new(DType::I32, vec![Dim::Known(2)]);
        let narrow = Value { ty, content: Some(KnownElements::Partial(vec![N, Dim::Known(i32::MAX.into())])) };
        let case = Case::new("Add").value(narrow).constant(tensor(DType::I32, &[2], &[0, 1]));
        case.folds_to_partial("int32[2]", &[N, Dim::Known(i32::MIN.into())]);
    }

    #[test]
    fn variadic() {
        of_ints("Max", &[1, 5], &[3]).shape_input(&[4]).folds_to(ints(&[2], &[4, 5]));
        of_ints("Min", &[1, 5], &[3]).folds_to(ints(&[2], &[1, 3]));
        of_floats("Max", &[f64::NAN, 1.0], &[1.0, f64::NAN]).folds_to(floats(&[2], &[f64::NAN, f64::NAN]));
        of_floats("Sum", &[1.0], &[2.0]).constant(floats(&[2], &[3.0, 4.0])).folds_to(floats(&[2], &[6.0, 7.0]));
        of_floats("Mean", &[1.0], &[2.0]).folds_to(floats(&[1], &[1.5]));
        Case::new("Sum").folds_to_nothing("float[*]");
    }

    #[test]
    fn clip() {
        let data = || Case::new("Clip").constant(floats(&[3], &[-1.0, 0.5, 2.0]));
        let scalar = |v: f64| floats(&[], &[v]);
        data().constant(scalar(0.0)).constant(scalar(1.0)).folds_to(floats(&[3], &[0.0, 0.5, 1.0]));
        data().none().constant(scalar(1.0)).folds_to(floats(&[3], &[-1.0, 0.5, 1.0]));
        data().constant(scalar(3.0)).constant(scalar(1.0)).folds_to(floats(&[3], &[1.0; 3]));
        data().folds_to(floats(&[3], &[-1.0, 0.5, 2.0]));
        data().constant(scalar(0.0)).input("float[]").folds_to_nothing("float[3]");
    }

    #[test]
    fn modulo() {
        of_ints("Mod", &[7, -7, 7], &[3, 3, -3]).folds_to(ints(&[3], &[1, 2, -2]));
        of_ints("Mod", &[7, -7, 7], &[3, 3, -3]).int("fmod", 1).folds_to(ints(&[3], &[1, -1, 1]));
        of_ints("Mod", &[7], &[0]).folds_to_nothing("int64[*]");
        of_ints("Mod", &[i64::MIN], &[-1]).folds_to_nothing("int64[*]");
        of_floats("Mod", &[-7.5, 7.5], &[2.0, -2.0]).folds_to(floats(&[2], &[0.5, -0.5]));
        of_floats("Mod", &[-7.5, 7.5], &[2.0, -2.0]).int("fmod", 1).folds_to(floats(&[2], &[-1.5, 1.5]));
        let special = of_floats("Mod", &[-0.0, 1.0, -1.0, 1.0], &[1.0, f64::INFINITY, f64::INFINITY, 0.0]);
        special.folds_to(floats(&[4], &[0.0, 1.0, f64::INFINITY, f64::NAN]));
    }

    #[test]
    fn pow() {
        of_ints("Pow", &[2, -3], &[10, 3]).folds_to(ints(&[2], &[1024, -27]));
        of_ints("Pow", &[2], &[-1]).folds_to_nothing("int64[*]");
        of_floats("Pow", &[2.0, 4.0], &[0.5]).folds_to(floats(&[2], &[f64::from(2f32.sqrt()), 2.0]));
        Case::new("Pow").constant(floats(&[], &[3.0])).constant(ints(&[], &[2])).folds_to(floats(&[], &[9.0]));
    }

    #[test]
    fn bits() {
        of_ints("BitwiseAnd", &[12], &[10]).folds_to(ints(&[1], &[8]));
        of_ints("BitwiseOr", &[12], &[10]).folds_to(ints(&[1], &[14]));
        of_ints("BitwiseXor", &[12], &[10]).folds_to(ints(&[1], &[6]));
        let shift = |direction: &str, dtype, a: &[i64], b: &[i64]| {
            let operand = |values: &[i64]| tensor(dtype, &[values.len() as i64], values);
            Case::new("BitShift").constant(operand(a)).constant(operand(b)).str("direction", direction)
        };
        shift("LEFT", DType::U8, &[200, 1, 1], &[1, 3, 8]).folds_to(tensor(DType::U8, &[3], &[144, 8, 0]));
        shift("RIGHT", DType::I8, &[-8, -8, 8], &[1, 9, -1]).folds_to(tensor(DType::I8, &[3], &[-4, -1, 0]));
        shift("UP", DType::U8, &[1], &[1]).folds_to_nothing("uint8[*]");
    }

    #[test]
    fn logic() {
        let of = |op| Case::new(op).constant(bools(&[2, 1], &[0, 1])).constant(bools(&[2], &[0, 1]));
        of("And").folds_to(bools(&[2, 2], &[0, 0, 0, 1]));
        of("Or").folds_to(bools(&[2, 2], &[0, 1, 1, 1]));
        of("Xor").folds_to(bools(&[2, 2], &[0, 1, 1, 0]));
        of_ints("And", &[1], &[1]).folds_to_nothing("bool[*]");
    }
}
