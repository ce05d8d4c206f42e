//! Code of the host: kernels that compute constants at load, and kernels of CPU stages.

use crate::{constant_pool::ConstantPool, graph::Constant, kernels::Kernels, target::Target};

/// Kernels of the host and constants of a bundle.
pub struct HostModule {
    pub(crate) kernels: Kernels,
    pub(crate) pool: ConstantPool,
}

impl HostModule {
    /// Creates an empty module. `has_bf16` is true if stages have values of `bf16`.
    pub(crate) fn new(target: &Target, has_bf16: bool) -> Self {
        Self { kernels: Kernels::new(target, has_bf16), pool: ConstantPool::default() }
    }

    /// Adds a constant of `bytes` bytes to the bundle. Returns its index.
    pub fn constant(&mut self, constant: &Constant, bytes: u64) -> usize {
        self.pool.constant(constant.source.clone(), bytes)
    }
}
