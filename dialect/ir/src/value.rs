//! Values: results of operations and arguments of blocks.

mod ffi;

use crate::{tensor_type_of, types};
use divi_onnx::TensorType;
pub use ffi::Value;

impl Value<'_> {
    /// Returns the ONNX type; `None` if the value is not a tensor.
    pub fn tensor_type(self) -> Option<TensorType> {
        tensor_type_of(self.r#type())
    }

    /// Returns true for the placeholder of an absent optional operand or result.
    pub fn is_none(self) -> bool {
        types::is_none(self.r#type())
    }
}
