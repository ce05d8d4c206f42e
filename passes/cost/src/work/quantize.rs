//! Work of quantization and dequantization.

use super::Geometry;
use super::elementwise::REQUANTIZE;
use super::operator::{Count, Operator, times};
use divi_onnx::Error;

/// Counts `DequantizeLinear`: the product with the scale, and the optional difference from the zero point.
pub(super) fn dequantize(op: &Operator<'_>) -> Result<Count, Error> {
    let count = op.each(1 + u64::from(op.has(2)))?;
    let dtype = op.results.first().map_or(count.dtype, |result| result.dtype);
    Ok(count.dtype(dtype))
}

/// Counts `DynamicQuantizeLinear`: minimum and maximum of all elements, then quantization.
pub(super) fn dynamic_quantize(op: &Operator<'_>) -> Result<Count, Error> {
    let inner = op.count(0)?;
    Ok(op.does(times(&[inner, 2 + REQUANTIZE]), Geometry::Reduce { outer: 1, inner }))
}
