//! Owned GPU memory and pinned host memory.

use super::driver::{Address, CudaError, Gpu, Stream};
use crate::{
    bundle::ALIGNMENT,
    error::{Error, Result},
    hal::Allocation,
};
use std::sync::Arc;

/// GPU memory, zeroed when allocated.
pub(crate) struct DeviceMemory {
    gpu: Arc<dyn Gpu>,
    pub(crate) address: Address,
}

/// Pinned host memory.
pub(crate) struct Pinned {
    gpu: Arc<dyn Gpu>,
    pointer: *mut u8,
}

// SAFETY: it owns its bytes; users of its pointer are responsible for synchronization.
unsafe impl Send for Pinned {}
// SAFETY: as above.
unsafe impl Sync for Pinned {}

impl DeviceMemory {
    /// Allocates GPU memory. `what` is its description in errors.
    pub(crate) fn new(gpu: &Arc<dyn Gpu>, bytes: u64, what: &str) -> Result<Self> {
        let failed = |fault: CudaError| match fault {
            CudaError::Memory => {
                let free = gpu.free_memory().map_or_else(|_| String::new(), |free| format!(", {free} bytes free"));
                Error::Memory { what: format!("{what} ({}{free})", gpu.name()), bytes }
            }
            other => Error::Device { what: what.to_owned(), problem: other.to_string() },
        };
        let address = gpu.allocate(bytes.max(1)).map_err(failed)?;
        let memory = Self { gpu: gpu.clone(), address };
        let zero = || {
            // SAFETY: the memory is new, and not accessed before the stream has finished.
            unsafe { gpu.zero(address, bytes, Stream::DEFAULT) }?;
            gpu.synchronize(Stream::DEFAULT)
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
    /// Allocates zeroed pinned memory. `what` is its description in errors.
    pub(crate) fn new(gpu: &Arc<dyn Gpu>, bytes: u64, what: &str) -> Result<Self> {
        let failed = |fault: CudaError| match fault {
            CudaError::Memory => Error::Memory { what: format!("{what}, which must be pinned"), bytes },
            other => Error::Device { what: what.to_owned(), problem: other.to_string() },
        };
        let pointer = gpu.allocate_pinned(bytes.max(1)).map_err(failed)?;
        let memory = Self { gpu: gpu.clone(), pointer };
        if !pointer.addr().is_multiple_of(ALIGNMENT as usize) {
            let problem = format!("the driver returned pinned memory that is not aligned to {ALIGNMENT} bytes");
            return Err(Error::Device { what: what.to_owned(), problem });
        }
        // SAFETY: the memory is new.
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
