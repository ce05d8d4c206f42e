//! Work of matrix products and operators composed of them.

pub(super) mod attention;
pub(super) mod einsum;

use super::Geometry;
use super::elementwise::REQUANTIZE;
use super::operator::{Count, Operator, plus, times};
use divi_onnx::Error;

/// Counts a multiplication and an addition per step of each dot product, and `extra` operations.
fn products(op: &Operator<'_>, [count, rows, columns, depth]: [u64; 4], extra: u64) -> Count {
    let flops = times(&[2, count, rows, columns, depth]);
    op.does(plus(&[flops, extra]), Geometry::Product { count, rows, columns, depth })
}

/// Counts the product of operand 0 and `right`. Matrices of the left-hand side that share a right-hand side along the innermost
/// batch axes count as one matrix with all their rows.
pub(super) fn matmul(op: &Operator<'_>, right: usize) -> Result<Count, Error> {
    let (a, b) = (op.dims(0)?, op.dims(right)?);
    let (a_batch, rows, depth) = match &a[..] {
        [batch @ .., rows, depth] => (batch, *rows, *depth),
        [depth] => (&[][..], 1, *depth),
        [] => return Err(op.wrong(0, "a vector or a matrix")),
    };
    let (b_batch, columns) = match &b[..] {
        [batch @ .., _, columns] => (batch, *columns),
        [_] => (&[][..], 1),
        [] => return Err(op.wrong(right, "a vector or a matrix")),
    };
    let rank = a_batch.len().max(b_batch.len());
    // Axes are counted from the innermost; missing ones have size 1.
    let at = |batch: &[u64], axis: usize| batch.len().checked_sub(axis + 1).map_or(1, |index| batch[index]);
    let shared = (0..rank).take_while(|&axis| at(b_batch, axis) == 1).count();
    let size = |axis: usize| match (at(a_batch, axis), at(b_batch, axis)) {
        (1, size) => size,
        (size, _) => size,
    };
    let sizes: Vec<u64> = (0..rank).map(size).collect();
    let (inner, outer) = sizes.split_at(shared);
    Ok(products(op, [times(outer), times(&[times(inner), rows]), columns, depth], 0))
}

/// Counts `QLinearMatMul`. Zero points only add terms of lower order, which are not counted.
pub(super) fn qlinear_matmul(op: &Operator<'_>) -> Result<Count, Error> {
    let mut count = matmul(op, 3)?;
    count.flops = plus(&[count.flops, times(&[REQUANTIZE, op.result_count(0)?])]);
    Ok(count)
}

/// Counts `Gemm`: the product, an addition per element for C, and multiplications for scales other than 1.
pub(super) fn gemm(op: &Operator<'_>) -> Result<Count, Error> {
    let matrix = |operand: usize, transposed: &str| {
        let dims = op.dims(operand)?;
        match (&dims[..], op.node.flag(transposed, false)?) {
            (&[rows, columns], false) | (&[columns, rows], true) => Ok((rows, columns)),
            _ => Err(op.wrong(operand, "a matrix")),
        }
    };
    let ((rows, depth), (_, columns)) = (matrix(0, "transA")?, matrix(1, "transB")?);
    let scales = |name: &str| Ok(op.node.float(name)?.is_some_and(|scale| scale != 1.0));
    let results = times(&[rows, columns]);
    let mut extra = if scales("alpha")? { results } else { 0 };
    if op.has(2) {
        let scaled = if scales("beta")? { op.count(2)? } else { 0 };
        extra = plus(&[extra, results, scaled]);
    }
    Ok(products(op, [1, rows, columns, depth], extra))
}

/// Counts `Det` by Gaussian elimination: 2n³/3 operations.
pub(super) fn det(op: &Operator<'_>) -> Result<Count, Error> {
    let dims = op.dims(0)?;
    let [batch @ .., rows, _] = &dims[..] else { return Err(op.wrong(0, "a square matrix")) };
    let flops = times(&[times(batch), times(&[2, *rows, *rows, *rows]) / 3]);
    Ok(op.does(flops, Geometry::Reduce { outer: times(batch), inner: times(&[*rows, *rows]) }))
}
