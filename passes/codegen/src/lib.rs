//! Code for CPUs and GPUs: stages of operators become kernels, kernels a shared object or PTX, and all of it a bundle that the runtime runs.
//!
//! A stage is a [`graph::Graph`]. Its operators are lowered one by one (`ops`) to calls of kernels, which are built in
//! upstream's MLIR dialects (`emit`); what they compute lies in one arena a stage. Nothing here knows the `onnx` dialect.

mod arena;
mod borders;
pub mod bundle;
mod constants;
mod emit;
pub mod error;
mod folding;
mod gpu;
pub mod graph;
mod hot;
mod kernels;
mod lowering;
mod machine_code;
mod ops;
mod pool;
mod slow;
pub mod target;
#[cfg(test)]
mod testing;
mod widen;

pub use bundle::{Options, Program, StageProgram, write};
pub use error::Error;
pub use slow::SlowOperators;
pub use target::Target;

/// True if there is code for an operator, by its name in the `onnx` dialect (`Conv`).
pub fn has_code(op: &str) -> bool {
    ops::find(op).is_some()
}
