//! Binding to the analysis of `linalg` operators in C++.

use divi_dialect::Operation;
use mlir_sys::MlirOperation;

/// Mirrors `DiviLinalgWork` in `cpp/Linalg.cpp`.
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

/// Returns the loops of an operator; `None` if it is not a `linalg` operator or has dynamic loop ranges.
pub(super) fn linalg_work(operation: Operation<'_>) -> Option<LinalgWork> {
    let mut found = LinalgWork::default();
    // SAFETY: the operation is alive, and `found` is writable.
    unsafe { diviLinalgWork(operation.as_melior().to_raw(), &mut found) }.then_some(found)
}
