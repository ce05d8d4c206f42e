//! Quantization and back.

use super::elementwise::REQUANTIZE;
use super::operator::{Count, Operator, times};
use super::{Class, Geometry, Rule};
use divi_onnx::Error;

pub(super) fn rule(op: &str) -> Option<(Class, Rule)> {
    Some(match op {
        // Divide, round, saturate; add the zero point if there is one.
        "QuantizeLinear" => (Class::Elementwise, |op| op.each(REQUANTIZE - 1 + u64::from(op.has(2)))),
        "DequantizeLinear" => (Class::Elementwise, dequantize),
        "DynamicQuantizeLinear" => (Class::Normalization, dynamic_quantize),
        _ => return None,
    })
}

/// The product with the scale, and the difference from the zero point if there is one.
fn dequantize(op: &Operator<'_>) -> Result<Count, Error> {
    let count = op.each(1 + u64::from(op.has(2)))?;
    let dtype = op.results.first().map_or(count.dtype, |result| result.dtype);
    Ok(count.dtype(dtype))
}

/// Minimum and maximum of everything first.
fn dynamic_quantize(op: &Operator<'_>) -> Result<Count, Error> {
    let inner = op.count(0)?;
    Ok(op.does(times(&[inner, 2 + REQUANTIZE]), Geometry::Reduce { outer: 1, inner }))
}
