//! Activation functions, Dropout and Clip's clamp.

use super::{Lower, convert, is_unsigned, unary::unary};
use crate::{
    emit::{Builder, Compare, Math, V},
    error::{Result, unsupported},
    graph::Node,
    lowering::Lowering,
};
use divi_onnx::{DType, Op};

pub(super) fn find(op: Op) -> Option<Lower> {
    Some(match op {
        Op::Celu => celu,
        Op::Dropout => dropout,
        Op::Elu => |cx, node| {
            let alpha = attribute(node, "alpha", 1.0)?;
            unary(cx, node, |b, _, x| below_zero(b, x, |b, x| times(b, alpha, exp_minus_one(b, x))))
        },
        Op::Gelu => gelu,
        Op::HardSigmoid => |cx, node| {
            let (alpha, beta) = (attribute(node, "alpha", 0.2)?, attribute(node, "beta", 0.5)?);
            unary(cx, node, |b, _, x| ramp(b, x, alpha, beta))
        },
        Op::HardSwish => |cx, node| unary(cx, node, |b, _, x| b.mul(x, ramp(b, x, 1.0 / 6.0, 0.5))),
        Op::LeakyRelu => |cx, node| {
            let alpha = attribute(node, "alpha", 0.01)?;
            unary(cx, node, |b, _, x| below_zero(b, x, |b, x| times(b, alpha, x)))
        },
        Op::Mish => |cx, node| unary(cx, node, |b, _, x| mish(b, x)),
        Op::Relu => |cx, node| unary(cx, node, |b, _, x| below_zero(b, x, |b, x| b.zero(b.type_of(x)))),
        Op::Selu => |cx, node| {
            let alpha = attribute(node, "alpha", 1.673_263_192_176_818_8)?;
            let gamma = attribute(node, "gamma", 1.050_701_022_148_132_3)?;
            unary(cx, node, |b, _, x| {
                let scaled = below_zero(b, x, |b, x| times(b, alpha, exp_minus_one(b, x)));
                times(b, gamma, scaled)
            })
        },
        Op::Shrink => shrink,
        Op::Sigmoid => |cx, node| unary(cx, node, |b, _, x| b.sigmoid(x)),
        Op::Softplus => |cx, node| unary(cx, node, |b, _, x| softplus(b, x)),
        Op::Softsign => {
            |cx, node| unary(cx, node, |b, _, x| b.div(x, b.add(b.float(1.0, b.type_of(x)), b.abs(x)), false))
        }
        Op::Swish => |cx, node| {
            let alpha = attribute(node, "alpha", 1.0)?;
            unary(cx, node, |b, _, x| b.mul(x, b.sigmoid(times(b, alpha, x))))
        },
        Op::ThresholdedRelu => |cx, node| {
            let alpha = attribute(node, "alpha", 1.0)?;
            unary(cx, node, |b, _, x| {
                let ty = b.type_of(x);
                b.select(b.less(b.float(alpha, ty), x), x, b.zero(ty))
            })
        },
        _ => return None,
    })
}

fn attribute(node: &Node, name: &str, default: f64) -> Result<f64> {
    Ok(node.attributes().float(name)?.map_or(default, f64::from))
}

fn times(b: &Builder, factor: f64, x: V) -> V {
    b.mul(b.float(factor, b.type_of(x)), x)
}

/// Applies a function to negative numbers; all others, and NaN, are unchanged.
fn below_zero(b: &Builder, x: V, compute: impl FnOnce(&Builder, V) -> V) -> V {
    let is_negative = b.less(x, b.zero(b.type_of(x)));
    b.select(is_negative, compute(b, x), x)
}

fn exp_minus_one(b: &Builder, x: V) -> V {
    b.sub(b.exp(x), b.float(1.0, b.type_of(x)))
}

/// Returns `alpha * x + beta`, clamped to [0, 1].
fn ramp(b: &Builder, x: V, alpha: f64, beta: f64) -> V {
    let ty = b.type_of(x);
    let line = b.add(times(b, alpha, x), b.float(beta, ty));
    let one = b.float(1.0, ty);
    below_zero(b, b.select(b.less(one, line), one, line), |b, _| b.zero(ty))
}

fn celu(cx: &mut Lowering<'_>, node: &Node) -> Result<()> {
    let alpha = attribute(node, "alpha", 1.0)?;
    unary(cx, node, |b, _, x| {
        below_zero(b, x, |b, x| times(b, alpha, exp_minus_one(b, b.div(x, b.float(alpha, b.type_of(x)), false))))
    })
}

fn gelu(cx: &mut Lowering<'_>, node: &Node) -> Result<()> {
    let is_approximate = match node.attributes().str_or("approximate", "none")? {
        "none" => false,
        "tanh" => true,
        other => return unsupported(format!("attribute 'approximate' is '{other}', must be none or tanh")),
    };
    unary(cx, node, |b, _, x| {
        let ty = b.type_of(x);
        let share = if is_approximate {
            let cube = b.mul(b.mul(x, x), x);
            let sum = b.add(x, times(b, 0.044_715, cube));
            b.tanh(times(b, (2.0 / std::f64::consts::PI).sqrt(), sum))
        } else {
            b.erf(times(b, std::f64::consts::FRAC_1_SQRT_2, x))
        };
        b.mul(times(b, 0.5, x), b.add(b.float(1.0, ty), share))
    })
}

/// Returns `log(1 + exp(x))` without intermediate overflow.
fn softplus(b: &Builder, x: V) -> V {
    let ty = b.type_of(x);
    let positive = below_zero(b, x, |b, _| b.zero(ty));
    b.add(positive, b.math(Math::Log1p, b.exp(b.neg(b.abs(x)))))
}

/// Returns `x * tanh(log(1 + exp(x)))`. With `e = exp(x)`, the factor is `e (e + 2) / (e (e + 2) + 2)`.
fn mish(b: &Builder, x: V) -> V {
    let ty = b.type_of(x);
    // Beyond this limit the factor is 1, and its terms could overflow.
    let limit = b.float(40.0, ty);
    let e = b.exp(b.select(b.less(limit, x), limit, x));
    let two = b.float(2.0, ty);
    let term = b.mul(e, b.add(e, two));
    b.mul(x, b.div(term, b.add(term, two), false))
}

/// Lowers Shrink; integers are computed as `double`.
fn shrink(cx: &mut Lowering<'_>, node: &Node) -> Result<()> {
    let (bias, limit) = (attribute(node, "bias", 0.0)?, attribute(node, "lambd", 0.5)?);
    unary(cx, node, |b, dtype, x| {
        let wide = if dtype.is_float() { dtype } else { DType::F64 };
        let x = convert(b, x, dtype, wide);
        let ty = b.type_of(x);
        let float = |value| b.float(value, ty);
        let above = b.select(b.less(float(limit), x), b.sub(x, float(bias)), float(0.0));
        let result = b.select(b.less(x, float(-limit)), b.add(x, float(bias)), above);
        convert(b, result, wide, dtype)
    })
}

/// Lowers Dropout in inference mode, where it is the identity.
fn dropout(cx: &mut Lowering<'_>, node: &Node) -> Result<()> {
    let flag = |index: usize, is_off: &dyn Fn(&divi_onnx::Tensor) -> bool| match node.optional(index) {
        Some(id) => cx.tensor(id).is_some_and(is_off),
        None => index == 2,
    };
    let is_inference = flag(2, &|mode| mode.ints().is_some_and(|mode| mode == [0]));
    let drops_nothing = flag(1, &|ratio| ratio.floats().is_some_and(|ratio| ratio == [0.0]));
    if !is_inference && !drops_nothing {
        return unsupported(
            "random numbers in training mode are not supported; set 'training_mode' to a constant false",
        );
    }
    let input = node.input(0)?;
    if let Some(mask) = node.result(1) {
        super::map(cx, &[], mask, |b, _| b.integer(1, b.i1()));
    }
    if let Some(output) = node.result(0) {
        cx.alias(output, input);
    }
    Ok(())
}

/// Clamps a number; the upper bound takes precedence if the bounds contradict each other.
pub(super) fn clamp(b: &Builder, dtype: DType, x: V, low: Option<V>, high: Option<V>) -> V {
    let unsigned = is_unsigned(dtype);
    let x = low.map_or(x, |low| b.select(b.compare(Compare::Less, x, low, unsigned), low, x));
    high.map_or(x, |high| b.select(b.compare(Compare::Less, high, x, unsigned), high, x))
}
