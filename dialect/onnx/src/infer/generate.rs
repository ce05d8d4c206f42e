//! Operators that create tensors from shapes, seeds and attributes.

use super::{Types, layout::sizes_operand, single_result};
use crate::{Attr, DType, Dim, Error, Node, Shape, Tensor, TensorType};

fn of_tensor(tensor: &Tensor) -> TensorType {
    TensorType::new(tensor.dtype(), tensor.dims().iter().copied().map(Dim::Known).collect::<Shape>())
}

pub(super) fn constant(node: &Node<'_>) -> Types {
    let list = |dtype, len: usize| TensorType::new(dtype, vec![Dim::Known(len as i64)]);
    let mut values = node.attributes.iter().filter_map(|(name, attr)| match (name, attr) {
        ("value" | "sparse_value", Attr::Tensor(tensor)) => Some(Ok(of_tensor(tensor))),
        ("value_int", Attr::Int(_)) => Some(Ok(TensorType::scalar(DType::I64))),
        ("value_float", Attr::Float(_)) => Some(Ok(TensorType::scalar(DType::F32))),
        ("value_string", Attr::Str(_)) => Some(Ok(TensorType::scalar(DType::String))),
        ("value_ints", Attr::Ints(values)) => Some(Ok(list(DType::I64, values.len()))),
        ("value_floats", Attr::Floats(values)) => Some(Ok(list(DType::F32, values.len()))),
        ("value_strings", Attr::Strs(values)) => Some(Ok(list(DType::String, values.len()))),
        (name, _) if name == "sparse_value" || name.starts_with("value") => {
            Some(Err(Error::new(format!("attribute '{name}' is of an unsupported kind: write it as a dense 'value'"))))
        }
        _ => None,
    });
    match (values.next(), values.next()) {
        (Some(ty), None) => single_result(ty?),
        (None, _) => Err(Error::new("needs an attribute with its value, such as 'value'")),
        (Some(_), Some(_)) => Err(Error::new("has more than one attribute with a value: keep one")),
    }
}

pub(super) fn constant_of_shape(node: &Node<'_>) -> Types {
    let value = node.tensor("value")?;
    if let Some(value) = value
        && of_tensor(value).count() != Some(1)
    {
        return Err(Error::new(format!("attribute 'value' must have one element, is {}", of_tensor(value))));
    }
    single_result(TensorType::new(value.map_or(DType::F32, Tensor::dtype), sizes_operand(node, 0)?))
}

pub(super) fn range(node: &Node<'_>) -> Types {
    let dtype = node.dtype(0)?;
    for i in 0..3 {
        let ty = &node.input(i)?.ty;
        if ty.dtype != dtype {
            return Err(Error::new(format!("start, limit and delta must be {dtype}, operand {i} is {}", ty.dtype)));
        }
        if ty.count().is_some_and(|count| count != 1) {
            return Err(Error::new(format!("start, limit and delta must be scalars, operand {i} is {ty}")));
        }
    }
    let count = if dtype.is_float() { float_range(node, dtype)? } else { int_range(node)? };
    single_result(TensorType::new(dtype, vec![count]))
}

fn int_range(node: &Node<'_>) -> Result<Dim, Error> {
    let single = |i| match node.optional(i).and_then(|value| value.dims()).as_deref() {
        Some(&[element]) => element,
        _ => Dim::Unknown,
    };
    Ok(match (single(0), single(1), single(2)) {
        (_, _, Dim::Known(0)) => return Err(delta_is_zero()),
        (Dim::Known(start), Dim::Known(limit), Dim::Known(delta)) => {
            let span = (i128::from(limit) - i128::from(start)) * i128::from(delta.signum());
            let count = u128::try_from(span).unwrap_or(0).div_ceil(delta.unsigned_abs().into());
            Dim::Known(i64::try_from(count).map_err(|_| Error::new("the range has more elements than a 64-bit size"))?)
        }
        (Dim::Known(0), limit @ Dim::Symbol(_), Dim::Known(1)) => limit,
        _ => Dim::Unknown,
    })
}

fn float_range(node: &Node<'_>, dtype: DType) -> Result<Dim, Error> {
    let single = |i| match node.floats_of(i).as_deref() {
        Some(&[element]) => Some(element),
        _ => None,
    };
    let (Some(start), Some(limit), Some(delta)) = (single(0), single(1), single(2)) else {
        return Ok(Dim::Unknown);
    };
    if delta == 0.0 {
        return Err(delta_is_zero());
    }
    // The precision of the difference can affect the last element; it is that of the operands.
    let span = match dtype {
        DType::F64 => limit - start,
        DType::F32 => f64::from(limit as f32 - start as f32),
        _ if node.int_or("stash_type", 1)? == 1 => f64::from(limit as f32 - start as f32),
        _ => return Ok(Dim::Unknown),
    };
    // If the quotient is close to an integer, the result depends on rounding, in which implementations differ.
    let candidates = [span / delta, (limit - start) / delta, f64::from(span as f32 / delta as f32)];
    let [count, exact, narrow] = candidates.map(|quotient| quotient.ceil().max(0.0));
    if candidates[1].is_finite() && (count != exact || (dtype != DType::F64 && count != narrow)) {
        return Ok(Dim::Unknown);
    }
    if !(span / delta).is_finite() || count >= i64::MAX as f64 {
        return Err(Error::new(format!("a range from {start} to {limit} by {delta} has no finite number of elements")));
    }
    Ok(Dim::Known(count as i64))
}

fn delta_is_zero() -> Error {
    Error::new("delta is 0, the range would not end")
}

/// Returns the element type of random numbers from the attribute `dtype`, which must be a floating-point type.
fn float_dtype(node: &Node<'_>, default: DType) -> Result<DType, Error> {
    match node.dtype_attr("dtype")?.unwrap_or(default) {
        dtype if dtype.is_float() => Ok(dtype),
        dtype => Err(Error::new(format!("cannot sample {dtype}: set 'dtype' to a floating-point type"))),
    }
}

pub(super) fn random(node: &Node<'_>) -> Types {
    let dims = node.ints("shape")?.ok_or_else(|| Error::new("needs the attribute 'shape'"))?;
    if let Some(dim) = dims.iter().find(|&&dim| dim < 0) {
        return Err(Error::new(format!("attribute 'shape' has the dimension {dim}, which cannot be negative")));
    }
    single_result(TensorType::new(
        float_dtype(node, DType::F32)?,
        dims.iter().copied().map(Dim::Known).collect::<Shape>(),
    ))
}

pub(super) fn random_like(node: &Node<'_>) -> Types {
    single_result(TensorType::new(float_dtype(node, node.dtype(0)?)?, node.input(0)?.ty.shape.clone()))
}

pub(super) fn bernoulli(node: &Node<'_>) -> Types {
    let dtype = node.dtype_attr("dtype")?.unwrap_or(node.dtype(0)?);
    single_result(TensorType::new(dtype, node.input(0)?.ty.shape.clone()))
}

pub(super) fn multinomial(node: &Node<'_>) -> Types {
    let batch = node.shape_of_rank(0, 2)?.map_or(Dim::Unknown, |shape| shape[0]);
    let samples = node.int_or("sample_size", 1)?;
    if samples < 0 {
        return Err(Error::new(format!("attribute 'sample_size' is {samples}, which cannot be negative")));
    }
    match node.dtype_attr("dtype")?.unwrap_or(DType::I32) {
        dtype @ (DType::I32 | DType::I64) => single_result(TensorType::new(dtype, vec![batch, Dim::Known(samples)])),
        dtype => Err(Error::new(format!("attribute 'dtype' is {dtype}, must be int32 or int64"))),
    }
}

pub(super) fn eye_like(node: &Node<'_>) -> Types {
    let dtype = node.dtype_attr("dtype")?.unwrap_or(node.dtype(0)?);
    let shape = node.shape_of_rank(0, 2)?.map_or_else(|| vec![Dim::Unknown; 2], <[Dim]>::to_vec);
    single_result(TensorType::new(dtype, shape))
}

pub(super) fn shape(node: &Node<'_>) -> Types {
    let (start, end) = (node.int_or("start", 0)?, node.int("end")?);
    let len = node.shape(0)?.map_or(Dim::Unknown, |shape| {
        let rank = shape.len() as i64;
        let clamp = |at: i64| if at < 0 { at.saturating_add(rank) } else { at }.clamp(0, rank);
        Dim::Known((end.map_or(rank, clamp) - clamp(start)).max(0))
    });
    single_result(TensorType::new(DType::I64, vec![len]))
}

pub(super) fn size(node: &Node<'_>) -> Types {
    node.input(0)?;
    single_result(TensorType::scalar(DType::I64))
}

pub(super) fn dropout(node: &Node<'_>) -> Types {
    let data = &node.input(0)?.ty;
    Ok(vec![data.clone(), TensorType::new(DType::Bool, data.shape.clone())])
}

#[cfg(test)]
mod tests {
    use super::super::testing::Case;
    use crate::{Attr, DType, Tensor};

    #[test]
    fn constant_has_the_type_of_its_attribute() {
        let case = |name, attr| Case::new("Constant").attr(name, attr);
        case("value", Attr::Tensor(Tensor::from_shape(&[1, 2]))).infers(&["int64[2]"]);
        case("value_int", Attr::Int(1)).infers(&["int64[]"]);
        case("value_ints", Attr::Ints(vec![])).infers(&["int64[0]"]);
        case("value_float", Attr::Float(1.0)).infers(&["float[]"]);
        case("value_floats", Attr::Floats(vec![1.0; 3])).infers(&["float[3]"]);
        case("value_string", Attr::Str("a".into())).infers(&["string[]"]);
        case("value_strings", Attr::Strs(vec!["a".into()])).infers(&["string[1]"]);
        case("sparse_value", Attr::Tensor(Tensor::scalar_f32(0.0))).infers(&["float[]"]);
        case("sparse_value", Attr::Other).fails("write it as a dense 'value'");
        case("value_int", Attr::Float(1.0)).fails("'value_int' is of an unsupported kind");
        case("value_int", Attr::Int(1)).attr("value_float", Attr::Float(1.0)).fails("more than one");
        Case::new("Constant").fails("needs an attribute");
    }

    #[test]
    fn constant_of_shape_follows_its_operand() {
        Case::new("ConstantOfShape").shape_input(&[2, 0]).infers(&["float[2x0]"]);
        Case::new("ConstantOfShape").shape_input(&[]).infers(&["float[]"]);
        Case::new("ConstantOfShape").partial("Nx?x3").infers(&["float[Nx?x3]"]);
        Case::new("ConstantOfShape").input("int64[?]").infers(&["float[*]"]);
        let case = |values: &[i64]| {
            let value = Tensor::from_shape(values);
            Case::new("ConstantOfShape").input("int64[2]").attr("value", Attr::Tensor(value))
        };
        case(&[1]).infers(&["int64[?x?]"]);
        case(&[1, 2]).fails("must have one element, is int64[2]");
        Case::new("ConstantOfShape").shape_input(&[-1]).fails("cannot be negative");
    }

    #[test]
    fn range_counts_integers() {
        let range = |start, limit, delta| {
            let [start, limit, delta] = [start, limit, delta].map(Tensor::scalar_i64);
            Case::new("Range").constant(start).constant(limit).constant(delta)
        };
        range(3, 9, 3).infers(&["int64[2]"]);
        range(10, 4, -2).infers(&["int64[3]"]);
        range(0, 10, 3).infers(&["int64[4]"]);
        range(0, -5, 1).infers(&["int64[0]"]);
        range(i64::MAX, i64::MIN, i64::MIN).infers(&["int64[2]"]);
        range(i64::MIN, i64::MAX, 1).fails("more elements than");
        range(0, 5, 0).fails("delta is 0");
        let case = || Case::new("Range").constant(Tensor::scalar_i64(0));
        case().partial("N").constant(Tensor::scalar_i64(1)).infers(&["int64[N]"]);
        case().input("int64[]").input("int64[]").infers(&["int64[?]"]);
        case().input("float[]").input("int64[]").fails("operand 1 is float");
        case().input("int64[2]").input("int64[]").fails("must be scalars");
    }

    #[test]
    fn range_counts_floats() {
        let range = |dtype, values: [f64; 3]| {
            let [start, limit, delta] =
                values.map(|value| Tensor::from_floats(dtype, vec![], &[value]).expect("a scalar"));
            Case::new("Range").constant(start).constant(limit).constant(delta)
        };
        range(DType::F32, [0.0, 1.0, 0.25]).infers(&["float[4]"]);
        range(DType::F32, [0.0, 1.0, 0.3]).infers(&["float[4]"]);
        range(DType::F64, [1.0, 0.0, 0.5]).infers(&["double[0]"]);
        range(DType::F16, [0.0, 4.0, 1.0]).infers(&["float16[4]"]);
        range(DType::F16, [0.0, 4.0, 1.0]).int("stash_type", 10).infers(&["float16[?]"]);
        range(DType::F64, [0.0, f64::INFINITY, 1.0]).fails("no finite number");
        range(DType::F64, [0.0, 1e300, 1.0]).fails("no finite number");
        range(DType::F64, [0.0, f64::NAN, 1.0]).fails("no finite number");
        range(DType::F64, [0.0, 1.0, 0.0]).fails("delta is 0");
        Case::new("Range").input("float[]").input("float[]").input("float[]").infers(&["float[?]"]);
    }

    #[test]
    fn random_numbers_have_a_shape() {
        for op in ["RandomNormal", "RandomUniform"] {
            Case::new(op).ints("shape", &[2, 3]).infers(&["float[2x3]"]);
            Case::new(op).ints("shape", &[2]).int("dtype", 11).infers(&["double[2]"]);
            Case::new(op).ints("shape", &[2]).int("dtype", 7).fails("set 'dtype' to a floating-point type");
            Case::new(op).ints("shape", &[-2]).fails("cannot be negative");
            Case::new(op).fails("needs the attribute 'shape'");
        }
        for op in ["RandomNormalLike", "RandomUniformLike"] {
            Case::new(op).input("float16[Nx3]").infers(&["float16[Nx3]"]);
            Case::new(op).input("int64[*]").int("dtype", 1).infers(&["float[*]"]);
            Case::new(op).input("int64[2]").fails("cannot sample int64");
        }
    }

    #[test]
    fn sampling_from_probabilities() {
        Case::new("Bernoulli").input("float[Nx3]").infers(&["float[Nx3]"]);
        Case::new("Bernoulli").input("float[Nx3]").int("dtype", 9).infers(&["bool[Nx3]"]);
        Case::new("Bernoulli").input("float[2]").int("dtype", 99).fails("not an ONNX element type");
        Case::new("Multinomial").input("float[Nx3]").int("sample_size", 5).infers(&["int32[Nx5]"]);
        Case::new("Multinomial").input("float[*]").int("dtype", 7).infers(&["int64[?x1]"]);
        Case::new("Multinomial").input("float[3]").fails("must have rank 2");
        Case::new("Multinomial").input("float[2x3]").int("sample_size", -1).fails("cannot be negative");
        Case::new("Multinomial").input("float[2x3]").int("dtype", 1).fails("must be int32 or int64");
    }

    #[test]
    fn eye_like_is_a_matrix() {
        Case::new("EyeLike").input("float[Nx3]").int("dtype", 7).infers(&["int64[Nx3]"]);
        Case::new("EyeLike").input("bool[*]").infers(&["bool[?x?]"]);
        Case::new("EyeLike").input("float[3]").fails("must have rank 2");
    }

    #[test]
    fn shape_has_one_element_per_dimension() {
        let case = || Case::new("Shape").input("float[Nx3x4]");
        case().infers(&["int64[3]"]);
        case().int("start", 1).infers(&["int64[2]"]);
        case().int("start", -1).int("end", 9).infers(&["int64[1]"]);
        case().int("start", i64::MIN).int("end", -1).infers(&["int64[2]"]);
        case().int("start", 2).int("end", 1).infers(&["int64[0]"]);
        Case::new("Shape").input("float[*]").infers(&["int64[?]"]);
        case().str("start", "x").fails("'start' must be an integer");
    }

    #[test]
    fn size_is_a_scalar() {
        Case::new("Size").input("float[*]").infers(&["int64[]"]);
        Case::new("Size").fails("operand 0 is missing");
    }

    #[test]
    fn dropout_has_a_mask() {
        Case::new("Dropout").input("float[Nx3]").infers(&["float[Nx3]", "bool[Nx3]"]);
        Case::new("Dropout").fails("operand 0 is missing");
    }
}
