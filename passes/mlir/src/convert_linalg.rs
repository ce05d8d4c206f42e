//! `divi-convert-linalg`: converts operations on tensors of the `linalg` dialect to `onnx` operators.

mod ffi;

use crate::{
    declared::{ConvertLinalg, ConvertLinalgStatistics},
    ir::Failure,
};
use divi_dialect::Operation;

impl ConvertLinalg {
    pub(crate) fn run(&self, module: Operation<'_>) -> Result<ConvertLinalgStatistics, Failure> {
        let [num_converted, num_left] = ffi::linalg_to_onnx(module).ok_or(Failure)?;
        Ok(ConvertLinalgStatistics { num_converted, num_left })
    }
}
