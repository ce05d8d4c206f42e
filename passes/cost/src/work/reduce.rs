//! Work of reductions, cumulative operators and selections along an axis.

use super::Geometry;
use super::operator::{Count, Operator, levels, plus, times};
use divi_onnx::{Error, node::normalize_axis};

/// Counts `each` operations per element of the operand and `last` per result.
pub(super) fn reduce(op: &Operator<'_>, each: u64, last: u64) -> Result<Count, Error> {
    let (count, outer) = (op.count(0)?, op.result_count(0)?);
    let flops = plus(&[times(&[count, each]), times(&[outer, last])]);
    Ok(op.does(flops, Geometry::Reduce { outer, inner: count.checked_div(outer).unwrap_or(0) }))
}

/// Returns the number of rows along `axis` and the elements of each.
fn rows(op: &Operator<'_>, axis: i64) -> Result<(u64, u64), Error> {
    let dims = op.dims(0)?;
    let axis = normalize_axis(axis, dims.len())?;
    Ok((times(&[times(&dims[..axis]), times(&dims[axis + 1..])]), dims[axis]))
}

/// Counts `CumSum` and `CumProd`: one operation per element. If the axis is unknown, all elements count as one row.
pub(super) fn cumulate(op: &Operator<'_>) -> Result<Count, Error> {
    let (outer, inner) = match op.node.int_of(1) {
        Some(axis) => rows(op, axis)?,
        None => (1, op.count(0)?),
    };
    Ok(op.does(op.count(0)?, Geometry::Reduce { outer, inner }))
}

/// Estimates `TopK` by a heap of the k largest elements: each element is compared and sifted down.
pub(super) fn top_k(op: &Operator<'_>) -> Result<Count, Error> {
    let (outer, inner) = rows(op, op.node.int_or("axis", -1)?)?;
    let k = op.result_count(0)?.checked_div(outer).unwrap_or(0);
    Ok(op.does(times(&[outer, inner, plus(&[1, levels(k)])]), Geometry::Reduce { outer, inner }))
}
