//! Work of operators on images. All counts are estimates: implementations differ in the values that they recompute per element.

use super::operator::{Count, Operator, bytes, plus, times};
use super::{Class, Geometry};
use divi_onnx::Error;

/// Returns the number of elements along one axis that an interpolation reads; `None` for nearest-neighbor modes.
fn support(op: &Operator<'_>, default: &'static str) -> Result<Option<u64>, Error> {
    Ok(match op.node.str_or("mode", default)? {
        "linear" | "bilinear" => Some(2),
        "cubic" | "bicubic" => Some(4),
        _ => None,
    })
}

/// Counts `Resize`: a copy of the nearest element, or the weighted mean of a window over the axes that change, which is wider
/// when downscaling with antialiasing.
pub(super) fn resize(op: &Operator<'_>) -> Result<Count, Error> {
    let (x, y) = (op.dims(0)?, op.result_dims(0)?);
    if x.len() != y.len() {
        return Err(op.wrong(0, "of the result's rank"));
    }
    let outer = times(&y);
    let read_bytes = |count: Count, taps| -> Result<Count, Error> {
        let read = bytes(op.node.dtype(0)?, times(&[outer, taps])).min(op.bytes(0)?);
        Ok(count.read_bytes(0, read))
    };
    let Some(support) = support(op, "nearest")? else {
        return read_bytes(op.does(0, Geometry::Elements { count: outer }), 1);
    };
    let antialias = op.node.flag("antialias", false)?;
    let window = |(&before, &after): (&u64, &u64)| match (before, after) {
        (before, after) if before == after => 1,
        (before, after @ 1..) if antialias && after < before => {
            // The product of two sizes may overflow 64 bits.
            let wide = (u128::from(support) * u128::from(before)).div_ceil(after.into());
            u64::try_from(wide).unwrap_or(u64::MAX)
        }
        _ => support,
    };
    let inner = times(&x.iter().zip(&y).map(window).collect::<Vec<_>>());
    let count = op.does(times(&[2, outer, inner]), Geometry::Reduce { outer, inner });
    read_bytes(count.class(Class::AveragePool), inner)
}

/// Counts `GridSample`: a product and a sum per coordinate of each point, and the weighted mean of a window per channel.
pub(super) fn grid_sample(op: &Operator<'_>) -> Result<Count, Error> {
    let axes = op.dims(1)?.last().copied().ok_or_else(|| op.wrong(1, "a grid of points"))?;
    let taps = match support(op, "linear")? {
        Some(support) => support.saturating_pow(axes.try_into().unwrap_or(u32::MAX)),
        None => 1,
    };
    let count = op.result_count(0)?;
    let mean = if taps == 1 { 0 } else { times(&[2, taps]) };
    let flops = plus(&[times(&[2, op.count(1)?]), times(&[count, mean])]);
    let read = bytes(op.node.dtype(0)?, times(&[count, taps])).min(op.bytes(0)?);
    Ok(op.does(flops, Geometry::Reduce { outer: count, inner: taps }).read_bytes(0, read))
}

/// Counts `AffineGrid`: each coordinate is a row of the matrix times the point in homogeneous coordinates.
pub(super) fn affine_grid(op: &Operator<'_>) -> Result<Count, Error> {
    let axes = op.result_dims(0)?.last().copied().unwrap_or(0);
    op.each(times(&[2, axes]))
}

/// Counts `RoiAlign`: each element is the mean or the maximum of samples, each interpolated between four corners. If the number
/// of samples depends on the regions, two per direction are assumed.
pub(super) fn roi_align(op: &Operator<'_>) -> Result<Count, Error> {
    let ratio = match op.node.int_or("sampling_ratio", 0)? {
        ratio @ 1.. => ratio.unsigned_abs(),
        _ => 2,
    };
    let (outer, inner) = (op.result_count(0)?, times(&[ratio, ratio, 4]));
    let read = bytes(op.node.dtype(0)?, times(&[outer, inner])).min(op.bytes(0)?);
    let flops = times(&[outer, plus(&[times(&[2, inner]), 1])]);
    Ok(op.does(flops, Geometry::Reduce { outer, inner }).read_bytes(0, read))
}
