//! Matrix products and determinants.

pub(super) mod einsum;

use super::{Types, single_result};
use crate::shape::{broadcast, broadcasts_to, format_shape};
use crate::{DType, Dim, Error, Node, Shape, TensorType};

/// Returns the shape of numpy's matrix product: a vector is a row on the left and a column on the right, and its additional
/// axis is removed from the result.
fn multiplied(node: &Node<'_>, a: usize, b: usize) -> Result<Option<Shape>, Error> {
    let (a, b) = (node.input(a)?, node.input(b)?);
    let (Some(x), Some(y)) = (&a.ty.shape, &b.ty.shape) else { return Ok(None) };
    let ([x_batch @ .., depth], [.., y_last]) = (&x[..], &y[..]) else {
        return Err(Error::new(format!("multiplies vectors and matrices, not scalars: has {} and {}", a.ty, b.ty)));
    };
    let (x_batch, rows) = x_batch.split_last().map_or((&[][..], None), |(rows, batch)| (batch, Some(*rows)));
    let (y_batch, y_depth, columns) = match &y[..] {
        [batch @ .., depth, columns] => (batch, depth, Some(*columns)),
        _ => (&[][..], y_last, None),
    };
    if depth.unify(*y_depth).is_none() {
        return Err(Error::new(format!(
            "the columns of the first operand must match the rows of the second, are {depth} and {y_depth} (in {} and {})",
            format_shape(x),
            format_shape(y)
        )));
    }
    let mut shape = broadcast(x_batch, y_batch)?;
    shape.extend(rows);
    shape.extend(columns);
    Ok(Some(shape))
}

pub(super) fn matmul(node: &Node<'_>) -> Types {
    single_result(TensorType::new(node.same_dtype(&[0, 1])?, multiplied(node, 0, 1)?))
}

pub(super) fn matmul_integer(node: &Node<'_>) -> Types {
    node.same_dtype(&[0, 2])?;
    node.same_dtype(&[1, 3])?;
    single_result(TensorType::new(DType::I32, multiplied(node, 0, 1)?))
}

/// Infers `QLinearMatMul`. The result has the element type of its zero point.
pub(super) fn qlinear_matmul(node: &Node<'_>) -> Types {
    node.same_dtype(&[0, 2])?;
    node.same_dtype(&[3, 5])?;
    single_result(TensorType::new(node.dtype(7)?, multiplied(node, 0, 3)?))
}

pub(super) fn gemm(node: &Node<'_>) -> Types {
    let dtype = node.same_dtype(&[0, 1, 2])?;
    node.input(1)?;
    let mut a = node.expect_shape(0, &[Dim::Unknown; 2])?;
    let mut b = node.expect_shape(1, &[Dim::Unknown; 2])?;
    if node.flag("transA", false)? {
        a.reverse();
    }
    if node.flag("transB", false)? {
        b.reverse();
    }
    if a[1].unify(b[0]).is_none() {
        return Err(Error::new(format!(
            "the columns of A must match the rows of B, are {} and {}: check transA and transB",
            a[1], b[0]
        )));
    }
    let shape = vec![a[0], b[1]];
    if let Some(c) = node.optional(2).and_then(|c| c.ty.shape.as_ref()) {
        broadcasts_to(c, &shape).map_err(|error| Error::new(format!("C does not match A * B: {error}")))?;
    }
    single_result(TensorType::new(dtype, shape))
}

pub(super) fn det(node: &Node<'_>) -> Types {
    let shape = match node.shape(0)? {
        None => None,
        Some([batch @ .., rows, columns]) if rows.unify(*columns).is_some() => Some(batch.to_vec()),
        Some(_) => return Err(Error::new(format!("needs square matrices, has {}", node.input(0)?.ty))),
    };
    single_result(TensorType::new(node.dtype(0)?, shape))
}

#[cfg(test)]
mod tests {
    use super::super::testing::Case;

    fn two(op: &'static str, a: &str, b: &str) -> Case {
        Case::new(op).input(a).input(b)
    }

    #[test]
    fn matmul_follows_numpy() {
        two("MatMul", "float[3x4]", "float[4x3]").infers(&["float[3x3]"]);
        two("MatMul", "float[NxSx64]", "float[64x32]").infers(&["float[NxSx32]"]);
        two("MatMul", "float[Nx1x3x4]", "float[5x4x2]").infers(&["float[Nx5x3x2]"]);
        two("MatMul", "float[4]", "float[2x4x3]").infers(&["float[2x3]"]);
        two("MatMul", "float[2x3x4]", "float[4]").infers(&["float[2x3]"]);
        two("MatMul", "float[4]", "float[4]").infers(&["float[]"]);
        two("MatMul", "float[*]", "float[4]").infers(&["float[*]"]);
        two("MatMul", "float[3x4]", "float[3x4]").fails("are 4 and 3");
        two("MatMul", "float[]", "float[4]").fails("not scalars");
        two("MatMul", "float[2x3x4]", "float[3x4x5]").fails("do not broadcast");
        two("MatMul", "float[4]", "double[4]").fails("insert a Cast");
    }

    #[test]
    fn quantized_products() {
        two("MatMulInteger", "uint8[4x3]", "int8[3x2]").input("uint8[]").infers(&["int32[4x2]"]);
        two("MatMulInteger", "uint8[4x3]", "int8[3x2]").input("int8[]").fails("operands 0 and 2");
        let qlinear = |zero_point| {
            let case = two("QLinearMatMul", "uint8[2x4]", "float[]").input("uint8[]");
            case.input("int8[4x3]").input("float[]").input(zero_point).input("float[]").input("uint8[]")
        };
        qlinear("int8[]").infers(&["uint8[2x3]"]);
        qlinear("uint8[]").fails("operands 3 and 5");
    }

    #[test]
    fn gemm_transposes() {
        two("Gemm", "float[6x3]", "float[6x4]").int("transA", 1).input("float[1x4]").infers(&["float[3x4]"]);
        two("Gemm", "float[Nx6]", "float[4x6]").int("transB", 1).input("float[]").infers(&["float[Nx4]"]);
        two("Gemm", "float[*]", "float[6x4]").infers(&["float[?x4]"]);
        two("Gemm", "float[3x6]", "float[4x6]").fails("check transA and transB");
        two("Gemm", "float[3x6]", "float[6x4]").input("float[3]").fails("C does not match");
        two("Gemm", "float[2x3x6]", "float[6x4]").fails("operand 0 must have shape");
    }

    #[test]
    fn det_removes_the_matrix_axes() {
        Case::new("Det").input("float[Nx3x2x2]").infers(&["float[Nx3]"]);
        Case::new("Det").input("float[2x2]").infers(&["float[]"]);
        Case::new("Det").input("float[2x3]").fails("needs square matrices");
        Case::new("Det").input("float[2]").fails("needs square matrices");
    }
}
