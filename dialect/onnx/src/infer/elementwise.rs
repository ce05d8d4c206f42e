//! Elementwise operators, with numpy broadcasting if they have several operands.

use super::{Types, single_result};
use crate::{
    DType, Error, Node, TensorType, Value,
    shape::{broadcast, broadcasts_to},
};

/// Infers one result with the type of the first operand.
pub(super) fn same_as_first(node: &Node<'_>) -> Types {
    single_result(node.input(0)?.ty.clone())
}

/// Returns the broadcast of the operands' shapes with element type `dtype`.
fn broadcast_all(dtype: DType, operands: &[&Value]) -> Result<TensorType, Error> {
    let mut shape = Some(vec![]);
    for operand in operands {
        shape = match (shape, &operand.ty.shape) {
            (Some(a), Some(b)) => Some(broadcast(&a, b)?),
            _ => None,
        };
    }
    Ok(TensorType::new(dtype, shape))
}

/// Returns the common element type of the operands.
fn same_dtype(operands: &[&Value]) -> Result<DType, Error> {
    let [first, rest @ ..] = operands else {
        return Err(Error::new("needs at least one operand"));
    };
    match rest.iter().find(|operand| operand.ty.dtype != first.ty.dtype) {
        Some(other) => Err(Error::new(format!(
            "operands must have one element type, these have {} and {}: insert a Cast",
            first.ty.dtype, other.ty.dtype
        ))),
        None => Ok(first.ty.dtype),
    }
}

pub(super) fn arithmetic(node: &Node<'_>) -> Types {
    let operands = [node.input(0)?, node.input(1)?];
    single_result(broadcast_all(same_dtype(&operands)?, &operands)?)
}

pub(super) fn variadic(node: &Node<'_>) -> Types {
    let operands = node.operands()?;
    single_result(broadcast_all(same_dtype(&operands)?, &operands)?)
}

pub(super) fn comparison(node: &Node<'_>) -> Types {
    let operands = [node.input(0)?, node.input(1)?];
    same_dtype(&operands)?;
    single_result(broadcast_all(DType::Bool, &operands)?)
}

pub(super) fn predicate(node: &Node<'_>) -> Types {
    single_result(TensorType::new(DType::Bool, node.input(0)?.ty.shape.clone()))
}

/// Infers `Pow`. The exponent may have another element type; the result has that of the base.
pub(super) fn pow(node: &Node<'_>) -> Types {
    single_result(broadcast_all(node.dtype(0)?, &[node.input(0)?, node.input(1)?])?)
}

/// Infers `PRelu`. The slope broadcasts to the operand, but not vice versa.
pub(super) fn prelu(node: &Node<'_>) -> Types {
    let operands = [node.input(0)?, node.input(1)?];
    same_dtype(&operands)?;
    if let [Some(data), Some(slope)] = operands.map(|operand| operand.ty.shape.as_ref()) {
        broadcasts_to(slope, data)?;
    }
    single_result(operands[0].ty.clone())
}

pub(super) fn where_(node: &Node<'_>) -> Types {
    let branches = [node.input(1)?, node.input(2)?];
    let dtype = same_dtype(&branches)?;
    if node.dtype(0)? != DType::Bool {
        return Err(Error::new(format!("the condition must be bool, is {}: insert a Cast", node.dtype(0)?)));
    }
    single_result(broadcast_all(dtype, &[node.input(0)?, branches[0], branches[1]])?)
}

pub(super) fn cast(node: &Node<'_>) -> Types {
    let to = node.dtype_attr("to")?.ok_or_else(|| Error::new("needs the attribute 'to', an element type"))?;
    single_result(TensorType::new(to, node.input(0)?.ty.shape.clone()))
}

pub(super) fn cast_like(node: &Node<'_>) -> Types {
    single_result(TensorType::new(node.dtype(1)?, node.input(0)?.ty.shape.clone()))
}

#[cfg(test)]
mod tests {
    use super::super::testing::Case;

    #[test]
    fn unary_preserves_type() {
        Case::new("Relu").input("float[?x3]").infers(&["float[?x3]"]);
        Case::new("Not").input("bool[*]").infers(&["bool[*]"]);
    }

    #[test]
    fn arithmetic_broadcasts() {
        Case::new("Add").input("float[4x1]").input("float[3]").infers(&["float[4x3]"]);
        Case::new("Add").input("float[4x1]").input("float[*]").infers(&["float[*]"]);
        Case::new("Add").input("float[2]").input("int64[2]").fails("insert a Cast");
        Case::new("Mul").input("float[2]").input("float[3]").fails("do not broadcast");
    }

    #[test]
    fn variadic_broadcasts_all() {
        Case::new("Max").input("float[4x1]").input("float[3]").input("float[]").infers(&["float[4x3]"]);
        Case::new("Sum").input("float[2]").infers(&["float[2]"]);
        Case::new("Mean").fails("at least one operand");
    }

    #[test]
    fn comparisons_are_bool() {
        Case::new("Less").input("int64[4x1]").input("int64[3]").infers(&["bool[4x3]"]);
        Case::new("IsNaN").input("float[2x2]").infers(&["bool[2x2]"]);
    }

    #[test]
    fn pow_has_the_type_of_its_base() {
        Case::new("Pow").input("float[2x3]").input("int64[]").infers(&["float[2x3]"]);
    }

    #[test]
    fn prelu_has_the_shape_of_its_operand() {
        Case::new("PRelu").input("float[2x3]").input("float[3]").infers(&["float[2x3]"]);
        Case::new("PRelu").input("float[2]").input("float[3x2]").fails("does not broadcast");
    }

    #[test]
    fn where_broadcasts_three_operands() {
        Case::new("Where").input("bool[2x1]").input("float[3]").input("float[]").infers(&["float[2x3]"]);
        Case::new("Where").input("int64[2]").input("float[2]").input("float[2]").fails("must be bool");
    }

    #[test]
    fn casts_change_the_element_type() {
        Case::new("Cast").input("float[2]").int("to", 7).infers(&["int64[2]"]);
        Case::new("Cast").input("float[2]").fails("needs the attribute 'to'");
        Case::new("Cast").input("float[2]").int("to", 77).fails("not an ONNX element type");
        Case::new("CastLike").input("float[2]").input("int8[]").infers(&["int8[2]"]);
    }
}
