//! Bundles with GPUs on the stub of CUDA.

mod choices;
mod faults;
mod kit;
mod requests;
mod weights;
