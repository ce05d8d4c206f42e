//! Work of elementwise operators, and operation counts of elementary functions.
//!
//! Elementary functions count as the multiplications and additions of a common implementation in single precision: argument
//! reduction, polynomial, and reconstruction.

use super::operator::{Count, Operator, bytes, times};
use super::{Class, Geometry};
use divi_onnx::{Error, operators::WorkRule};

/// Exponential: argument reduction (3), a polynomial of degree five (10), scaling by a power of two (1).
pub const EXP: u64 = 14;
/// Logarithm, like the exponential.
pub const LOG: u64 = 14;
/// Error function: a polynomial, and an exponential of the square.
pub const ERF: u64 = EXP + 10;
/// Hyperbolic tangent: `(e - 1) / (e + 1)` where `e = exp(2x)`.
pub const TANH: u64 = EXP + 4;
/// Sigmoid: `1 / (1 + exp(-x))`.
pub const SIGMOID: u64 = EXP + 3;
/// Power: `exp(y * log(x))`.
pub const POW: u64 = EXP + LOG + 1;
/// Sine or cosine: argument reduction (4) and a polynomial (10).
pub const SIN: u64 = 14;
/// Inverse trigonometric function.
pub const ATAN: u64 = 18;
/// Uniform random number: the rounds of a counter-based generator.
pub const RANDOM: u64 = 12;
/// Requantization: multiply, round, add the zero point, saturate.
pub const REQUANTIZE: u64 = 4;

/// Returns the operations per element of the result, for rules for which they are constant.
pub(super) fn operations(rule: WorkRule) -> Option<u64> {
    Some(match rule {
        WorkRule::Operations1 => 1,
        // A comparison and a multiplication.
        WorkRule::Operations2 => 2,
        // Mod: quotient, product with the divisor, difference. Softsign: absolute value, sum, quotient.
        WorkRule::Operations3 => 3,
        // Shrink: a comparison and a shift on either side of zero. HardSigmoid: scale, shift, two bounds.
        WorkRule::Operations4 => 4,
        WorkRule::Operations5 => 5,
        WorkRule::Exp => EXP,
        WorkRule::Log => LOG,
        WorkRule::Erf => ERF,
        WorkRule::Tanh => TANH,
        WorkRule::Sigmoid => SIGMOID,
        WorkRule::SineCosine => SIN,
        WorkRule::Tan => SIN + SIN + 1,
        WorkRule::InverseTrigonometric => ATAN,
        // An exponential and its reciprocal; their sum or difference, halved.
        WorkRule::Hyperbolic => EXP + 3,
        // Asinh, Acosh: log(x + sqrt(x² ± 1)). Atanh: log((1 + x) / (1 - x)) / 2.
        WorkRule::InverseHyperbolic => LOG + 4,
        // A comparison, exp(x) - 1, a scale; one more scale for Selu and Celu.
        WorkRule::Elu => EXP + 3,
        WorkRule::ScaledElu => EXP + 4,
        WorkRule::Softplus => EXP + LOG + 1,
        WorkRule::Mish => EXP + LOG + 1 + TANH + 1,
        _ => return None,
    })
}

pub(super) fn by_table(op: &Operator<'_>) -> Result<Count, Error> {
    let operations = op.node.op.work_rule().and_then(operations);
    op.each(operations.expect("only rules of `operations` use this function"))
}

/// Counts `Clip`: one comparison per present bound.
pub(super) fn clip(op: &Operator<'_>) -> Result<Count, Error> {
    op.each(u64::from(op.has(1)) + u64::from(op.has(2)))
}

/// Counts `Cast` and `CastLike`. A cast to the same type is a view; the second operand of CastLike is never read.
pub(super) fn cast(op: &Operator<'_>) -> Result<Count, Error> {
    let same = op.results.first().map(|result| result.dtype) == Some(op.node.dtype(0)?);
    if same { Ok(op.view()) } else { Ok(op.each(1)?.read_bytes(1, 0)) }
}

/// Counts `Where`. The element type is that of the selected operands.
pub(super) fn select(op: &Operator<'_>) -> Result<Count, Error> {
    Ok(op.each(1)?.dtype(op.node.dtype(1)?))
}

/// Counts `Pow`. Small integral exponents are products, and 0.5 is a root.
pub(super) fn pow(op: &Operator<'_>) -> Result<Count, Error> {
    let exponent = match (op.node.int_of(1), op.node.floats_of(1).as_deref()) {
        (Some(exponent), _) => Some(exponent as f64),
        (None, Some(&[exponent])) => Some(exponent),
        _ => None,
    };
    let simple = |flops| Ok(op.each(flops)?.class(Class::Elementwise));
    match exponent {
        Some(0.5 | 2.0 | -1.0 | 1.0) => simple(1),
        Some(3.0 | 4.0 | -2.0 | -0.5) => simple(2),
        _ => op.each(POW),
    }
}

/// Counts `Gelu`: `x / 2 * (1 + erf(x / sqrt(2)))`, or its approximation with the tanh of a polynomial.
pub(super) fn gelu(op: &Operator<'_>) -> Result<Count, Error> {
    match op.node.str_or("approximate", "none")? {
        "tanh" => op.each(TANH + 8),
        _ => op.each(ERF + 4),
    }
}

/// Returns true if an attribute scales the argument of the sigmoid.
pub(super) fn is_scaled(op: &Operator<'_>) -> Result<bool, Error> {
    Ok(op.node.float("alpha")?.is_some_and(|alpha| alpha != 1.0))
}

/// Counts `RotaryEmbedding`: two products and a sum per rotated element. With positions, only their rows of the caches are read.
pub(super) fn rotary_embedding(op: &Operator<'_>) -> Result<Count, Error> {
    let (x, count) = (op.dims(0)?, op.count(0)?);
    let size = match (&x[..], op.node.int_or("num_heads", 0)?) {
        ([_, _, _, size], _) => *size,
        ([_, _, hidden], heads @ 1..) => hidden / heads.unsigned_abs(),
        ([_, _, _], _) => return Err(Error::new("needs the attribute 'num_heads' to split the last axis into heads")),
        _ => return Err(op.wrong(0, "of rank 3 or 4")),
    };
    let rotated = match op.node.int_or("rotary_embedding_dim", 0)? {
        dim @ 1.. => dim.unsigned_abs().min(size),
        _ => size,
    };
    let flops = times(&[3, count.checked_div(size).unwrap_or(0), rotated]);
    let mut work = op.does(flops, Geometry::Elements { count });
    if op.has(3) {
        for cache in [1, 2] {
            let rows = bytes(op.node.dtype(cache)?, times(&[op.count(3)?, rotated / 2]));
            work = work.read_bytes(cache, rows.min(op.bytes(cache)?));
        }
    }
    Ok(work)
}
