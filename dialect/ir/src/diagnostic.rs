//! Diagnostics on operations.

use crate::ffi;
use melior::StringRef;
use mlir_sys::{MlirOperation, mlirOperationGetLocation};

/// Emits an error at an operation's location.
pub fn emit_error(operation: MlirOperation, message: &str) {
    // SAFETY: the operation is alive, the text outlives the call.
    unsafe { ffi::diviEmitError(mlirOperationGetLocation(operation), StringRef::new(message).to_raw()) };
}

/// Emits a warning at an operation's location.
pub fn emit_warning(operation: MlirOperation, message: &str) {
    // SAFETY: the operation is alive, the text outlives the call.
    unsafe { ffi::diviEmitWarning(mlirOperationGetLocation(operation), StringRef::new(message).to_raw()) };
}
