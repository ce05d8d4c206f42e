//! Questions of the C++ verifiers about device kinds.

use super::{DeviceKindInfo, KINDS};
use crate::context::text;
use mlir_sys::MlirStringRef;
use std::ffi::c_void;

fn find(name: MlirStringRef) -> Option<DeviceKindInfo> {
    // SAFETY: verifiers' strings outlive their calls.
    let text = unsafe { text(name) };
    // Names that are not UTF-8 are cut off there; no registry has them, and without one every name is valid.
    if text.len() == name.length || KINDS.get().is_none() { super::find(text) } else { None }
}

/// Returns true if a kind is registered. If not, `sink` gets the names of those that are.
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
