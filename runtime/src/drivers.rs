//! Registry of drivers: the only place that lists device kinds.
//!
//! Bundles are read here (`description`), because drivers validate the parts of a description that concern their devices, and
//! because old versions of the format (`upgrade`) depend on device kinds.

pub mod cpu;
pub mod cuda;
mod description;
mod signatures;
mod upgrade;

use crate::{
    bundle::Bundle,
    error::{Error, Result},
    hal::{DeviceInfo, Driver, MemorySpace},
};
use std::sync::Arc;

/// Drivers, one per device kind.
#[derive(Clone)]
pub struct Drivers(Vec<Arc<dyn Driver>>);

impl Default for Drivers {
    fn default() -> Self {
        Self(vec![Arc::new(cpu::CpuDriver), Arc::new(cuda::CudaDriver::default())])
    }
}

impl Drivers {
    /// Adds a driver, replacing the one of the same kind.
    #[must_use]
    pub fn with(mut self, driver: Arc<dyn Driver>) -> Self {
        self.0.retain(|other| other.kind() != driver.kind());
        self.0.push(driver);
        self
    }

    /// Returns the driver of a kind.
    pub fn find(&self, kind: &str) -> Option<&Arc<dyn Driver>> {
        self.0.iter().find(|driver| driver.kind() == kind)
    }

    /// Returns the names of all kinds.
    pub fn kinds(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(|driver| driver.kind())
    }

    /// Returns the devices of a kind on this machine, or the reason why there are none.
    pub fn devices(&self, kind: &str) -> std::result::Result<Vec<DeviceInfo>, String> {
        self.find(kind).map_or_else(|| Err(format!("unknown device kind '{kind}'")), |driver| driver.devices())
    }

    /// Returns the driver of each device of a bundle.
    pub(crate) fn of(&self, bundle: &Bundle) -> Result<Vec<Arc<dyn Driver>>> {
        let driver = |device: &crate::bundle::Device| {
            self.find(&device.kind).cloned().ok_or_else(|| Error::UnknownKind {
                id: device.id.clone(),
                kind: device.kind.clone(),
                known: self.kinds().map(str::to_owned).collect(),
            })
        };
        bundle.devices.iter().map(driver).collect()
    }

    /// Returns the driver that runs code of a format on the host, for `prepare`.
    pub(crate) fn of_host(&self, format: &str) -> Option<&Arc<dyn Driver>> {
        let is_on_host = |driver: &&Arc<dyn Driver>| driver.properties().memory == MemorySpace::Host;
        self.0.iter().filter(is_on_host).find(|driver| driver.formats().contains(&format))
    }

    /// Checks the driver-specific parts of a description, for devices of known kinds and for `prepare`.
    pub(crate) fn validate(&self, bundle: &Bundle) -> std::result::Result<(), String> {
        for (index, device) in bundle.devices.iter().enumerate() {
            let Some(driver) = self.find(&device.kind) else { continue };
            for (_, stage) in bundle.stages_of(index) {
                let format = &bundle.executables[stage.executable].format;
                if !driver.formats().contains(&&format[..]) {
                    return Err(format!(
                        "stage '{}' on device '{}' has code in format '{format}'; driver '{}' loads {}",
                        stage.name,
                        device.id,
                        device.kind,
                        driver.formats().join(", ")
                    ));
                }
                let is_on_host = driver.properties().memory == MemorySpace::Host;
                if let Some(task) = stage.tasks.iter().find(|task| is_on_host && task.has_host_weights) {
                    return Err(format!(
                        "stage '{}': task '{}' has host weights, and device '{}' has no memory of its own",
                        stage.name, task.name, device.id
                    ));
                }
            }
            driver.validate(bundle, index)?;
        }
        if let Some(executable) = bundle.prepare_executable {
            let format = &bundle.executables[executable].format;
            let driver = self.of_host(format);
            let driver = driver
                .ok_or_else(|| format!("prepare has code in format '{format}', which no driver of the host loads"))?;
            driver.validate_prepare(bundle, executable).map_err(|reason| format!("prepare: {reason}"))?;
        }
        Ok(())
    }
}
