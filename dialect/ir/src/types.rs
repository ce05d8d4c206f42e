//! Conversion between ONNX's tensor types and MLIR's, and types of functions.

mod ffi;

use divi_onnx::TensorType;
pub(crate) use ffi::is_none;
use ffi::with_shape;
pub use ffi::{
    contained_type, element_type, element_type_of, function_results, function_type, is_memory, is_tensor,
    optional_type, print_type, ranked_tensor_bytes, sequence_type, tensor_type, tensor_type_of,
};
use melior::ir::Type;

use crate::ContextLike;

/// Returns a tensor type with the shape of `ty`. Keeps the MLIR element type of `original` if it corresponds to `ty.dtype`, and
/// also its encoding if the rank is the same.
pub fn reshaped_type<'c>(context: impl ContextLike<'c>, original: Type<'c>, ty: &TensorType) -> Type<'c> {
    match tensor_type_of(original).filter(|before| before.dtype == ty.dtype) {
        Some(before) => with_shape(original, ty, before.rank() == ty.rank()),
        None => tensor_type(context, ty),
    }
}
