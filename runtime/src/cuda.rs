//! Stages on GPUs, through CUDA's driver. Nothing of CUDA is needed to build this, or to run bundles without GPUs.
//!
//! A [`Device`] has a bundle's code and constants on a GPU. Each of its stages is issued once, as a graph, and replayed from
//! then on; calls that do not wait for each other run side by side (`chains`). Where a vendor's library may compute a call,
//! its algorithms and our kernel are measured when the bundle is loaded (`choice`), unless that was done before (`choices`). What is needed of CUDA is a
//! [`driver::Driver`].

mod chains;
mod choice;
mod choices;
mod cublaslt;
mod cudnn;
mod device;
mod driver;
mod memory;
mod real;
mod stage;
#[cfg(test)]
mod stub;
#[cfg(test)]
mod tests;
mod upload;
mod window;

pub(crate) use choices::Choices;
pub(crate) use device::{Attempt, Device, Launch, Stamp};
pub(crate) use driver::{Address, Driver, Gpu};
pub(crate) use memory::{DeviceMemory, Pinned};
pub(crate) use real::Cuda;
pub use upload::Cold;

use crate::{
    bundle::{self, Bundle},
    error::{Error, Result},
};
use std::sync::Arc;

/// The kind of devices that are GPUs.
pub(crate) const KIND: &str = "cuda";

/// The GPUs of a bundle's devices, in their order: the first device that is one has the machine's first.
pub(crate) fn open(bundle: &Bundle, driver: &dyn Driver) -> Result<Vec<Option<Arc<dyn Gpu>>>> {
    let mut next = 0;
    let open = |device: &bundle::Device| {
        if device.kind != KIND {
            return Ok(None);
        }
        let arch = device.arch.clone().unwrap_or_default();
        let refused = |reason: String| Error::NoGpu { id: device.id.clone(), arch: arch.clone(), reason };
        let count = driver.count().map_err(|fault| refused(fault.to_string()))?;
        if next >= count {
            return Err(refused(format!("this machine has {count} GPU{}", if count == 1 { "" } else { "s" })));
        }
        let gpu = driver.open(next).map_err(|fault| refused(fault.to_string()))?;
        next += 1;
        let (major, minor) = gpu.capability();
        if !runs(&arch, major * 10 + minor) {
            return Err(refused(format!("this machine's {} is sm_{major}{minor}", gpu.name())));
        }
        Ok(Some(gpu))
    };
    bundle.devices.iter().map(open).collect()
}

/// A GPU of this machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FoundGpu {
    pub name: String,
    /// `sm_90`
    pub arch: String,
}

/// The GPUs of this machine, in the order in which bundles take them; or why there are none.
pub fn gpus() -> std::result::Result<Vec<FoundGpu>, String> {
    find(&Cuda).map_err(|fault| fault.to_string())
}

fn find(driver: &dyn Driver) -> driver::Outcome<Vec<FoundGpu>> {
    let found = |ordinal| {
        let gpu = driver.open(ordinal)?;
        let (major, minor) = gpu.capability();
        Ok(FoundGpu { name: gpu.name().to_owned(), arch: format!("sm_{major}{minor}") })
    };
    (0..driver.count()?).map(found).collect()
}

/// Whether a GPU runs code for an architecture: PTX is compiled for newer ones, but where its name ends with a letter.
fn runs(arch: &str, has: u32) -> bool {
    let Some(name) = arch.strip_prefix("sm_") else { return false };
    let digits = name.trim_end_matches(|letter: char| letter.is_ascii_lowercase());
    match digits.parse::<u32>() {
        Ok(wants) if digits.len() == name.len() => wants <= has,
        Ok(wants) => wants == has,
        Err(_) => false,
    }
}
