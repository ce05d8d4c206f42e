//! The compiler, one module a phase, in the order in which data flows: [`import`], [`fuse`], [`cost`],
//! [`partition`], [`outline`], [`export`] or [`bundle`].
//!
//! Passes are plain functions on modules; `td/Passes.td` gives them names and options, [`register`] makes MLIR know them.

pub mod bundle;
pub mod canonicalize;
pub mod cost;
mod decisions;
pub mod export;
mod fingerprint;
pub mod fuse;
pub mod import;
pub mod infer_shapes;
pub mod inline_clusters;
pub mod inline_stages;
mod input_shapes;
mod ir;
pub mod outline;
pub mod partition;
mod paths;
pub mod rebatch;
pub mod restrict;
pub mod session;
mod steps;
mod tasks;
pub mod verify_plan;
pub mod weights;

pub use ir::Failure;

unsafe extern "C" {
    fn diviRegisterPasses();
}

/// Registers every pass under its `divi-…` name. MLIR's registry is one for all threads, and does not guard itself.
pub fn register() {
    static REGISTERED: std::sync::Once = std::sync::Once::new();
    // SAFETY: registration touches nothing but MLIR's pass registry, and nobody else does now.
    REGISTERED.call_once(|| unsafe { diviRegisterPasses() });
}
