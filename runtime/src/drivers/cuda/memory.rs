//! Memory of GPUs, and of the host for them, which is freed when it is dropped.

use super::driver::{Address, Fault, Gpu, Stream};
use crate::{
    bundle::ALIGNMENT,
    error::{Error, Result},
    hal::Allocation,
};
use std::sync::Arc;

/// Zeroed bytes on a GPU.
pub(crate) struct DeviceMemory {
    gpu: Arc<dyn Gpu>,
    pub(crate) address: Address,
}

/// Bytes of the host that GPUs copy from and to by themselves.
pub(crate) struct Pinned {
    gpu: Arc<dyn Gpu>,
    pointer: *mut u8,
}

// SAFETY: it owns its bytes; those who use its pointer see to it themselves.
unsafe impl Send for Pinned {}
// SAFETY: as above.
unsafe impl Sync for Pinned {}

impl DeviceMemory {
    /// `what` is named in the error if there is not enough memory.
    pub(crate) fn new(gpu: &Arc<dyn Gpu>, bytes: u64, what: &str) -> Result<Self> {
        let failed = |fault: Fault| match fault {
            Fault::Memory => {
                let free = gpu.free_memory().map_or_else(|_| String::new(), |free| format!(", {free} bytes free"));
                Error::Memory { what: format!("{what} ({}{free})", gpu.name()), bytes }
            }
            other => Error::Device { what: what.to_owned(), problem: other.to_string() },
        };
        let address = gpu.allocate(bytes.max(1)).map_err(failed)?;
        let memory = Self { gpu: gpu.clone(), address };
        let zero = || {
            // SAFETY: these bytes are new, and nobody has them before they are zero.
            unsafe { gpu.zero(address, bytes, Stream::DEFAULT) }?;
            gpu.finish(Stream::DEFAULT)
        };
        zero().map_err(failed)?;
        Ok(memory)
    }
}

impl Allocation for DeviceMemory {
    fn address(&self) -> *mut u8 {
        std::ptr::without_provenance_mut(self.address as usize)
    }
}

impl Drop for DeviceMemory {
    fn drop(&mut self) {
        self.gpu.free(self.address);
    }
}

impl Pinned {
    pub(crate) fn new(gpu: &Arc<dyn Gpu>, bytes: u64, what: &str) -> Result<Self> {
        let failed = |fault: Fault| match fault {
            Fault::Memory => Error::Memory { what: format!("{what}, which must be pinned"), bytes },
            other => Error::Device { what: what.to_owned(), problem: other.to_string() },
        };
        let pointer = gpu.allocate_pinned(bytes.max(1)).map_err(failed)?;
        let memory = Self { gpu: gpu.clone(), pointer };
        if !pointer.addr().is_multiple_of(ALIGNMENT as usize) {
            let problem = format!("the driver pinned memory that begins at no multiple of {ALIGNMENT} bytes");
            return Err(Error::Device { what: what.to_owned(), problem });
        }
        // SAFETY: these bytes are new.
        unsafe { pointer.write_bytes(0, bytes as usize) };
        Ok(memory)
    }

    pub(crate) fn pointer(&self) -> *mut u8 {
        self.pointer
    }
}

impl Allocation for Pinned {
    fn address(&self) -> *mut u8 {
        self.pointer
    }
}

impl Drop for Pinned {
    fn drop(&mut self) {
        self.gpu.free_pinned(self.pointer);
    }
}
