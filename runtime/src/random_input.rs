//! Random inputs.

use crate::{
    bundle::Tensor,
    dtype::DType,
    error::{Error, Result},
    random_weights::{Element, RandomConstant},
    tensor::TensorData,
};

/// Generates an input: floating-point numbers in [-1, 1), and integers 0 and 1, which are valid indices into most tensors.
pub fn random_input(name: &str, tensor: &Tensor, seed: u64) -> Result<TensorData> {
    let unknown = || Error::WrongInput {
        name: name.to_owned(),
        wanted: tensor.to_string(),
        found: "of an unknown element type".to_owned(),
    };
    let dtype = DType::from_name(&tensor.dtype).ok_or_else(unknown)?;
    let (element, low) = match dtype {
        DType::F32 | DType::Complex64 => (Element::F32, -1.0),
        DType::F64 | DType::Complex128 => (Element::F64, -1.0),
        DType::F16 => (Element::F16, -1.0),
        DType::BF16 => (Element::BF16, -1.0),
        _ => (Element::Int { bits: dtype.bits() as u32, signed: false }, 0.0),
    };
    let mut made = TensorData::zeroed(dtype, &tensor.shape)?;
    let count = tensor.bytes * 8 / u64::from(element.bits());
    RandomConstant { key: name.to_owned(), element, count, low, high: 1.0 }.fill(seed, 0, made.bytes_mut());
    Ok(made)
}
