//! The entry point of MLIR's verifier.

use crate::Operation;
use mlir_sys::MlirOperation;

#[unsafe(no_mangle)]
extern "C" fn diviOnnxVerifyByInference(operation: MlirOperation) -> bool {
    // SAFETY: MLIR hands over an operation that outlives the call.
    super::verify(unsafe { Operation::from_raw(operation) })
}
