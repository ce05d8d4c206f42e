//! The runtime with real bundles: kernels from C, one device or two.
#![cfg(test)]

mod drivers;
mod execution;
mod faults;
mod files;
mod formats;
mod kit;
mod mutants;
mod random;
mod refusals;
mod valgrind;
