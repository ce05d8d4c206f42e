//! Registry of compiler back ends.

use crate::{
    backend::{Reason, TargetBackend},
    cpu::CpuBackend,
    cuda::CudaBackend,
};
use divi_runtime::bundle::Device;
use std::sync::{PoisonError, RwLock};

/// Back ends added by [`register`].
static REGISTERED: RwLock<Vec<&'static dyn TargetBackend>> = RwLock::new(vec![]);
/// Back ends that are always available.
static BUILT_IN: [&dyn TargetBackend; 2] = [&CpuBackend, &CudaBackend];

/// Adds a back end for the lifetime of the process. Returns false if its kind already has one.
pub fn register(backend: Box<dyn TargetBackend>) -> bool {
    let mut registered = REGISTERED.write().unwrap_or_else(PoisonError::into_inner);
    let is_known = BUILT_IN.iter().chain(&*registered).any(|known| known.kind() == backend.kind());
    if !is_known {
        registered.push(Box::leak(backend));
    }
    !is_known
}

/// Returns all back ends: the built-in ones, then the others in the order of their registration.
fn all() -> Vec<&'static dyn TargetBackend> {
    let registered = REGISTERED.read().unwrap_or_else(PoisonError::into_inner);
    BUILT_IN.iter().chain(&*registered).copied().collect()
}

/// Returns the back end of a kind of device.
pub fn find(kind: &str) -> Option<&'static dyn TargetBackend> {
    all().into_iter().find(|backend| backend.kind().name() == kind)
}

/// Returns the back end of a device, or the reason why no code can be generated for it.
pub fn require(device: &Device) -> Result<&'static dyn TargetBackend, Reason> {
    let backend = find(&device.kind).ok_or_else(|| {
        let kinds = kinds().join(", ");
        Reason(format!("device '{}' has unsupported kind '{}'; expected one of {kinds}", device.id, device.kind))
    })?;
    backend.supports_device(device).map(|()| backend)
}

/// Returns the kinds of devices that have a back end, in the order of their registration.
pub fn kinds() -> Vec<&'static str> {
    all().into_iter().map(|backend| backend.kind().name()).collect()
}

/// Returns the back end of the host, which evaluates constant subgraphs.
pub fn host() -> &'static dyn TargetBackend {
    &CpuBackend
}
