//! Matrix multiplication and related operators as plain loops.

mod det;
mod einsum;

use super::{
    Lower,
    blocks::{ContractionOperand, accumulator, contract, view},
    conv::{centered, requantize},
    elementwise::map,
};
use crate::{
    error::{Result, unsupported},
    graph::{Id, Node, broadcast_strides, strides},
    lowering::Lowering,
};
use divi_onnx::{DType, Op};

pub(super) fn find(op: Op) -> Option<Lower> {
    Some(match op {
        Op::MatMul => |cx, node| multiply(cx, node.input(0)?, node.input(1)?, node.output()?),
        Op::MatMulInteger => matmul_integer,
        Op::QLinearMatMul => qlinear_matmul,
        Op::Gemm => gemm,
        Op::Einsum => einsum::einsum,
        Op::Det => det::det,
        _ => return None,
    })
}

/// Lowers NumPy's matrix multiplication: a vector is a row on the left and a column on the right; all other axes are broadcast.
pub(super) fn multiply(cx: &mut Lowering<'_>, x: Id, y: Id, result: Id) -> Result<()> {
    let (mut left, mut right) = (cx.shape(x).to_vec(), cx.shape(y).to_vec());
    if left.is_empty() || right.is_empty() {
        return unsupported("operands must have rank 1 or more");
    }
    if left.len() == 1 {
        left.insert(0, 1);
    }
    if right.len() == 1 {
        right.push(1);
    }
    let (left_batch, left_matrix) = left.split_at(left.len() - 2);
    let (right_batch, right_matrix) = right.split_at(right.len() - 2);
    let rank = left_batch.len().max(right_batch.len());
    let at = |batch: &[i64], axis: usize| (axis + batch.len()).checked_sub(rank).map_or(1, |axis| batch[axis]);
    let batch: Vec<_> = (0..rank)
        .map(|axis| match (at(left_batch, axis), at(right_batch, axis)) {
            (1, size) | (size, _) => size,
        })
        .collect();
    let steps = |own: &[i64], matrix: &[i64]| -> Vec<i64> {
        let size: i64 = matrix.iter().product();
        broadcast_strides(own, &batch).iter().map(|step| step * size).collect()
    };
    let (rows, depth, columns) = (left_matrix[0], left_matrix[1], right_matrix[1]);
    let factors = [
        ContractionOperand {
            id: x,
            steps: [steps(left_batch, left_matrix), vec![depth, 0]].concat(),
            depth_steps: vec![1],
        },
        ContractionOperand {
            id: y,
            steps: [steps(right_batch, right_matrix), vec![0, 1]].concat(),
            depth_steps: vec![columns],
        },
    ];
    let shape = [batch, vec![rows, columns]].concat();
    contract(cx, &factors, &shape, &[depth], result);
    Ok(())
}

fn gemm(cx: &mut Lowering<'_>, node: &Node) -> Result<()> {
    let (x, y, result) = (node.input(0)?, node.input(1)?, node.output()?);
    let attributes = node.attributes();
    let (alpha, beta) = (attributes.float("alpha")?.unwrap_or(1.0), attributes.float("beta")?.unwrap_or(1.0));
    let steps_of = |id: Id, flag: &str| -> Result<[i64; 2]> {
        let steps = strides(cx.shape(id));
        Ok(if attributes.flag(flag, false)? { [steps[1], steps[0]] } else { [steps[0], steps[1]] })
    };
    let (x_steps, y_steps) = (steps_of(x, "transA")?, steps_of(y, "transB")?);
    let depth = cx.shape(x)[usize::from(!attributes.flag("transA", false)?)];
    let shape = cx.shape(result).to_vec();
    let factors = [
        ContractionOperand { id: x, steps: vec![x_steps[0], 0], depth_steps: vec![x_steps[1]] },
        ContractionOperand { id: y, steps: vec![0, y_steps[1]], depth_steps: vec![y_steps[0]] },
    ];
    let addend = node.optional(2).filter(|_| beta != 0.0);
    if alpha == 1.0 && addend.is_none() {
        contract(cx, &factors, &shape, &[depth], result);
        return Ok(());
    }
    let dtype = cx.dtype(result);
    let products = cx.temporary(accumulator(dtype), &shape);
    contract(cx, &factors, &shape, &[depth], products);
    let operands: Vec<_> = [products].into_iter().chain(addend).collect();
    map(cx, &operands, result, |b, values| {
        // Alpha and beta are floating-point numbers also for integer matrices.
        let scaled = |value, by: f32| match by {
            1.0 => value,
            _ if dtype.is_float() => b.mul(value, b.float(by.into(), b.type_of(value))),
            _ => {
                let wide = b.int_to_float(value, b.f64(), dtype.is_unsigned_int());
                let product = b.mul(wide, b.float(by.into(), b.f64()));
                b.float_to_int(product, b.type_of(value), dtype.is_unsigned_int())
            }
        };
        let product = scaled(values[0], alpha);
        values.get(1).map_or(product, |&addend| b.add(product, scaled(addend, beta)))
    });
    Ok(())
}

/// Returns a view of a scale or zero point, a scalar or one element per row, that broadcasts to the matrix `of`.
fn by_row(cx: &mut Lowering<'_>, id: Id, of: Id) -> Id {
    match *cx.shape(id) {
        [count] if count > 1 && cx.shape(of).len() > 1 => view(cx, id, &[count, 1]),
        [1] => view(cx, id, &[]),
        _ => id,
    }
}

/// Returns a view of a scale or zero point, a scalar or one element per column, that broadcasts to a matrix.
fn by_column(cx: &mut Lowering<'_>, id: Id) -> Id {
    if *cx.shape(id) == [1] { view(cx, id, &[]) } else { id }
}

fn matmul_integer(cx: &mut Lowering<'_>, node: &Node) -> Result<()> {
    let (x, y) = (node.input(0)?, node.input(1)?);
    let x_zero_point = node.optional(2).map(|id| by_row(cx, id, x));
    let y_zero_point = node.optional(3).map(|id| by_column(cx, id));
    let x = centered(cx, x, x_zero_point)?;
    let y = centered(cx, y, y_zero_point)?;
    multiply(cx, x, y, node.output()?)
}

fn qlinear_matmul(cx: &mut Lowering<'_>, node: &Node) -> Result<()> {
    let (a, a_scale, a_zero_point) = (node.input(0)?, node.input(1)?, node.input(2)?);
    let (b, b_scale, b_zero_point) = (node.input(3)?, node.input(4)?, node.input(5)?);
    let (scale, zero_point, result) = (node.input(6)?, node.input(7)?, node.output()?);
    let [a_scale, a_zero_point, scale, zero_point] =
        [a_scale, a_zero_point, scale, zero_point].map(|id| by_row(cx, id, a));
    let [b_scale, b_zero_point] = [b_scale, b_zero_point].map(|id| by_column(cx, id));
    let a = centered(cx, a, Some(a_zero_point))?;
    let b = centered(cx, b, Some(b_zero_point))?;
    let shape = cx.shape(result).to_vec();
    let sums = cx.temporary(DType::I32, &shape);
    multiply(cx, a, b, sums)?;
    requantize(cx, sums, [a_scale, b_scale, scale, zero_point], result)
}

#[cfg(test)]
mod tests;
