//! Memory of a device, wherever it is.

use crate::{
    cuda::{DeviceMemory, Pinned},
    memory::Aligned,
};
use std::ptr;

pub(crate) enum Block {
    Host(Aligned),
    /// Of the host, but GPUs copy from and to it by themselves.
    Pinned(Pinned),
    Gpu(DeviceMemory),
}

impl Block {
    /// Where it begins; on a GPU, an address that only it can use.
    pub(crate) fn pointer(&self) -> *mut u8 {
        match self {
            Self::Host(memory) => memory.pointer(),
            Self::Pinned(memory) => memory.pointer(),
            Self::Gpu(memory) => ptr::without_provenance_mut(memory.address as usize),
        }
    }
}
