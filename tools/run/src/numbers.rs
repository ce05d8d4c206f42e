//! Elements of tensors as numbers.

use divi_runtime::{DType, TensorRef};
use half::{bf16, f16};

/// Returns the elements of a tensor of numbers or truth values; `None` for other types.
pub(crate) fn numbers(tensor: TensorRef<'_>) -> Option<Vec<f64>> {
    macro_rules! read {
        ($ty:ty, $convert:expr) => {
            tensor.bytes.as_chunks().0.iter().map(|&bytes| $convert(<$ty>::from_le_bytes(bytes))).collect()
        };
    }
    Some(match tensor.dtype {
        DType::F64 => read!(f64, |number| number),
        DType::F32 => read!(f32, f64::from),
        DType::F16 => read!(f16, f64::from),
        DType::BF16 => read!(bf16, f64::from),
        DType::I64 => read!(i64, |number| number as f64),
        DType::U64 => read!(u64, |number| number as f64),
        DType::I32 => read!(i32, f64::from),
        DType::U32 => read!(u32, f64::from),
        DType::I16 => read!(i16, f64::from),
        DType::U16 => read!(u16, f64::from),
        DType::I8 => read!(i8, f64::from),
        DType::U8 | DType::Bool => read!(u8, f64::from),
        _ => return None,
    })
}
