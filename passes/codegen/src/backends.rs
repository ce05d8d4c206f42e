//! Registry of compiler back ends.

use crate::{
    backend::{Reason, TargetBackend},
    cpu::CpuBackend,
    cuda::CudaBackend,
};
use divi_runtime::bundle::Device;
use std::sync::{PoisonError, RwLock};

/// Back ends of this process. Those of the built-in kinds are always there.
static REGISTERED: RwLock<Vec<&'static dyn TargetBackend>> = RwLock::new(vec![]);
static BUILT_IN: [&dyn TargetBackend; 2] = [&CpuBackend, &CudaBackend];

/// Adds a back end for the rest of the process. Returns false if there is one for its kind already.
pub fn register(backend: Box<dyn TargetBackend>) -> bool {
    let mut registered = REGISTERED.write().unwrap_or_else(PoisonError::into_inner);
    let is_known = BUILT_IN.iter().chain(&*registered).any(|known| known.kind() == backend.kind());
    if !is_known {
        registered.push(Box::leak(backend));
    }
    !is_known
}

/// All back ends: the built-in ones, then others in the order of their registration.
fn all() -> Vec<&'static dyn TargetBackend> {
    let registered = REGISTERED.read().unwrap_or_else(PoisonError::into_inner);
    BUILT_IN.iter().chain(&*registered).copied().collect()
}

/// Returns the back end of a kind of device.
pub fn find(kind: &str) -> Option<&'static dyn TargetBackend> {
    all().into_iter().find(|backend| backend.kind().name() == kind)
}

/// Returns the back end of a device, or the reason why no code is generated for it.
pub fn require(device: &Device) -> Result<&'static dyn TargetBackend, Reason> {
    let backend = find(&device.kind).ok_or_else(|| {
        let kinds = kinds().join(", ");
        Reason(format!("device '{}' is of kind '{}', and there is code for {kinds} only", device.id, device.kind))
    })?;
    backend.supports_device(device).map(|()| backend)
}

/// Returns the kinds that code is generated for, in the order of their registration.
pub fn kinds() -> Vec<&'static str> {
    all().into_iter().map(|backend| backend.kind().name()).collect()
}

/// Returns the back end of the host, which computes constants.
pub fn host() -> &'static dyn TargetBackend {
    &CpuBackend
}
