//! Entry point for the C++ verifiers.

use crate::Operation;
use mlir_sys::MlirOperation;

#[unsafe(no_mangle)]
extern "C" fn diviOnnxVerifyByInference(operation: MlirOperation) -> bool {
    // SAFETY: the operation outlives the call.
    super::verify(unsafe { Operation::from_raw(operation) })
}
