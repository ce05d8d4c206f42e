//! Devices with their parts of a bundle.

use crate::hal::{Device, Executable, Execution, MemorySpace, Properties, Queue};
use std::sync::Arc;

/// A device with its part of the bundle.
pub(crate) struct LoadedDevice {
    pub(crate) properties: Properties,
    pub(crate) executable: Arc<dyn Executable>,
    pub(crate) device: Arc<dyn Device>,
}

impl LoadedDevice {
    /// True if its memory is the host's.
    pub(crate) fn is_on_host(&self) -> bool {
        self.properties.memory == MemorySpace::Host
    }

    /// True if it computes later than it is called.
    pub(crate) fn is_queued(&self) -> bool {
        self.properties.execution == Execution::Queued
    }

    pub(crate) fn queue(&self) -> &dyn Queue {
        self.executable.queue()
    }
}
