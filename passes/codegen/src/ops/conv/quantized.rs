//! Convolutions of quantized integers.

use super::convolve;
use crate::{
    error::{Result, unsupported},
    graph::{Id, Node},
    lowering::Lowering,
    ops::{
        blocks::{to_float, view},
        elementwise::map,
        quantize::saturate,
    },
};
use divi_onnx::DType;

/// Returns quantized integers minus their zero point, as `int32`.
pub(in crate::ops) fn centered(cx: &mut Lowering<'_>, values: Id, zero_point: Option<Id>) -> Result<Id> {
    let dtype = cx.dtype(values);
    if !dtype.is_int() || dtype.bits() > 32 {
        return unsupported(format!("quantized operands of type {dtype} are not supported; use int8 or uint8"));
    }
    let shape = cx.shape(values).to_vec();
    let centered = cx.temporary(DType::I32, &shape);
    let is_unsigned = dtype.is_unsigned_int();
    let operands: Vec<_> = [values].into_iter().chain(zero_point).collect();
    map(cx, &operands, centered, |b, values| {
        let wide = |value| b.resize(value, b.int(32), is_unsigned);
        match *values {
            [value, zero_point] => b.sub(wide(value), wide(zero_point)),
            _ => wide(values[0]),
        }
    });
    Ok(centered)
}

/// Returns a view of a scalar or vector that broadcasts along the first axis of a tensor.
fn along_first(cx: &mut Lowering<'_>, id: Id, rank: usize) -> Id {
    let mut shape = vec![1; rank];
    shape[0] = cx.count(id);
    view(cx, id, &shape)
}

pub(super) fn conv_integer(cx: &mut Lowering<'_>, node: &Node) -> Result<()> {
    let rank = cx.shape(node.input(0)?).len();
    let x_zero_point = node.optional(2).map(|id| along_first(cx, id, rank));
    let w_zero_point = node.optional(3).map(|id| along_first(cx, id, rank));
    let x = centered(cx, node.input(0)?, x_zero_point)?;
    let w = centered(cx, node.input(1)?, w_zero_point)?;
    convolve(cx, node, x, w, None, node.output()?)
}

pub(super) fn qlinear_conv(cx: &mut Lowering<'_>, node: &Node) -> Result<()> {
    let (x, x_scale, x_zero_point) = (node.input(0)?, node.input(1)?, node.input(2)?);
    let (w, w_scale, w_zero_point) = (node.input(3)?, node.input(4)?, node.input(5)?);
    let (y_scale, y_zero_point, y) = (node.input(6)?, node.input(7)?, node.output()?);
    let shape = cx.shape(y).to_vec();
    let x_zero_point = along_first(cx, x_zero_point, shape.len());
    let w_zero_point = along_first(cx, w_zero_point, shape.len());
    let x = centered(cx, x, Some(x_zero_point))?;
    let w = centered(cx, w, Some(w_zero_point))?;
    let sums = cx.temporary(DType::I32, &shape);
    convolve(cx, node, x, w, node.optional(8), sums)?;
    // Scales of filters broadcast along the second axis of the result.
    let w_scale = along_first(cx, w_scale, shape.len() - 1);
    let scalars = [x_scale, y_scale, y_zero_point].map(|id| view(cx, id, &[]));
    requantize(cx, sums, [scalars[0], w_scale, scalars[1], scalars[2]], y)
}

/// Quantizes sums of products. Scales and zero point are broadcast to the sums.
pub(in crate::ops) fn requantize(
    cx: &mut Lowering<'_>,
    sums: Id,
    [a_scale, b_scale, scale, zero_point]: [Id; 4],
    y: Id,
) -> Result<()> {
    let dtype = cx.dtype(y);
    if !dtype.is_int() {
        return unsupported(format!("quantized results of type {dtype} are not supported; use int8 or uint8"));
    }
    let scales = cx.dtype(scale);
    map(cx, &[sums, a_scale, b_scale, scale, zero_point], y, |b, values| {
        let ty = b.computed(scales);
        let factor = b.div(b.mul(values[1], values[2]), values[3], false);
        let value = b.mul(to_float(b, values[0], DType::I32, ty), factor);
        let rounded = b.round_even(value);
        saturate(b, b.add(rounded, to_float(b, values[4], dtype, ty)), dtype)
    });
    Ok(())
}
