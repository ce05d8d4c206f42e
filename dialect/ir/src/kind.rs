//! Device kinds, for the verifiers of `divi.device` and of values on devices.
//!
//! Which kinds there are is the compiler's to say, which this crate does not depend on: it installs its registry with
//! [`set_device_kinds`]. Without a registry every kind is valid, and the host is a module's first device.

use crate::text;
use mlir_sys::MlirStringRef;
use std::{ffi::c_void, sync::OnceLock};

/// Facts of a device kind that verifiers need.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DeviceKindInfo {
    /// True if its memory is the host's.
    pub has_host_memory: bool,
    /// True if weights may stay in the host's memory and come whenever tasks need them.
    pub streams_weights: bool,
}

/// Registry of device kinds.
#[derive(Clone, Copy, Debug)]
pub struct DeviceKinds {
    pub find: fn(&str) -> Option<DeviceKindInfo>,
    /// Names of all kinds, for messages.
    pub names: fn() -> String,
}

static KINDS: OnceLock<DeviceKinds> = OnceLock::new();

/// Installs a registry for the rest of the process. The first one stays.
pub fn set_device_kinds(kinds: DeviceKinds) {
    _ = KINDS.set(kinds);
}

/// Facts of a kind: [`ANY`] without a registry, `None` if the registry does not have it.
fn find(name: MlirStringRef) -> Option<DeviceKindInfo> {
    let Some(kinds) = KINDS.get() else { return Some(ANY) };
    // SAFETY: verifiers' strings outlive their calls.
    let text = unsafe { text(name) };
    // Names that are not UTF-8 are cut off there.
    if text.len() == name.length { (kinds.find)(text) } else { None }
}

/// A kind as it is without a registry.
const ANY: DeviceKindInfo = DeviceKindInfo { has_host_memory: false, streams_weights: true };

/// True if a kind is registered. If not, `sink` gets the names of those that are.
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
