//! Pool of pinned memory for the tensors of callers. Pinning memory takes longer than many requests, so blocks are reused.

use crate::{
    error::Result,
    hal::{self, Allocation, Device},
};
use divi_threads::sync::Mutex;
use std::{
    ops::{Deref, DerefMut},
    slice,
    sync::Arc,
};

/// Pool of pinned memory.
pub(crate) struct Pool {
    device: Arc<dyn Device>,
    /// Free blocks with their sizes.
    free: Mutex<Vec<(u64, Box<dyn Allocation>)>>,
    /// Maximum number of free blocks of a size.
    kept: usize,
}

/// Block of a pool, returned to it on drop.
pub(crate) struct Pooled {
    /// `Some` until it is dropped.
    memory: Option<Box<dyn Allocation>>,
    bytes: u64,
    pool: Arc<Pool>,
}

impl Pool {
    pub(crate) fn new(device: Arc<dyn Device>, kept: usize) -> Arc<Self> {
        Arc::new(Self { device, free: Mutex::new(vec![]), kept })
    }

    /// Takes or allocates a block of this size. Its contents are unspecified.
    pub(crate) fn take(self: &Arc<Self>, bytes: u64, what: &str) -> Result<Pooled> {
        let mut free = self.free.lock();
        let known = free.iter().position(|(size, _)| *size == bytes).map(|index| free.swap_remove(index).1);
        drop(free);
        let memory = known.map_or_else(|| hal::allocate_host(&*self.device, bytes, what), Ok)?;
        Ok(Pooled { memory: Some(memory), bytes, pool: self.clone() })
    }
}

impl Deref for Pooled {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        let Some(memory) = &self.memory else { return &[] };
        // SAFETY: the bytes are owned and were zeroed when they were allocated.
        unsafe { slice::from_raw_parts(memory.address(), self.bytes as usize) }
    }
}

impl DerefMut for Pooled {
    fn deref_mut(&mut self) -> &mut [u8] {
        let Some(memory) = &self.memory else { return &mut [] };
        // SAFETY: as above, and the borrow is exclusive.
        unsafe { slice::from_raw_parts_mut(memory.address(), self.bytes as usize) }
    }
}

impl Drop for Pooled {
    fn drop(&mut self) {
        let mut free = self.pool.free.lock();
        if free.iter().filter(|(size, _)| *size == self.bytes).count() < self.pool.kept {
            free.extend(self.memory.take().map(|memory| (self.bytes, memory)));
        }
    }
}
