//! Threads of the runtime: locks, thread pools that split kernels, and executors that run steps as they become ready.
//!
//! All that threads share without a lock is here, and `models` runs it in every order in which threads can run.

mod cores;
mod executor;
#[cfg(all(test, loom))]
mod models;
mod phase;
pub mod sync;
mod thread_pool;

pub use cores::{core_count, cores, on_cores, pin};
pub use executor::{Executor, Ready, start};
pub use thread_pool::{Kernel, ThreadPool, Work};
