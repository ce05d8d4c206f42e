//! What runs a plan. It links neither MLIR nor LLVM.
//!
//! So far: how weights are found in the files of a model ([`weights`]).

pub mod weights;
