//! Work of normalizations and softmax.

use super::elementwise::{EXP, LOG, POW};
use super::operator::{Count, Operator, plus, times};
use super::{Class, Geometry};
use divi_onnx::{Error, node::normalize_axes, node::normalize_axis};

/// Operations of a softmax per element: maximum, difference from it, exponential, sum, product with the sum's reciprocal.
pub(super) const SOFTMAX_EACH: u64 = EXP + 4;
/// Operations of a softmax per row: the reciprocal.
pub(super) const SOFTMAX_ROW: u64 = 1;

/// Operations of a normalization by mean and variance per element: sum, difference from the mean, square, sum of squares,
/// product with the deviation's reciprocal.
pub(super) const MOMENTS_EACH: u64 = 5;
/// Operations of a normalization by mean and variance per row: two divisions by the number of elements, epsilon, root,
/// reciprocal.
pub(super) const MOMENTS_ROW: u64 = 5;
/// Operations of an RMS normalization per element: square, sum, product with the reciprocal.
pub(super) const RMS_EACH: u64 = 3;
/// Operations of an RMS normalization per row: division, epsilon, root, reciprocal.
pub(super) const RMS_ROW: u64 = 4;

/// Counts `each` operations per element of operand 0 and `row` operations for each of its `outer` rows.
fn rows(op: &Operator<'_>, outer: u64, each: u64, row: u64) -> Result<Count, Error> {
    let count = op.count(0)?;
    let flops = plus(&[times(&[count, each]), times(&[outer, row])]);
    Ok(op.does(flops, Geometry::Reduce { outer, inner: count.checked_div(outer).unwrap_or(0) }))
}

/// Counts `BatchNormalization`: one scale and one shift per channel for fixed statistics. In training, the statistics of the
/// batch, scale and shift, and two running averages of two products and a sum each.
pub(super) fn batch_normalization(op: &Operator<'_>) -> Result<Count, Error> {
    if !op.node.flag("training_mode", false)? {
        return op.each(2);
    }
    let channels = op.dims(0)?.get(1).copied().unwrap_or(1);
    Ok(rows(op, channels, MOMENTS_EACH + 2, MOMENTS_ROW + 6)?.class(Class::Normalization))
}

pub(super) fn instance_normalization(op: &Operator<'_>) -> Result<Count, Error> {
    let dims = op.dims(0)?;
    rows(op, times(&dims[..dims.len().min(2)]), MOMENTS_EACH + 2, MOMENTS_ROW)
}

pub(super) fn group_normalization(op: &Operator<'_>) -> Result<Count, Error> {
    let images = op.dims(0)?.first().copied().unwrap_or(1);
    let groups = op.node.int("num_groups")?.ok_or_else(|| Error::new("needs the attribute 'num_groups'"))?;
    rows(op, times(&[images, groups.max(1).unsigned_abs()]), MOMENTS_EACH + 2, MOMENTS_ROW)
}

/// Counts a normalization over all axes from the attribute 'axis' on, with optional scale and shift.
pub(super) fn from_axis(op: &Operator<'_>, each: u64, row: u64) -> Result<Count, Error> {
    let dims = op.dims(0)?;
    let axis = normalize_axis(op.node.int_or("axis", -1)?, dims.len())?;
    rows(op, times(&dims[..axis]), each + u64::from(op.has(1)) + u64::from(op.has(2)), row)
}

pub(super) fn mean_variance_normalization(op: &Operator<'_>) -> Result<Count, Error> {
    let dims = op.dims(0)?;
    let axes = normalize_axes(op.node.ints("axes")?.unwrap_or(&[0, 2, 3]), dims.len())?;
    let kept = dims.iter().enumerate().filter(|(axis, _)| !axes.contains(axis)).map(|(_, &size)| size);
    rows(op, times(&kept.collect::<Vec<_>>()), MOMENTS_EACH, MOMENTS_ROW)
}

pub(super) fn along_axis(op: &Operator<'_>, each: u64, row: u64) -> Result<Count, Error> {
    let dims = op.dims(0)?;
    let axis = normalize_axis(op.node.int_or("axis", -1)?, dims.len())?;
    rows(op, times(&[times(&dims[..axis]), times(&dims[axis + 1..])]), each, row)
}

/// Counts `LRN`, per element: a square, the sum over `size` channels, a scale and a shift, a power and a quotient.
pub(super) fn lrn(op: &Operator<'_>) -> Result<Count, Error> {
    let (outer, inner) = (op.count(0)?, op.node.int_or("size", 1)?.max(1).unsigned_abs());
    let each = plus(&[1, inner, 2, POW, 1]);
    Ok(op.does(times(&[outer, each]), Geometry::Reduce { outer, inner }))
}

/// Counts `SoftmaxCrossEntropyLoss`: a log-softmax over the classes, the second axis; per sample the optionally weighted score
/// of its class, and the sum.
pub(super) fn cross_entropy(op: &Operator<'_>) -> Result<Count, Error> {
    let samples = op.count(1)?;
    rows(op, samples, SOFTMAX_EACH, LOG + 1 + u64::from(op.has(2)))
}
