//! Work of pooling.

use super::Geometry;
use super::elementwise::POW;
use super::operator::{Count, Operator, plus, times};
use divi_onnx::Error;

/// Counts `each` operations for each of the `inner` elements of a window, and `last` per window. Padding counts as elements.
pub(super) fn windows(op: &Operator<'_>, inner: u64, each: u64, last: u64) -> Result<Count, Error> {
    let outer = op.result_count(0)?;
    let flops = times(&[outer, plus(&[times(&[inner, each]), last])]);
    Ok(op.does(flops, Geometry::Reduce { outer, inner }))
}

/// Returns the number of elements of the window.
pub(super) fn kernel(op: &Operator<'_>) -> Result<u64, Error> {
    let kernel = op.node.ints("kernel_shape")?.ok_or_else(|| Error::new("needs the attribute 'kernel_shape'"))?;
    Ok(times(&kernel.iter().map(|size| size.unsigned_abs()).collect::<Vec<_>>()))
}

/// Returns the number of pixels of the operand.
pub(super) fn image(op: &Operator<'_>) -> Result<u64, Error> {
    let dims = op.dims(0)?;
    dims.get(2..).map(times).ok_or_else(|| op.wrong(0, "an image with batch and channels"))
}

/// Returns the operations of an Lp norm per element (power and sum) and per window (root).
fn norm(op: &Operator<'_>) -> Result<(u64, u64), Error> {
    Ok(match op.node.int_or("p", 2)? {
        1 => (2, 0),
        2 => (2, 1),
        _ => (POW + 1, POW),
    })
}

pub(super) fn lp_pool(op: &Operator<'_>) -> Result<Count, Error> {
    let (each, last) = norm(op)?;
    windows(op, kernel(op)?, each, last)
}

pub(super) fn global_lp_pool(op: &Operator<'_>) -> Result<Count, Error> {
    let (each, last) = norm(op)?;
    windows(op, image(op)?, each, last)
}

/// Estimates `MaxRoiPool`: each region is assumed to be the whole image, the maximum.
pub(super) fn max_roi_pool(op: &Operator<'_>) -> Result<Count, Error> {
    let (x, y) = (op.dims(0)?, op.result_dims(0)?);
    let (&[_, _, height, width], &[_, _, rows, columns]) = (&x[..], &y[..]) else {
        return Err(op.wrong(0, "of rank 4"));
    };
    windows(op, times(&[height.div_ceil(rows.max(1)), width.div_ceil(columns.max(1))]), 1, 0)
}
