//! Quantization and dequantization.

use super::{Types, single_result};
use crate::node::normalize_axis;
use crate::{DType, Dim, Error, Node, TensorType, shape::format_shape};

/// Checks the scale's shape, which determines the granularity: per tensor (a scalar or a single element), per axis (a vector)
/// or per block (the data's shape with one element per block along the axis). The zero point has the same shape.
fn check_granularity(node: &Node<'_>) -> Result<(), Error> {
    let may_be_single = |shape: &[Dim]| shape.iter().all(|dim| dim.known().is_none_or(|size| size == 1));
    let Some(scale) = node.shape(1)? else { return Ok(()) };
    let zero_point = node.optional(2).and_then(|zero_point| zero_point.ty.shape.as_deref());
    // ONNX's own tests combine a scalar with a vector of one element.
    if !(may_be_single(scale) && zero_point.is_some_and(may_be_single)) {
        node.expect_shape(2, scale)?;
    }
    let Some(x) = node.shape(0)? else { return Ok(()) };
    let block_size = node.int_or("block_size", 0)?;
    if block_size < 0 {
        return Err(Error::new(format!("attribute 'block_size' must not be negative, is {block_size}")));
    }
    if may_be_single(scale) {
        return Ok(());
    }
    let wrong = |expected: &str| {
        Error::new(format!("the scale of [{}] must be {expected}, is [{}]", format_shape(x), format_shape(scale)))
    };
    // A vector quantized along its only axis needs no 'axis', whose default is out of range for it.
    let axis = if x.len() == 1 { 0 } else { normalize_axis(node.int_or("axis", 1)?, x.len())? };
    if block_size == 0 {
        return match scale {
            [count] if x.get(axis).is_some_and(|dim| dim.unify(*count).is_some()) => Ok(()),
            _ => Err(wrong("a scalar or a vector as long as the axis; set block_size for blocks")),
        };
    }
    let blocks = |dim: Dim| dim.map(|size| size.checked_add(block_size - 1)?.checked_div_euclid(block_size));
    let fits =
        |(i, (x, scale)): (usize, (&Dim, &Dim))| (if i == axis { blocks(*x) } else { *x }).unify(*scale).is_some();
    if x.len() == scale.len() && x.iter().zip(scale).enumerate().all(fits) {
        return Ok(());
    }
    Err(wrong(&format!("of the same shape with one element for each block of {block_size} on axis {axis}")))
}

/// Infers `QuantizeLinear`. The zero point, if present, has the type of the result.
pub(super) fn quantize_linear(node: &Node<'_>) -> Types {
    check_granularity(node)?;
    let zero_point = node.optional(2).map(|zero_point| zero_point.ty.dtype);
    let dtype = match (node.dtype_attr("output_dtype")?, zero_point) {
        (Some(attribute), Some(zero_point)) if attribute != zero_point => {
            return Err(Error::new(format!(
                "attribute 'output_dtype' is {attribute}, but the zero point is {zero_point}: remove the attribute"
            )));
        }
        (attribute, zero_point) => attribute.or(zero_point).unwrap_or(DType::U8),
    };
    single_result(TensorType::new(dtype, node.input(0)?.ty.shape.clone()))
}

pub(super) fn dequantize_linear(node: &Node<'_>) -> Types {
    node.same_dtype(&[0, 2])?;
    check_granularity(node)?;
    let dtype = node.dtype_attr("output_dtype")?.unwrap_or(node.dtype(1)?);
    if !dtype.is_float() {
        return Err(Error::new(format!("cannot dequantize to {dtype}, the scale's type: set output_dtype")));
    }
    single_result(TensorType::new(dtype, node.input(0)?.ty.shape.clone()))
}

pub(super) fn dynamic_quantize_linear(node: &Node<'_>) -> Types {
    let y = TensorType::new(DType::U8, node.input(0)?.ty.shape.clone());
    Ok(vec![y, TensorType::scalar(DType::F32), TensorType::scalar(DType::U8)])
}

#[cfg(test)]
mod tests {
    use super::super::testing::Case;

    fn two(op: &'static str, x: &str, scale: &str) -> Case {
        Case::new(op).input(x).input(scale)
    }

    #[test]
    fn quantization_has_the_type_of_its_zero_point() {
        two("QuantizeLinear", "float[Nx3]", "float[]").infers(&["uint8[Nx3]"]);
        two("QuantizeLinear", "float[Nx3]", "float[]").input("int4[]").infers(&["int4[Nx3]"]);
        two("QuantizeLinear", "float[Nx3]", "float[]").int("output_dtype", 3).infers(&["int8[Nx3]"]);
        two("QuantizeLinear", "float[Nx3]", "float[]")
            .input("uint8[]")
            .int("output_dtype", 3)
            .fails("remove the attribute");
        Case::new("DynamicQuantizeLinear").input("float[Nx3]").infers(&["uint8[Nx3]", "float[]", "uint8[]"]);
    }

    #[test]
    fn dequantization_has_the_type_of_its_scale() {
        two("DequantizeLinear", "int8[Nx3]", "float16[]").input("int8[]").infers(&["float16[Nx3]"]);
        two("DequantizeLinear", "int8[Nx3]", "float16[]").int("output_dtype", 1).infers(&["float[Nx3]"]);
        two("DequantizeLinear", "float8e4m3fn[2]", "float8e8m0[]").fails("set output_dtype");
        two("DequantizeLinear", "int8[Nx3]", "float[]").input("uint8[]").fails("operands 0 and 2");
    }

    #[test]
    fn scale_shapes_are_checked() {
        let case = |scale| two("QuantizeLinear", "float[2x6x4]", scale);
        case("float[6]").input("int8[6]").infers(&["int8[2x6x4]"]);
        case("float[4]").int("axis", -1).infers(&["uint8[2x6x4]"]);
        case("float[]").input("int8[1]").infers(&["int8[2x6x4]"]);
        case("float[1]").infers(&["uint8[2x6x4]"]);
        case("float[*]").infers(&["uint8[2x6x4]"]);
        case("float[2x2x4]").int("block_size", 4).infers(&["uint8[2x6x4]"]);
        case("float[4]").fails("a vector as long as the axis");
        case("float[2x2x4]").fails("set block_size for blocks");
        case("float[2x2x4]").int("block_size", 2).fails("for each block of 2 on axis 1");
        case("float[2x2x4]").int("block_size", -2).fails("must not be negative");
        case("float[6]").int("axis", 3).fails("axis 3 is outside");
        case("float[6]").input("int8[5]").fails("operand 2 must have shape [6]");
        two("QuantizeLinear", "float[6]", "float[6]").infers(&["uint8[6]"]);
        two("QuantizeLinear", "float[]", "float[6]").fails("axis 1 is outside");
    }
}
