//! Unary elementwise operators.

use super::{
    array::{Decoded, constant},
    partial,
};
use crate::{DType, Node, Op, node::KnownElements};

/// Returns an operator on integers. Results wrap to the width of their type when they are encoded.
fn int_op(op: Op) -> Option<fn(i64) -> i64> {
    Some(match op {
        Op::Abs => i64::wrapping_abs,
        Op::BitwiseNot => |value| !value,
        Op::Neg => i64::wrapping_neg,
        Op::Relu => |value| value.max(0),
        Op::Sign => i64::signum,
        _ => return None,
    })
}

/// Returns an operator on floating-point numbers, computed in `f64` and rounded: correctly rounded for all except
/// transcendental operators.
fn float_op(op: Op) -> Option<fn(f64) -> f64> {
    Some(match op {
        Op::Abs => f64::abs,
        Op::Ceil => f64::ceil,
        Op::Cos => f64::cos,
        Op::Exp => f64::exp,
        Op::Floor => f64::floor,
        Op::Log => f64::ln,
        Op::Neg => |value| -value,
        Op::Reciprocal => |value| 1.0 / value,
        Op::Relu => |value| super::arithmetic::maximum(value, 0.0),
        Op::Round => f64::round_ties_even,
        Op::Sigmoid => |value| 1.0 / (1.0 + (-value).exp()),
        Op::Sign => |value| {
            if value == 0.0 {
                0.0
            } else if value.is_nan() {
                value
            } else {
                value.signum()
            }
        },
        Op::Sin => f64::sin,
        Op::Sqrt => f64::sqrt,
        Op::Tan => f64::tan,
        Op::Tanh => f64::tanh,
        _ => return None,
    })
}

pub(super) fn unary(node: &Node<'_>) -> Option<KnownElements> {
    let Some(tensor) = constant(node, 0) else { return partial::unary(node, int_op(node.op)?) };
    if tensor.dtype() == DType::Bool {
        return None;
    }
    let result = match Decoded::of(tensor)? {
        Decoded::Ints(values) => {
            let f = int_op(node.op)?;
            Decoded::Ints(values.map(|value| Some(f(value)))?)
        }
        Decoded::Floats(values) => {
            let f = float_op(node.op)?;
            Decoded::Floats(values.map(|value| Some(f(value)))?)
        }
    };
    result.content(tensor.dtype())
}

pub(super) fn not(node: &Node<'_>) -> Option<KnownElements> {
    let tensor = constant(node, 0).filter(|tensor| tensor.dtype() == DType::Bool)?;
    let Decoded::Ints(values) = Decoded::of(tensor)? else { return None };
    Decoded::Ints(values.map(|value| Some(1 - value))?).content(DType::Bool)
}

pub(super) fn is_nan(node: &Node<'_>) -> Option<KnownElements> {
    predicate(node, f64::is_nan)
}

pub(super) fn is_inf(node: &Node<'_>) -> Option<KnownElements> {
    let negative = node.flag("detect_negative", true).ok()?;
    let positive = node.flag("detect_positive", true).ok()?;
    predicate(node, |value| value.is_infinite() && if value < 0.0 { negative } else { positive })
}

fn predicate(node: &Node<'_>, holds: impl Fn(f64) -> bool) -> Option<KnownElements> {
    let Decoded::Floats(values) = Decoded::of(constant(node, 0)?)? else { return None };
    Decoded::Ints(values.map(|value| Some(holds(value).into()))?).content(DType::Bool)
}

#[cfg(test)]
mod tests {
    use super::super::testing::{N, bools, floats, ints, partial, tensor};
    use crate::{DType, Dim, infer::testing::Case};

    #[track_caller]
    fn check(op: &'static str, values: &[f64], expected: &[f64]) {
        let dims = [values.len() as i64];
        Case::new(op).constant(floats(&dims, values)).folds_to(floats(&dims, expected));
    }

    #[test]
    fn floating_point() {
        check("Abs", &[-1.5, -0.0], &[1.5, 0.0]);
        check("Ceil", &[-1.5, 1.2], &[-1.0, 2.0]);
        check("Cos", &[0.0, 1.0], &[1.0, 1f64.cos()]);
        check("Exp", &[0.0, 1.0], &[1.0, std::f64::consts::E]);
        check("Floor", &[-1.5, 1.2], &[-2.0, 1.0]);
        check("Log", &[1.0, 0.0, -1.0], &[0.0, f64::NEG_INFINITY, f64::NAN]);
        check("Neg", &[1.0, 0.0], &[-1.0, -0.0]);
        check("Reciprocal", &[4.0, 0.0], &[0.25, f64::INFINITY]);
        check("Relu", &[-1.0, 2.0, f64::NAN], &[0.0, 2.0, f64::NAN]);
        check("Round", &[0.5, 1.5, -2.5, 2.6], &[0.0, 2.0, -2.0, 3.0]);
        check("Sigmoid", &[0.0, -1000.0], &[0.5, 0.0]);
        check("Sign", &[-3.0, -0.0, f64::NAN], &[-1.0, 0.0, f64::NAN]);
        check("Sin", &[0.0, 1.0], &[0.0, 1f64.sin()]);
        check("Sqrt", &[4.0, 2.0], &[2.0, f64::from(2f32.sqrt())]);
        check("Tan", &[1.0], &[1f64.tan()]);
        check("Tanh", &[0.0, 100.0], &[0.0, 1.0]);
    }

    #[test]
    fn integers() {
        let bytes = |values: &[i64]| tensor(DType::I8, &[values.len() as i64], values);
        Case::new("Abs").constant(bytes(&[-3, -128])).folds_to(bytes(&[3, -128]));
        Case::new("Neg").constant(bytes(&[-3, -128])).folds_to(bytes(&[3, -128]));
        Case::new("Sign").constant(bytes(&[-3, 0, 9])).folds_to(bytes(&[-1, 0, 1]));
        Case::new("BitwiseNot").constant(tensor(DType::U8, &[], &[1])).folds_to(tensor(DType::U8, &[], &[254]));
        Case::new("Neg").shape_input(&[i64::MIN]).folds_to(ints(&[1], &[i64::MIN]));
        Case::new("Sqrt").shape_input(&[4]).folds_to_nothing("int64[*]");
        Case::new("Neg").constant(bools(&[], &[1])).folds_to_nothing("bool[*]");
    }

    #[test]
    fn partly_known() {
        let case = |op| Case::new(op).value(partial(&[N, 3.into()]));
        case("Neg").folds_to_partial("int64[2]", &[Dim::Unknown, (-3).into()]);
        case("Abs").folds_to_partial("int64[2]", &[N, 3.into()]);
    }

    #[test]
    fn predicates() {
        Case::new("Not").constant(bools(&[2], &[0, 1])).folds_to(bools(&[2], &[1, 0]));
        let data = |op| Case::new(op).constant(floats(&[3], &[f64::NAN, f64::NEG_INFINITY, f64::INFINITY]));
        data("IsNaN").folds_to(bools(&[3], &[1, 0, 0]));
        data("IsInf").folds_to(bools(&[3], &[0, 1, 1]));
        data("IsInf").int("detect_negative", 0).folds_to(bools(&[3], &[0, 0, 1]));
    }
}
