//! The CUDA driver, for questions about the GPUs of this machine.

mod ffi;

pub(super) use ffi::{gpus, version};
