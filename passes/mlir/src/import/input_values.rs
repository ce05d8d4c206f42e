//! `--input-value`: replaces inputs by constants.

use super::{
    translate::{Result, Translator},
    types::ValueType,
};
use divi_onnx::{DType, Tensor, TensorType};
use serde_json::Value as Json;

/// Limit of the elements of a value on the command line.
const MAX_ELEMENTS: usize = 1 << 16;

impl<'m> Translator<'_, 'm> {
    /// Binds an input to a constant, given as text, instead of an argument.
    pub(super) fn fix_value(&mut self, name: &'m str, ty: &ValueType<'_>, text: &str) -> Result<()> {
        if self.options.input_shapes.iter().any(|(other, _)| other == name) {
            return Err(format!("input '{name}' is given a shape and a value: a value has its own shape"));
        }
        let ValueType::Tensor(ty) = ty else {
            return Err(format!("input '{name}' is not a tensor and cannot be given a value"));
        };
        let tensor = parse(ty, text).map_err(|problem| format!("input '{name}' is given '{text}', {problem}"))?;
        let id = self.constant(name, tensor);
        self.bind(name, id)
    }
}

/// Parses a number, or a list of numbers in brackets, as a tensor of a type. A nested list determines its own shape; a
/// flat list may also be the elements of any shape, in row-major order.
fn parse(ty: &TensorType, text: &str) -> Result<Tensor> {
    let json = divi_json::parse(text)
        .map_err(|_| "which is neither a number, true, false, nor a list of them as [1,2]".to_owned())?;
    let mut written = vec![];
    measure(&json, &mut written);
    let mut leaves = vec![];
    collect(&json, &written, &mut leaves)?;
    let dims = shape(ty, &written, leaves.len())?;
    let tensor = match ty.dtype {
        dtype if dtype.is_float() => {
            let numbers: Option<Vec<f64>> = leaves.iter().map(|leaf| leaf.as_f64()).collect();
            Tensor::from_floats(dtype, dims, &numbers.ok_or("whose elements are not all numbers")?)
        }
        DType::Bool => {
            let flag = |leaf: &&Json| leaf.as_bool().or_else(|| leaf.as_i64().map(|number| number != 0));
            let flags: Option<Vec<bool>> = leaves.iter().map(flag).collect();
            let flags = flags.ok_or("whose elements are not all true or false")?;
            Tensor::from_ints(DType::Bool, dims, &flags.into_iter().map(i64::from).collect::<Vec<_>>())
        }
        dtype if dtype.is_int() => {
            let integer = |leaf: &&Json| {
                let number = leaf.as_i64().or_else(|| leaf.as_u64().map(u64::cast_signed))?;
                fits(dtype, number, leaf.is_u64() && leaf.as_i64().is_none()).then_some(number)
            };
            let integers: Option<Vec<i64>> = leaves.iter().map(integer).collect();
            Tensor::from_ints(dtype, dims, &integers.ok_or_else(|| format!("whose elements are not all {dtype}"))?)
        }
        dtype => return Err(format!("but its elements are {dtype}, which cannot be written on the command line")),
    };
    tensor.ok_or_else(|| format!("which is not a tensor of {}", ty.dtype))
}

/// Collects the lengths of nested lists, along the first elements.
fn measure(json: &Json, lengths: &mut Vec<usize>) {
    if let Json::Array(items) = json {
        lengths.push(items.len());
        items.first().into_iter().for_each(|first| measure(first, lengths));
    }
}

/// Collects the numbers of nested lists, if all lists of a level have the same length.
fn collect<'j>(json: &'j Json, lengths: &[usize], leaves: &mut Vec<&'j Json>) -> Result<()> {
    match (json, lengths) {
        (Json::Array(items), [length, inner @ ..]) if items.len() == *length => {
            items.iter().try_for_each(|item| collect(item, inner, leaves))
        }
        (Json::Array(_), _) | (_, [_, ..]) => Err("whose lists differ in length".into()),
        (leaf, []) if leaves.len() < MAX_ELEMENTS => {
            leaves.push(leaf);
            Ok(())
        }
        _ => Err(format!("which is more than {MAX_ELEMENTS} elements")),
    }
}

/// Returns the shape of a value: the declared one if its element count matches, otherwise the written one.
fn shape(ty: &TensorType, written: &[usize], count: usize) -> Result<Vec<i64>> {
    let written: Vec<i64> = written.iter().map(|&length| length as i64).collect();
    let fits = |shape: &[divi_onnx::Dim]| {
        shape.len() == written.len()
            && shape.iter().zip(&written).all(|(dim, &size)| dim.known().is_none_or(|d| d == size))
    };
    match (&ty.shape, ty.static_shape()) {
        (Some(shape), _) if fits(shape) => Ok(written),
        (_, Some(dims)) if written.len() <= 1 && divi_onnx::tensor::count_of(&dims) == Some(count as u64) => Ok(dims),
        // A single number for dynamic dimensions.
        (Some(shape), None) if written.is_empty() && shape.iter().all(|dim| dim.known().is_none_or(|dim| dim == 1)) => {
            Ok(vec![1; shape.len()])
        }
        (None, _) => Ok(written),
        _ => Err(format!("which is not of type {ty}")),
    }
}

/// Returns true if an integer fits into a type. `beyond` marks the bits of an unsigned number above the signed range.
fn fits(dtype: DType, number: i64, beyond: bool) -> bool {
    let bits = dtype.bits();
    if bits >= 64 {
        return if dtype.is_unsigned_int() { beyond || number >= 0 } else { !beyond };
    }
    let (low, high) = match dtype.is_unsigned_int() {
        true => (0, (1 << bits) - 1),
        false => (-(1 << (bits - 1)), (1 << (bits - 1)) - 1),
    };
    !beyond && (low..=high).contains(&number)
}

#[cfg(test)]
mod tests {
    use super::*;
    use divi_onnx::Dim;

    fn value(dtype: DType, shape: &[Dim], text: &str) -> Result<Tensor> {
        parse(&TensorType::new(dtype, shape.to_vec()), text)
    }

    #[test]
    fn values_are_typed_by_the_input() {
        let scalar = value(DType::I64, &[], "16000").unwrap();
        assert_eq!((scalar.dims(), scalar.ints().unwrap()), (&[][..], vec![16000]));
        assert_eq!(value(DType::F32, &[Dim::Known(1)], "0.5").unwrap().floats().unwrap(), [0.5]);
        let matrix = value(DType::I32, &[Dim::Unknown, Dim::Known(2)], "[[1,2],[3,4]]").unwrap();
        assert_eq!((matrix.dims(), matrix.ints().unwrap()), (&[2, 2][..], vec![1, 2, 3, 4]));
        assert_eq!(value(DType::F64, &[Dim::Known(2), Dim::Known(1)], "[1, 2]").unwrap().dims(), [2, 1]);
        assert_eq!(value(DType::Bool, &[Dim::Unknown], "[true,0]").unwrap().ints().unwrap(), [1, 0]);
        assert_eq!(value(DType::I64, &[Dim::Unknown], "7").unwrap().dims(), [1]);
        assert_eq!(value(DType::F32, &[Dim::Unknown], "[]").unwrap().dims(), [0]);
        assert!(value(DType::U64, &[], "18446744073709551615").is_ok());
    }

    #[test]
    fn values_of_another_type_or_shape_are_rejected() {
        for (dtype, text) in [
            (DType::I64, "1.5"),
            (DType::I64, "x"),
            (DType::I64, "[1,2]"),
            (DType::I8, "128"),
            (DType::U8, "-1"),
            (DType::I64, "18446744073709551615"),
            (DType::F32, "true"),
            (DType::F32, "\"a\""),
            (DType::String, "1"),
            (DType::F32, ""),
        ] {
            assert!(value(dtype, &[], text).is_err(), "{dtype} {text}");
        }
        assert!(value(DType::F32, &[Dim::Known(2), Dim::Known(2)], "[[1,2],[3]]").is_err());
        assert!(value(DType::F32, &[Dim::Known(2), Dim::Known(2)], "[1,2,3]").is_err());
        assert!(value(DType::F32, &[Dim::Unknown], &"[".repeat(100_000)).is_err());
    }
}
