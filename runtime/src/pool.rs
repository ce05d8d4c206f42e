//! Pool of pinned memory for the tensors of callers. To pin memory takes longer than many a request does, so what a tensor leaves
//! is kept for the next one.

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

pub(crate) struct Pool {
    device: Arc<dyn Device>,
    /// What nobody has, by its size.
    free: Mutex<Vec<(u64, Box<dyn Allocation>)>>,
    /// How many of a size are kept.
    kept: usize,
}

/// Bytes of a pool, which go back to it.
pub(crate) struct Pooled {
    /// There until it is dropped.
    memory: Option<Box<dyn Allocation>>,
    bytes: u64,
    pool: Arc<Pool>,
}

impl Pool {
    pub(crate) fn new(device: Arc<dyn Device>, kept: usize) -> Arc<Self> {
        Arc::new(Self { device, free: Mutex::new(vec![]), kept })
    }

    /// So many bytes, which may be anything.
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
        // SAFETY: these bytes are ours, and were zeroed when they were made.
        unsafe { slice::from_raw_parts(memory.address(), self.bytes as usize) }
    }
}

impl DerefMut for Pooled {
    fn deref_mut(&mut self) -> &mut [u8] {
        let Some(memory) = &self.memory else { return &mut [] };
        // SAFETY: as above, and nobody else has them.
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
