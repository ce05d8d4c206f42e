//! Code of the host: kernels that compute constants at load, and kernels of CPU stages.

use crate::{constant_pool::ConstantPool, graph::Constant, kernels::Kernels, target::Target};

/// Kernels of the host and constants of a bundle.
pub struct HostModule {
    pub(crate) kernels: Kernels,
    pub(crate) pool: ConstantPool,
}

impl HostModule {
    pub(crate) fn new(target: &Target) -> Self {
        Self { kernels: Kernels::new(target), pool: ConstantPool::default() }
    }

    /// Adds a constant of `bytes` bytes to the bundle. Returns its index.
    pub fn constant(&mut self, constant: &Constant, bytes: u64) -> usize {
        self.pool.constant(constant.source.clone(), bytes)
    }
}
