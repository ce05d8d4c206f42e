//! Device kinds, for the verifiers of `divi.device` and of values on devices.
//!
//! Which kinds there are is the compiler's to say, which this crate does not depend on: it installs its registry with
//! [`set_device_kinds`]. Without a registry every kind is valid, and the host is a module's first device.

mod ffi;

use std::sync::OnceLock;

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

/// Returns the facts of a kind: [`ANY`] without a registry, `None` if the registry does not have it.
fn find(name: &str) -> Option<DeviceKindInfo> {
    KINDS.get().map_or(Some(ANY), |kinds| (kinds.find)(name))
}

/// A kind as it is without a registry.
const ANY: DeviceKindInfo = DeviceKindInfo { has_host_memory: false, streams_weights: true };
