//! Device kinds, for the verifiers of `divi.device` and of values on devices.
//!
//! The compiler defines the kinds. This crate does not depend on it; the compiler installs its registry with
//! [`set_device_kinds`]. Without a registry every kind is valid, and the host is a module's first device.

mod ffi;

use std::sync::OnceLock;

/// Properties of a device kind that verifiers need.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DeviceKindInfo {
    /// True if devices of this kind use host memory.
    pub has_host_memory: bool,
    /// True if weights may stay in host memory and be copied whenever a task needs them.
    pub streams_weights: bool,
}

/// Registry of device kinds.
#[derive(Clone, Copy, Debug)]
pub struct DeviceKinds {
    /// Returns the properties of a kind by its name.
    pub find: fn(&str) -> Option<DeviceKindInfo>,
    /// Returns the names of all kinds, for messages.
    pub names: fn() -> String,
}

static KINDS: OnceLock<DeviceKinds> = OnceLock::new();

/// Installs a registry for the rest of the process. Later calls have no effect.
pub fn set_device_kinds(kinds: DeviceKinds) {
    _ = KINDS.set(kinds);
}

/// Returns the properties of a kind: [`ANY`] without a registry, `None` if the registry does not contain it.
fn find(name: &str) -> Option<DeviceKindInfo> {
    KINDS.get().map_or(Some(ANY), |kinds| (kinds.find)(name))
}

/// Properties of every kind in the absence of a registry.
const ANY: DeviceKindInfo = DeviceKindInfo { has_host_memory: false, streams_weights: true };
