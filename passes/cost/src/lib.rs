//! Cost of tasks on devices, independent of MLIR: work of operators, rates of devices, measured profiles, and an analytic
//! model for tasks that were not measured.
//!
//! A machine is described by a system description; a task is one operator or a cluster of several. The time of a task comes
//! from a profile, or from a model whose coefficients were fitted to profiles.

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

pub use estimate::{Estimator, TimeSource};
pub use memory::{MemoryGraph, MemoryTask, MemoryTensor, Peak};
pub use model::Model;
pub use profile::Profile;
pub use system::System;
pub use task::Task;
pub use units::{Bytes, Micros};
pub use work::{Class, Geometry, Work, opaque_work, viewed_operand, work};
