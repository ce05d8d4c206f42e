//! Bundles with GPUs, on a stub of CUDA.

mod choices;
mod faults;
mod kit;
mod requests;
mod weights;
