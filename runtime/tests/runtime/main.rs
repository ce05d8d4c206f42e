//! Tests of the runtime with bundles whose kernels are compiled from C, on one or more CPU devices.
#![cfg(test)]

mod drivers;
mod execution;
mod faults;
mod files;
mod formats;
mod hosts;
mod kit;
mod loopback;
mod mutants;
mod random;
mod recovery;
mod rejections;
mod valgrind;
