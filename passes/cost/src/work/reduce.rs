//! Reductions, running sums and selections along an axis.

use super::Geometry;
use super::operator::{Count, Operator, levels, plus, times};
use divi_onnx::{Error, node::normalize_axis};

/// `each` operations an element of the operand, `last` for each result.
pub(super) fn reduce(op: &Operator<'_>, each: u64, last: u64) -> Result<Count, Error> {
    let (count, outer) = (op.count(0)?, op.result_count(0)?);
    let flops = plus(&[times(&[count, each]), times(&[outer, last])]);
    Ok(op.does(flops, Geometry::Reduce { outer, inner: count.checked_div(outer).unwrap_or(0) }))
}

/// Rows along `axis` and the elements of each.
fn rows(op: &Operator<'_>, axis: i64) -> Result<(u64, u64), Error> {
    let dims = op.dims(0)?;
    let axis = normalize_axis(axis, dims.len())?;
    Ok((times(&[times(&dims[..axis]), times(&dims[axis + 1..])]), dims[axis]))
}

/// One operation an element. Where the axis is not known, everything counts as one row.
pub(super) fn cumulate(op: &Operator<'_>) -> Result<Count, Error> {
    let (outer, inner) = match op.node.int_of(1) {
        Some(axis) => rows(op, axis)?,
        None => (1, op.count(0)?),
    };
    Ok(op.does(op.count(0)?, Geometry::Reduce { outer, inner }))
}

/// An estimate: a heap of the k best, with which each element is compared, and through which it sinks.
pub(super) fn top_k(op: &Operator<'_>) -> Result<Count, Error> {
    let (outer, inner) = rows(op, op.node.int_or("axis", -1)?)?;
    let k = op.result_count(0)?.checked_div(outer).unwrap_or(0);
    Ok(op.does(times(&[outer, inner, plus(&[1, levels(k)])]), Geometry::Reduce { outer, inner }))
}
