//! Code generation for CPUs and GPUs: lowers stages to kernels, compiles them to a shared object or PTX, and writes a bundle.
//!
//! A stage is a [`graph::Graph`]. Its operators are lowered one by one (`ops`) to calls of kernels, which are built from
//! upstream MLIR dialects (`emit`). Intermediate values of a stage share one arena. This crate does not depend on the `onnx` dialect.

mod arena;
pub mod backend;
pub mod backends;
mod boundary;
pub mod bundle;
mod compile;
mod constant_pool;
mod cpu;
mod cuda;
mod elementwise_chain;
mod emit;
mod epilogue;
pub mod error;
mod folding;
pub mod graph;
mod half_precision;
pub mod host;
mod kernels;
mod layout;
mod lowering;
mod machine_code;
mod ops;
pub mod program;
mod rearranged_constants;
mod reorder;
mod slow_operators;
mod stage;
mod strided_view;
pub mod target;
#[cfg(test)]
mod testing;

pub use backend::{Reason, TargetBackend};
pub use bundle::write;
pub use error::Error;
pub use program::{Loss, Options, Program, StageProgram};
pub use slow_operators::SlowOperators;
pub use target::Target;
