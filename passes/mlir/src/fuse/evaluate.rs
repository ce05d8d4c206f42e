//! Recognizes the function that a few operators compute by evaluating it at sample points.
//!
//! Exporters decompose functions in many ways: `x * 0.5 * (1 + erf(x / √2))`, `0.5 * (x * (erf(x * 0.7071) + 1))`, …
//! All have the same values, so the values at a few points identify the function.

use super::graph::{Graph, NodeId, Source, ValueId};
use divi_dialect::attr;
use divi_onnx::{DType, Op};
use std::sync::LazyLock;

const POINTS: usize = 12;

/// Points on both sides of all kinks, and in the tails of the functions below.
const ACTIVATION_POINTS: [f64; POINTS] = [-7.5, -4.2, -2.7, -1.6, -0.6, -0.1, 0.3, 0.9, 1.8, 2.9, 4.4, 8.1];

/// A vector to normalize, with a variance so large that the epsilon added to it does not matter.
const NORM_POINTS: [f64; POINTS] = [120., -75., 33., 210., -160., 14., -98., 61., 155., -20., 87., -240.];

/// A value at all points, or a single number: the result of a reduction, or a constant.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Sample {
    Each([f64; POINTS]),
    One(f64),
}

impl Sample {
    fn map(self, f: impl Fn(f64) -> f64) -> Self {
        match self {
            Self::Each(values) => Self::Each(values.map(f)),
            Self::One(value) => Self::One(f(value)),
        }
    }

    fn zip(self, other: Self, f: impl Fn(f64, f64) -> f64) -> Self {
        match (self, other) {
            (Self::Each(a), Self::Each(b)) => Self::Each(std::array::from_fn(|i| f(a[i], b[i]))),
            (a, Self::One(b)) => a.map(|a| f(a, b)),
            (Self::One(a), b) => b.map(|b| f(a, b)),
        }
    }
}

type Function = fn(f64) -> f64;

/// Activations with a name, and their values at the points above.
static ACTIVATIONS: LazyLock<Vec<(&str, [f64; POINTS])>> = LazyLock::new(|| {
    let functions: [(&str, Function); _] = [
        ("gelu", |x| 0.5 * x * (1.0 + erf(x * std::f64::consts::FRAC_1_SQRT_2))),
        ("gelu", |x| {
            let inner = (2.0 / std::f64::consts::PI).sqrt() * (x + 0.044715 * x.powi(3));
            0.5 * x * (1.0 + inner.tanh())
        }),
        ("silu", |x| x * sigmoid(x)),
        ("quickgelu", |x| x * sigmoid(1.702 * x)),
        ("hardswish", |x| x * (x + 3.0).clamp(0.0, 6.0) / 6.0),
        ("hardsigmoid", |x| (x + 3.0).clamp(0.0, 6.0) / 6.0),
        ("hardsigmoid", |x| (0.2 * x + 0.5).clamp(0.0, 1.0)),
        ("mish", |x| x * softplus(x).tanh()),
        ("softplus", softplus),
        ("softsign", |x| x / (1.0 + x.abs())),
        ("sigmoid", sigmoid),
        ("clip", |x| x.clamp(0.0, 6.0)),
        ("tanh", f64::tanh),
    ];
    functions.map(|(name, f)| (name, ACTIVATION_POINTS.map(f))).to_vec()
});

/// Returns true for nonlinear operators other than binary arithmetic and `Sqrt`. Every activation contains one.
pub(super) fn is_nonlinear(op: Op) -> bool {
    matches!(op, Op::Clip | Op::HardSigmoid | Op::Max | Op::Min)
        || unary(op).is_some_and(|_| !matches!(op, Op::Neg | Op::Sqrt))
}

/// Returns the name of the activation of `input` that nodes compute together, if it has one.
pub(super) fn activation(graph: &Graph<'_>, nodes: &[NodeId], input: ValueId) -> Option<&'static str> {
    let Sample::Each(values) = evaluate(graph, nodes, input, ACTIVATION_POINTS)? else { return None };
    let tolerance = tolerance(graph, nodes);
    let agrees = |expected: &[f64; POINTS]| {
        expected.iter().zip(values).all(|(expected, y)| (expected - y).abs() <= tolerance * (1.0 + y.abs()))
    };
    ACTIVATIONS.iter().find(|(_, expected)| agrees(expected)).map(|&(name, _)| name)
}

/// Returns the name of the normalization of `input` that nodes compute together, without scale and shift.
pub(super) fn normalization(graph: &Graph<'_>, nodes: &[NodeId], input: ValueId) -> Option<&'static str> {
    let Sample::Each(values) = evaluate(graph, nodes, input, NORM_POINTS)? else { return None };
    let mean_of = |values: [f64; POINTS]| values.iter().sum::<f64>() / POINTS as f64;
    let agrees = |center: f64| {
        let centered = NORM_POINTS.map(|x| x - center);
        let deviation = mean_of(centered.map(|x| x * x)).sqrt();
        centered.iter().zip(values).all(|(x, y)| (x / deviation - y).abs() <= 1e-3)
    };
    if agrees(mean_of(NORM_POINTS)) {
        return Some("layer_norm");
    }
    agrees(0.0).then_some("rms_norm")
}

/// Returns the error that rounded constants may cause. It is less than the distance between functions of different
/// names.
fn tolerance(graph: &Graph<'_>, nodes: &[NodeId]) -> f64 {
    let operands = nodes.iter().flat_map(|&node| &graph.nodes[node].operands);
    let dtypes = operands.filter_map(|&operand| Some(graph.ty(operand)?.dtype));
    let tolerances = dtypes.map(|dtype| match dtype {
        DType::BF16 => 5e-3,
        DType::F16 => 2e-3,
        _ => 1e-5,
    });
    tolerances.fold(1e-5, f64::max)
}

/// Returns the last node's result if `input` has the values of `points`.
fn evaluate(graph: &Graph<'_>, nodes: &[NodeId], input: ValueId, points: [f64; POINTS]) -> Option<Sample> {
    // An idiom has few values, so a linear search is faster than a hash table.
    let mut known = Vec::with_capacity(nodes.len() + 1);
    known.push((input, Sample::Each(points)));
    for &id in nodes {
        let node = &graph.nodes[id];
        let result = *node.results.first()?;
        let mut operands = Vec::with_capacity(node.operands.len());
        // The axes of a reduction are not a scalar; `idiom` checks that all reductions have the same.
        let count = if node.is(Op::ReduceMean) { 1 } else { node.operands.len() };
        for &operand in &node.operands[..count] {
            operands.push(match graph.values[operand].source {
                Source::Absent => None,
                Source::Constant => Some(Sample::One(graph.number(operand)?)),
                _ => Some(known.iter().find(|(value, _)| *value == operand)?.1),
            });
        }
        known.push((result, apply(graph, id, &operands)?));
    }
    known.last().map(|&(_, sample)| sample)
}

fn apply(graph: &Graph<'_>, id: NodeId, operands: &[Option<Sample>]) -> Option<Sample> {
    let node = &graph.nodes[id];
    let number = |name, default: f64| node.operation.attribute(name).and_then(attr::as_float).unwrap_or(default);
    let x = (*operands.first()?)?;
    let op = node.op?;
    if let Some(f) = unary(op) {
        return Some(x.map(f));
    }
    if let Some(f) = binary(op) {
        let others = operands[1..].iter().copied().collect::<Option<Vec<_>>>()?;
        return Some(others.into_iter().fold(x, |a, b| a.zip(b, f)));
    }
    match op {
        // Rounding to integers is not part of these functions; other floating-point types only lose precision.
        Op::Cast | Op::Identity => {
            let to = graph.ty(*node.results.first()?)?.dtype;
            matches!(to, DType::F16 | DType::BF16 | DType::F32 | DType::F64).then_some(x)
        }
        Op::Clip => {
            let bound = |index: usize| operands.get(index).copied().flatten();
            let x = bound(1).map_or(x, |low| x.zip(low, f64::max));
            Some(bound(2).map_or(x, |high| x.zip(high, f64::min)))
        }
        Op::HardSigmoid => {
            let (alpha, beta) = (number("alpha", 0.2), number("beta", 0.5));
            Some(x.map(|x| (alpha * x + beta).clamp(0.0, 1.0)))
        }
        Op::ReduceMean => {
            let kept = node.operation.attribute("keepdims").and_then(attr::as_integer) != Some(0);
            match x {
                Sample::Each(values) if kept => Some(Sample::One(values.iter().sum::<f64>() / POINTS as f64)),
                _ => None,
            }
        }
        _ => None,
    }
}

fn unary(op: Op) -> Option<Function> {
    Some(match op {
        Op::Abs => f64::abs,
        Op::Erf => erf,
        Op::Exp => f64::exp,
        Op::HardSwish => |x| x * (x / 6.0 + 0.5).clamp(0.0, 1.0),
        Op::Log => f64::ln,
        Op::Neg => |x| -x,
        Op::Reciprocal => f64::recip,
        Op::Relu => |x| x.max(0.0),
        Op::Sigmoid => sigmoid,
        Op::Softplus => softplus,
        Op::Sqrt => f64::sqrt,
        Op::Tanh => f64::tanh,
        _ => return None,
    })
}

fn binary(op: Op) -> Option<fn(f64, f64) -> f64> {
    Some(match op {
        Op::Add | Op::Sum => |a, b| a + b,
        Op::Div => |a, b| a / b,
        Op::Max => f64::max,
        Op::Min => f64::min,
        Op::Mul => |a, b| a * b,
        Op::Pow => f64::powf,
        Op::Sub => |a, b| a - b,
        _ => return None,
    })
}

fn sigmoid(x: f64) -> f64 {
    1.0 / (1.0 + (-x).exp())
}

fn softplus(x: f64) -> f64 {
    x.exp().ln_1p()
}

/// Computes the error function: by its series where that converges fast, by its continued fraction beyond.
fn erf(x: f64) -> f64 {
    let size = x.abs();
    let value = if size < 2.5 {
        let mut term = size;
        let mut sum = size;
        for n in 1..60 {
            term *= -size * size / f64::from(n);
            sum += term / f64::from(2 * n + 1);
        }
        sum * std::f64::consts::FRAC_2_SQRT_PI
    } else {
        let fraction = (1..60).rev().fold(size, |tail, n| size + f64::from(n) / 2.0 / tail);
        1.0 - (-size * size).exp() / (fraction * std::f64::consts::PI.sqrt())
    };
    value.copysign(x)
}

#[cfg(test)]
mod tests {
    use super::erf;

    #[test]
    fn error_function_matches_table() {
        let table = [(0.0, 0.0), (0.5, 0.520_499_877_8), (1.0, 0.842_700_792_9), (2.4, 0.999_311_486_1)];
        for (x, expected) in table.into_iter().chain([(2.6, 0.999_763_966), (4.0, 0.999_999_984_6)]) {
            assert!((erf(x) - expected).abs() < 1e-9, "erf({x}) is {}", erf(x));
            assert_eq!(erf(-x), -erf(x));
        }
    }
}
