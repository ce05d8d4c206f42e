//! Operators that work on each element by itself, and what elementary functions count as.
//!
//! The elementary functions are counted as the multiplications and additions of a common implementation in single
//! precision: the reduction of the argument, a polynomial, and putting the result together.

use super::operator::{Count, Operator, bytes, times};
use super::{Class, Geometry};
use divi_onnx::{Error, operators::WorkRule};

/// The exponential: reduction (3), a polynomial of the fifth degree by pairs (10), scaling by a power of two (1).
pub const EXP: u64 = 14;
/// The logarithm, like the exponential.
pub const LOG: u64 = 14;
/// The error function: a polynomial, and an exponential of the square.
pub const ERF: u64 = EXP + 10;
/// `(e - 1) / (e + 1)` where `e` is the exponential of twice the argument.
pub const TANH: u64 = EXP + 4;
/// `1 / (1 + exp(-x))`.
pub const SIGMOID: u64 = EXP + 3;
/// `exp(y * log(x))`.
pub const POW: u64 = EXP + LOG + 1;
/// Sine and cosine: reduction (4) and a polynomial (10).
pub const SIN: u64 = 14;
/// The inverse of a trigonometric function.
pub const ATAN: u64 = 18;
/// A number drawn uniformly: the rounds of a counter-based generator.
pub const RANDOM: u64 = 12;
/// A number brought into another scale: multiply, round, add the zero point, saturate.
pub const REQUANTIZE: u64 = 4;

/// Operations for each element of the result, where nothing but the operator decides.
pub(super) fn operations(rule: WorkRule) -> Option<u64> {
    Some(match rule {
        WorkRule::Operations1 => 1,
        // A comparison and a multiplication.
        WorkRule::Operations2 => 2,
        // The quotient, its product with the divisor, the difference; the absolute value, a sum, a quotient.
        WorkRule::Operations3 => 3,
        // A comparison and a shift on either side of zero; a scale, a shift, two bounds.
        WorkRule::Operations4 => 4,
        WorkRule::Operations5 => 5,
        WorkRule::Exp => EXP,
        WorkRule::Log => LOG,
        WorkRule::Erf => ERF,
        WorkRule::Tanh => TANH,
        WorkRule::Sigmoid => SIGMOID,
        WorkRule::Sine => SIN,
        WorkRule::Tan => SIN + SIN + 1,
        WorkRule::Arc => ATAN,
        // Two exponentials, one the reciprocal of the other; their sum or difference, halved.
        WorkRule::Hyperbolic => EXP + 3,
        // A logarithm of the argument and the root of its square and one; of a quotient of two sums, halved.
        WorkRule::ArcHyperbolic => LOG + 4,
        // A comparison, the exponential less one, a scale; one more scale for the other two.
        WorkRule::Elu => EXP + 3,
        WorkRule::ScaledElu => EXP + 4,
        WorkRule::Softplus => EXP + LOG + 1,
        WorkRule::Mish => EXP + LOG + 1 + TANH + 1,
        _ => return None,
    })
}

pub(super) fn by_table(op: &Operator<'_>) -> Result<Count, Error> {
    let operations = op.node.op.work_rule().and_then(operations);
    op.each(operations.expect("the rule is chosen for operators of the table only"))
}

/// A comparison for each bound that is there.
pub(super) fn clip(op: &Operator<'_>) -> Result<Count, Error> {
    op.each(u64::from(op.has(1)) + u64::from(op.has(2)))
}

/// A cast to the same type is a view. The other operand of CastLike is never read.
pub(super) fn cast(op: &Operator<'_>) -> Result<Count, Error> {
    let same = op.results.first().map(|result| result.dtype) == Some(op.node.dtype(0)?);
    if same { Ok(op.view()) } else { Ok(op.each(1)?.touched(1, 0)) }
}

/// The choice is made in the type of what is chosen.
pub(super) fn select(op: &Operator<'_>) -> Result<Count, Error> {
    Ok(op.each(1)?.dtype(op.node.dtype(1)?))
}

/// Small whole exponents are products, and one half is a root.
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

/// `x / 2 * (1 + erf(x / sqrt(2)))`, or the same with the tangent of a polynomial.
pub(super) fn gelu(op: &Operator<'_>) -> Result<Count, Error> {
    match op.node.str_or("approximate", "none")? {
        "tanh" => op.each(TANH + 8),
        _ => op.each(ERF + 4),
    }
}

/// Whether an attribute scales the argument of the sigmoid.
pub(super) fn is_scaled(op: &Operator<'_>) -> Result<bool, Error> {
    Ok(op.node.float("alpha")?.is_some_and(|alpha| alpha != 1.0))
}

/// Two products and a sum for each element that is rotated. With positions, only their rows of the caches are read.
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
            work = work.touched(cache, rows.min(op.bytes(cache)?));
        }
    }
    Ok(work)
}
