//! C functions of `cpp/CApi.cpp`, and the macro with which files named `ffi.rs` call C functions.

/// Calls a C function of MLIR.
///
/// For files named `ffi.rs` only, which maintain these invariants: a handle ([`Operation`](crate::Operation),
/// [`Value`](crate::Value), …) refers to an object that is alive for the handle's lifetime; all objects belong to one context;
/// indices are below the count that MLIR returned; the accessors of a kind follow the check for this kind; slices and strings
/// outlive the call.
macro_rules! call {
    ($function:ident($($argument:expr),* $(,)?)) => {{
        // SAFETY: the invariants above.
        unsafe { $function($($argument),*) }
    }};
}
pub(crate) use call;

use melior::dialect::DialectHandle;
use mlir_sys::{MlirAttribute, MlirContext, MlirDialectHandle, MlirLocation, MlirStringRef, MlirType};

unsafe extern "C" {
    fn mlirGetDialectHandle__divi__() -> MlirDialectHandle;
    fn mlirGetDialectHandle__onnx__() -> MlirDialectHandle;

    pub(crate) fn diviExternalAttrGetChecked(
        location: MlirLocation,
        r#type: MlirType,
        path: MlirStringRef,
        offset: u64,
        length: u64,
    ) -> MlirAttribute;
    pub(crate) fn diviAttrIsAExternal(attribute: MlirAttribute) -> bool;
    pub(crate) fn diviExternalAttrGetPath(attribute: MlirAttribute) -> MlirStringRef;
    pub(crate) fn diviExternalAttrGetOffset(attribute: MlirAttribute) -> u64;
    pub(crate) fn diviExternalAttrGetLength(attribute: MlirAttribute) -> u64;

    pub(crate) fn diviCostAttrGetChecked(
        location: MlirLocation,
        count: isize,
        devices: *const MlirStringRef,
        batches: *const i64,
        micros: *const f64,
    ) -> MlirAttribute;
    pub(crate) fn diviAttrIsACost(attribute: MlirAttribute) -> bool;
    pub(crate) fn diviCostAttrGetCount(attribute: MlirAttribute) -> isize;
    pub(crate) fn diviCostAttrGetDevice(attribute: MlirAttribute, index: isize) -> MlirStringRef;
    pub(crate) fn diviCostAttrGetBatch(attribute: MlirAttribute, index: isize) -> i64;
    pub(crate) fn diviCostAttrGetMicros(attribute: MlirAttribute, index: isize) -> f64;

    pub(crate) fn diviBatchAttrGetChecked(
        location: MlirLocation,
        device: MlirStringRef,
        start: f64,
        count: isize,
        inputs: *const i64,
    ) -> MlirAttribute;
    pub(crate) fn diviAttrIsABatch(attribute: MlirAttribute) -> bool;
    pub(crate) fn diviBatchAttrGetDevice(attribute: MlirAttribute) -> MlirStringRef;
    pub(crate) fn diviBatchAttrGetStart(attribute: MlirAttribute) -> f64;
    pub(crate) fn diviBatchAttrGetCount(attribute: MlirAttribute) -> isize;
    pub(crate) fn diviBatchAttrGetInput(attribute: MlirAttribute, index: isize) -> i64;

    pub(crate) fn diviMoveAttrGetChecked(
        location: MlirLocation,
        index: i64,
        from: MlirStringRef,
        to: MlirStringRef,
        start: f64,
        end: f64,
        count: isize,
        inputs: *const i64,
    ) -> MlirAttribute;
    pub(crate) fn diviAttrIsAMove(attribute: MlirAttribute) -> bool;
    pub(crate) fn diviMoveAttrGetIndex(attribute: MlirAttribute) -> i64;
    pub(crate) fn diviMoveAttrGetFrom(attribute: MlirAttribute) -> MlirStringRef;
    pub(crate) fn diviMoveAttrGetTo(attribute: MlirAttribute) -> MlirStringRef;
    pub(crate) fn diviMoveAttrGetStart(attribute: MlirAttribute) -> f64;
    pub(crate) fn diviMoveAttrGetEnd(attribute: MlirAttribute) -> f64;
    pub(crate) fn diviMoveAttrGetCount(attribute: MlirAttribute) -> isize;
    pub(crate) fn diviMoveAttrGetInput(attribute: MlirAttribute, index: isize) -> i64;

    pub(crate) fn diviOnnxStringTypeGet(context: MlirContext) -> MlirType;
    pub(crate) fn diviOnnxSeqTypeGet(element: MlirType) -> MlirType;
    pub(crate) fn diviOnnxOptTypeGet(element: MlirType) -> MlirType;
    pub(crate) fn diviOnnxContainedTypeGet(r#type: MlirType) -> MlirType;
    pub(crate) fn diviTypeIsAOnnxString(r#type: MlirType) -> bool;

    pub(crate) fn diviEmitError(location: MlirLocation, message: MlirStringRef);
    pub(crate) fn diviEmitWarning(location: MlirLocation, message: MlirStringRef);

    pub(crate) fn diviDenseElementsGet(r#type: MlirType, bytes: *const u8, length: usize) -> MlirAttribute;
    pub(crate) fn diviElementsGetByteLength(attribute: MlirAttribute) -> i64;
    pub(crate) fn diviElementsCopyBytes(attribute: MlirAttribute, bytes: *mut u8, length: usize);
}

/// Returns the handles of both dialects.
pub(crate) fn dialect_handles() -> [DialectHandle; 2] {
    let handles = [call!(mlirGetDialectHandle__divi__()), call!(mlirGetDialectHandle__onnx__())];
    // SAFETY: the handles have a static lifetime.
    handles.map(|handle| unsafe { DialectHandle::from_raw(handle) })
}
