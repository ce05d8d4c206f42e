//! CUDA driver. CUDA is loaded dynamically: it is needed neither to build the runtime nor to run bundles without GPUs.
//!
//! A `CudaExecutable` holds a bundle's code and constants on a GPU. Each stage is captured once as a CUDA graph and replayed;
//! independent calls run on different streams (`chains`). If a vendor library can compute a call, its algorithms and our
//! kernel are benchmarked at load (`benchmark`), unless the result is cached (`choices`). `driver::Api` abstracts the CUDA
//! functions in use.

mod benchmark;
mod chains;
mod choices;
mod cublaslt;
mod cudnn;
mod driver;
mod executable;
pub mod launch;
mod memory;
mod real;
mod stage;
#[cfg(test)]
mod stub;
#[cfg(test)]
mod tests;
mod upload;
mod validate;
mod window;

use crate::{
    bundle::{self, Bundle},
    error::{Error, Result},
    hal::{Allocation, Device, DeviceInfo, Driver, Executable, Execution, LoadRequest, MemorySpace, Properties},
};
use driver::{Api, CudaResult, Gpu};
use executable::CudaExecutable;
use memory::{DeviceMemory, Pinned};
use real::Cuda;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// Name of the driver.
pub(crate) const KIND: &str = "cuda";
/// Format of executables: PTX.
pub const FORMAT: &str = "ptx";
/// Prefix of the comment lines in PTX that contain the signatures of calls.
pub const SIGNATURE_COMMENT: &str = "// divi: ";

/// Target of an executable: the GPU architecture that it was compiled for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Target {
    /// Architecture: `sm_90`.
    pub arch: String,
}

impl Target {
    /// Describes a PTX file for this target.
    pub fn executable(&self, file: String) -> bundle::Executable {
        let target = serde_json::to_value(self).expect("keys are strings");
        bundle::Executable { format: FORMAT.into(), file, target }
    }

    fn of(executable: &bundle::Executable) -> std::result::Result<Self, String> {
        let invalid = |error| format!("the target of '{}' is not a GPU architecture: {error}", executable.file);
        Self::deserialize(&executable.target).map_err(invalid)
    }
}

pub(crate) struct CudaDriver {
    api: Arc<dyn Api>,
}

impl Default for CudaDriver {
    fn default() -> Self {
        Self { api: Arc::new(Cuda) }
    }
}

impl Driver for CudaDriver {
    fn kind(&self) -> &str {
        KIND
    }

    fn formats(&self) -> &[&str] {
        &[FORMAT]
    }

    fn properties(&self) -> Properties {
        Properties { memory: MemorySpace::Device, execution: Execution::Queued }
    }

    fn devices(&self) -> std::result::Result<Vec<DeviceInfo>, String> {
        find(&*self.api).map_err(|fault| fault.to_string())
    }

    fn validate(&self, bundle: &Bundle, device: usize) -> std::result::Result<(), String> {
        validate::validate(bundle, device)
    }

    fn open(&self, bundle: &Bundle, device: usize, ordinal: usize) -> Result<Arc<dyn Device>> {
        let description = &bundle.devices[device];
        let arch = description.arch.clone().unwrap_or_default();
        let refused = |reason: String| Error::NoDevice {
            id: description.id.clone(),
            kind: description.kind.clone(),
            arch: arch.clone(),
            reason,
        };
        let count = self.api.count().map_err(|fault| refused(fault.to_string()))?;
        if ordinal >= count {
            return Err(refused(format!("this machine has {count} GPU{}", if count == 1 { "" } else { "s" })));
        }
        let gpu = self.api.open(ordinal).map_err(|fault| refused(fault.to_string()))?;
        let (major, minor) = gpu.capability();
        if !runs(&arch, major * 10 + minor) {
            return Err(refused(format!("this machine's {} is sm_{major}{minor}", gpu.name())));
        }
        Ok(Arc::new(CudaDevice(gpu)))
    }
}

/// Returns the GPUs of this machine.
fn find(api: &dyn Api) -> CudaResult<Vec<DeviceInfo>> {
    let found = |ordinal| {
        let gpu = api.open(ordinal)?;
        let (major, minor) = gpu.capability();
        Ok(DeviceInfo { name: gpu.name().to_owned(), arch: format!("sm_{major}{minor}") })
    };
    (0..api.count()?).map(found).collect()
}

struct CudaDevice(Arc<dyn Gpu>);

impl Device for CudaDevice {
    fn name(&self) -> String {
        self.0.name().to_owned()
    }

    fn allocate(&self, bytes: u64, what: &str) -> Result<Box<dyn Allocation>> {
        Ok(Box::new(DeviceMemory::new(&self.0, bytes, what)?))
    }

    fn allocate_host(&self, bytes: u64, what: &str) -> Result<Box<dyn Allocation>> {
        Ok(Box::new(Pinned::new(&self.0, bytes, what)?))
    }

    fn is_pinned(&self, pointer: *const u8) -> bool {
        self.0.is_pinned(pointer)
    }

    fn load(&self, request: &LoadRequest<'_>) -> Result<Box<dyn Executable>> {
        Ok(Box::new(CudaExecutable::load(request, self.0.clone())?))
    }
}

/// Returns true if a GPU of compute capability `has` runs code for `arch`. PTX is forward compatible, except for
/// architectures with a suffix letter (`sm_90a`).
fn runs(arch: &str, has: u32) -> bool {
    let Some(name) = arch.strip_prefix("sm_") else { return false };
    let digits = name.trim_end_matches(|letter: char| letter.is_ascii_lowercase());
    match digits.parse::<u32>() {
        Ok(wants) if digits.len() == name.len() => wants <= has,
        Ok(wants) => wants == has,
        Err(_) => false,
    }
}
