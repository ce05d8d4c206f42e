//! What runs a plan. It links neither MLIR nor LLVM.
//!
//! So far: how weights are found in the files of a model ([`weights`]), and made up where there are none
//! ([`random_weights`]).

pub mod random_weights;
pub mod weights;
