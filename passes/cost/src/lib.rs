//! What a task costs on a device, without MLIR: how much work an operator is, how fast machines are, what was measured on
//! them, and the model that fills the gaps.
//!
//! A machine is described by a system description; a task is one operator or a cluster of several; its time comes from a
//! profile that measured it or from a model whose coefficients were fitted to such profiles.

pub mod device;
pub mod estimate;
pub mod fit;
pub mod json;
pub mod memory;
pub mod model;
pub mod pattern;
pub mod profile;
pub mod pytorch;
pub mod system;
pub mod task;
#[cfg(test)]
mod testing;
pub mod units;
pub mod validate;
pub mod work;

pub use estimate::{Estimator, Source};
pub use memory::{MemoryGraph, MemoryTask, MemoryTensor, Peak};
pub use model::Model;
pub use profile::Profile;
pub use system::System;
pub use task::Task;
pub use units::{Bytes, Micros};
pub use work::{Class, Geometry, Work, opaque, viewed_operand, work};
