//! Queries of device kinds by the C++ verifiers.

use super::{DeviceKindInfo, KINDS};
use crate::context::text;
use mlir_sys::MlirStringRef;
use std::ffi::c_void;

fn find(name: MlirStringRef) -> Option<DeviceKindInfo> {
    // SAFETY: the verifier's string outlives the call.
    let text = unsafe { text(name) };
    // `text` truncates names that are not UTF-8; no registry contains them, and without a registry every name is valid.
    if text.len() == name.length || KINDS.get().is_none() { super::find(text) } else { None }
}

/// Returns true if a kind is registered. Otherwise passes the names of the registered kinds to `sink`.
#[unsafe(no_mangle)]
extern "C" fn diviDeviceKindIsKnown(
    name: MlirStringRef,
    sink: extern "C" fn(MlirStringRef, *mut c_void),
    user: *mut c_void,
) -> bool {
    let is_known = find(name).is_some();
    if let (false, Some(kinds)) = (is_known, KINDS.get()) {
        let names = (kinds.names)();
        sink(MlirStringRef { data: names.as_ptr().cast(), length: names.len() }, user);
    }
    is_known
}

#[unsafe(no_mangle)]
extern "C" fn diviDeviceKindHasHostMemory(name: MlirStringRef) -> bool {
    find(name).is_some_and(|kind| kind.has_host_memory)
}

#[unsafe(no_mangle)]
extern "C" fn diviDeviceKindStreamsWeights(name: MlirStringRef) -> bool {
    find(name).is_some_and(|kind| kind.streams_weights)
}
