//! What C++ knows of `linalg` operators.

use divi_dialect::Operation;
use mlir_sys::MlirOperation;

/// As in `cpp/Linalg.cpp`.
#[derive(Default)]
#[repr(C)]
pub(super) struct LinalgWork {
    pub(super) kind: i32,
    pub(super) iterations: u64,
    pub(super) parallel: u64,
    pub(super) operations: u64,
    pub(super) transcendental: bool,
    pub(super) loops: [u64; 8],
}

unsafe extern "C" {
    fn diviLinalgWork(operation: MlirOperation, work: *mut LinalgWork) -> bool;
}

/// Returns the loops of an operator; `None` if it is none of `linalg`'s or has loops of unknown length.
pub(super) fn linalg_work(operation: Operation<'_>) -> Option<LinalgWork> {
    let mut found = LinalgWork::default();
    // SAFETY: the operation is alive, and there is room for what is found.
    unsafe { diviLinalgWork(operation.as_melior().to_raw(), &mut found) }.then_some(found)
}
