//! Devices with their executables.

use crate::hal::{Device, Executable, Execution, MemorySpace, Properties, Queue};
use std::sync::Arc;

/// Open device with its code and constants of a bundle.
pub(crate) struct LoadedDevice {
    pub(crate) properties: Properties,
    pub(crate) executable: Arc<dyn Executable>,
    pub(crate) device: Arc<dyn Device>,
}

impl LoadedDevice {
    /// Returns true if its memory is host memory.
    pub(crate) fn is_on_host(&self) -> bool {
        self.properties.memory == MemorySpace::Host
    }

    /// Returns true if launches are asynchronous.
    pub(crate) fn is_queued(&self) -> bool {
        self.properties.execution == Execution::Queued
    }

    pub(crate) fn queue(&self) -> &dyn Queue {
        self.executable.queue()
    }
}
