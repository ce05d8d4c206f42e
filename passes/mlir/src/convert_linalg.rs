//! `divi-convert-linalg`: converts operations on tensors of the `linalg` dialect to `onnx` operators.

use crate::{
    declared::{ConvertLinalg, ConvertLinalgStatistics},
    ir::Failure,
};
use divi_dialect::Operation;
use mlir_sys::MlirOperation;

unsafe extern "C" {
    fn diviConvertLinalgToOnnx(module: MlirOperation, converted: *mut u64, left: *mut u64) -> bool;
}

impl ConvertLinalg {
    pub(crate) fn run(&self, module: Operation<'_>) -> Result<ConvertLinalgStatistics, Failure> {
        let mut statistics = ConvertLinalgStatistics::default();
        let ConvertLinalgStatistics { num_converted, num_left } = &mut statistics;
        // SAFETY: the module is alive, nothing refers to the operations in it, and the numbers are writable.
        let is_done = unsafe { diviConvertLinalgToOnnx(module.as_melior().to_raw(), num_converted, num_left) };
        if is_done { Ok(statistics) } else { Err(Failure) }
    }
}
