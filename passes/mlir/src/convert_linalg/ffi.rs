//! Binding to the conversion in C++.

use divi_dialect::Operation;
use mlir_sys::MlirOperation;

unsafe extern "C" {
    fn diviConvertLinalgToOnnx(module: MlirOperation, converted: *mut u64, left: *mut u64) -> bool;
}

/// Converts the operations of a module. Returns the numbers of operations that were converted, and that were left with a warning;
/// `None` after an error.
pub(super) fn linalg_to_onnx(module: Operation<'_>) -> Option<[u64; 2]> {
    let [mut converted, mut left] = [0; 2];
    // SAFETY: the module is alive, nothing refers to the operations in it, and the numbers are writable.
    let is_done = unsafe { diviConvertLinalgToOnnx(module.as_melior().to_raw(), &raw mut converted, &raw mut left) };
    is_done.then_some([converted, left])
}
