//! `libdivi.so`: divi's dialects and passes as a plugin of `mlir-opt`.
//!
//! rustc exports only Rust functions from a shared library, so the entry points that MLIR looks for are trampolines.

// Nothing here calls them, but their C++ sides must be linked in.
use divi_dialect as _;
use divi_passes as _;

pub mod ffi;
