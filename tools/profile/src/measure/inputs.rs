//! Inputs, made up: what they are changes nothing but numbers.

use divi_runtime::{
    DType, Runtime, TensorData,
    bundle::Tensor,
    random_weights::{Element, Recipe},
};

/// All inputs of a model.
pub(super) fn random(runtime: &Runtime) -> Result<Vec<(String, TensorData)>, String> {
    runtime.inputs().map(|(name, tensor)| Ok((name.to_owned(), make(name, tensor)?))).collect()
}

/// Numbers in -1..1; integers 0 and 1, which are indices into anything.
fn make(name: &str, tensor: &Tensor) -> Result<TensorData, String> {
    let dtype = DType::from_name(&tensor.dtype).ok_or_else(|| format!("input '{name}' is {tensor}"))?;
    let (element, low) = match dtype {
        DType::F32 | DType::Complex64 => (Element::F32, -1.0),
        DType::F64 | DType::Complex128 => (Element::F64, -1.0),
        DType::F16 => (Element::F16, -1.0),
        DType::BF16 => (Element::BF16, -1.0),
        _ => (Element::Int { bits: dtype.bits() as u32, signed: false }, 0.0),
    };
    let mut made = TensorData::zeroed(dtype, &tensor.shape).map_err(|error| error.to_string())?;
    let count = tensor.bytes * 8 / u64::from(element.bits());
    Recipe { key: name.to_owned(), element, count, low, high: 1.0 }.fill(0, 0, made.bytes_mut());
    Ok(made)
}
