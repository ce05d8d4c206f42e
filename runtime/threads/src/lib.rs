//! Threads of the runtime: locks, thread pools that split kernels, and executors that run steps as they become ready.
//!
//! All lock-free code of the runtime is in this crate; `models` checks it with loom.

mod cores;
mod executor;
#[cfg(all(test, loom))]
mod models;
mod phase;
pub mod sync;
mod thread_pool;

pub use cores::{core_count, cores, pin, run_on_cores, wake_precisely};
pub use executor::{Executor, Ready, start};
pub use thread_pool::{Kernel, KernelLaunch, ThreadPool};
