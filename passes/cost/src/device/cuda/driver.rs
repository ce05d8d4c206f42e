//! Queries of the CUDA driver about the GPUs of this machine.

mod ffi;

pub(super) use ffi::{gpus, version};
