//! Code of the host: it computes constants once, and the stages of CPUs.

use crate::{graph::Constant, kernels::Kernels, pool::Pool, target::Target};

/// Kernels of the host and constants of a bundle.
pub struct HostModule {
    pub(crate) kernels: Kernels,
    pub(crate) pool: Pool,
}

impl HostModule {
    pub(crate) fn new(target: &Target) -> Self {
        Self { kernels: Kernels::new(target), pool: Pool::default() }
    }

    /// Adds a constant of `bytes` bytes to those of the bundle. Returns its index there.
    pub fn constant(&mut self, constant: &Constant, bytes: u64) -> usize {
        self.pool.constant(constant.source.clone(), bytes)
    }
}
