//! Registry of drivers: the only place that lists device kinds.

mod cpu;
mod cuda;

use crate::{
    bundle::Bundle,
    error::{Error, Result},
    hal::{DeviceInfo, Driver},
};
use std::sync::Arc;

/// Drivers, one for each kind of device.
#[derive(Clone)]
pub struct Drivers(Vec<Arc<dyn Driver>>);

impl Default for Drivers {
    fn default() -> Self {
        Self(vec![Arc::new(cpu::CpuDriver), Arc::new(cuda::CudaDriver::default())])
    }
}

impl Drivers {
    /// Adds a driver, in the place of one for the same kind.
    #[must_use]
    pub fn with(mut self, driver: Arc<dyn Driver>) -> Self {
        self.0.retain(|other| other.kind() != driver.kind());
        self.0.push(driver);
        self
    }

    pub fn find(&self, kind: &str) -> Option<&Arc<dyn Driver>> {
        self.0.iter().find(|driver| driver.kind() == kind)
    }

    /// Names of all kinds.
    pub fn kinds(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(|driver| driver.kind())
    }

    /// Devices of a kind that this machine has, or the reason why there are none.
    pub fn devices(&self, kind: &str) -> std::result::Result<Vec<DeviceInfo>, String> {
        self.find(kind).map_or_else(|| Err(format!("unknown device kind '{kind}'")), |driver| driver.devices())
    }

    /// Drivers of the devices of a bundle, in their order.
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

    /// Checks what a description says of devices whose kind is known.
    pub(crate) fn validate(&self, bundle: &Bundle) -> std::result::Result<(), String> {
        for (index, device) in bundle.devices.iter().enumerate() {
            if let Some(driver) = self.find(&device.kind) {
                driver.validate(bundle, index)?;
            }
        }
        Ok(())
    }
}
