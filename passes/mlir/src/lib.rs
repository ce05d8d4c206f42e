//! The compiler, one module per phase, in the order of the data flow: [`import`], [`fuse`], [`cost`], [`partition`],
//! [`outline`], [`export`] or [`bundle`].
//!
//! Passes are plain functions on modules. `td/Passes.td` defines their names, options and statistics ([`declared`]);
//! [`register`] registers them with MLIR.

pub mod bundle;
pub mod canonicalize;
mod convert_linalg;
mod convert_precision;
pub mod cost;
mod decisions;
pub mod declared;
pub mod exclude_unsupported;
pub mod export;
mod ffi;
mod fingerprint;
pub mod fuse;
pub mod import;
pub mod infer_shapes;
pub mod inline_clusters;
pub mod inline_stages;
mod ir;
mod mark_outputs;
mod node_names;
pub mod outline;
pub mod partition;
mod paths;
pub mod rebatch;
pub mod session;
mod steps;
mod tasks;
pub mod verify_plan;
pub mod weights;

pub use ir::Failure;

use divi_cost::device::{self, MemorySpace};
use divi_dialect::{DeviceKindInfo, DeviceKinds, set_device_kinds};
use melior::Context;

/// Creates a context with divi's dialects and `func`, for use on one thread. Verifiers use the registered device kinds.
pub fn new_context() -> Context {
    install_device_kinds();
    divi_dialect::new_context()
}

/// Makes the registry of device kinds available to the verifiers of the `divi` dialect.
fn install_device_kinds() {
    set_device_kinds(DeviceKinds { find: |name| device::find(name).map(kind_info), names: || device::names(|_| true) });
}

fn kind_info(kind: device::Kind) -> DeviceKindInfo {
    DeviceKindInfo { has_host_memory: kind.memory() == MemorySpace::Host, streams_weights: kind.streams_weights() }
}

/// Registers every pass under its `divi-…` name. MLIR's registry is global and not synchronized.
pub fn register() {
    static REGISTERED: std::sync::Once = std::sync::Once::new();
    REGISTERED.call_once(ffi::register_passes);
}
