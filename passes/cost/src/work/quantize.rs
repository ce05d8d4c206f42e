//! Quantization and back.

use super::Geometry;
use super::elementwise::REQUANTIZE;
use super::operator::{Count, Operator, times};
use divi_onnx::Error;

/// The product with the scale, and the difference from the zero point if there is one.
pub(super) fn dequantize(op: &Operator<'_>) -> Result<Count, Error> {
    let count = op.each(1 + u64::from(op.has(2)))?;
    let dtype = op.results.first().map_or(count.dtype, |result| result.dtype);
    Ok(count.dtype(dtype))
}

/// Minimum and maximum of everything first.
pub(super) fn dynamic_quantize(op: &Operator<'_>) -> Result<Count, Error> {
    let inner = op.count(0)?;
    Ok(op.does(times(&[inner, 2 + REQUANTIZE]), Geometry::Reduce { outer: 1, inner }))
}
