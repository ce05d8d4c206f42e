//! `libdivi.so`: divi's dialects and passes as a plugin of `mlir-opt`.
//!
//! rustc exports only Rust functions from a shared library, so the entry points for MLIR are trampolines.

// Not called here, but their C++ parts must be linked.
use divi_dialect as _;
use divi_passes as _;

pub mod ffi;
