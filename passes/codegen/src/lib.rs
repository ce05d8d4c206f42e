//! Code for CPUs and GPUs: stages of operators become kernels, kernels a shared object or PTX, and all of it a bundle that the runtime runs.
//!
//! A stage is a [`graph::Graph`]. Its operators are lowered one by one (`ops`) to calls of kernels, which are built in
//! upstream's MLIR dialects (`emit`); what they compute lies in one arena a stage. Nothing here knows the `onnx` dialect.

mod arena;
pub mod backend;
pub mod backends;
mod boundary;
pub mod bundle;
mod chain;
mod compile;
mod constants;
mod cpu;
mod cuda;
mod emit;
mod epilogue;
pub mod error;
mod folding;
pub mod graph;
pub mod host;
mod kernels;
mod layout;
mod lowering;
mod machine_code;
mod ops;
mod pool;
pub mod program;
mod reorder;
mod slow;
mod stage;
pub mod target;
#[cfg(test)]
mod testing;
mod widen;

pub use backend::{Reason, TargetBackend};
pub use bundle::write;
pub use error::Error;
pub use program::{Options, Program, StageProgram};
pub use slow::SlowOperators;
pub use target::Target;
