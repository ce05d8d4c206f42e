//! Stub of CUDA for tests. Its GPUs run on the host, execute work lazily (only when the host waits for it), keep a log, and
//! fail on demand.

mod gpu;
mod kernels;
mod queue;

use super::driver::{Api, CudaError, CudaResult, Gpu};
use divi_threads::sync::Mutex;
use gpu::StubGpu;
use queue::State;
use std::sync::Arc;

pub(crate) use kernels::square;

/// Machine with stub GPUs.
#[derive(Clone)]
pub(crate) struct Stub {
    pub(crate) count: usize,
    pub(crate) capability: (u32, u32),
    /// Error of the driver, if it is to be missing.
    pub(crate) driver_error: Option<String>,
    /// Algorithms of the library: time in µs, and workspace in bytes.
    pub(crate) plans: Vec<(f64, u64)>,
    pub(crate) state: Arc<Mutex<State>>,
}

impl Stub {
    pub(crate) fn new() -> Self {
        let state = Arc::new(Mutex::new(State::new()));
        Self { count: 1, capability: (9, 0), driver_error: None, plans: vec![], state }
    }

    /// Returns the number of log lines with a prefix.
    pub(crate) fn times(&self, what: &str) -> usize {
        self.state.lock().log.iter().filter(|line| line.starts_with(what)).count()
    }

    pub(crate) fn events(&self) -> usize {
        self.state.lock().events.len()
    }

    /// Returns the number of copies from or to memory that is neither on the GPU nor pinned and live.
    pub(crate) fn pageable_copies(&self) -> usize {
        let state = self.state.lock();
        let is_known = |address: &usize| {
            state.sizes.iter().any(|(begin, layout)| (*begin..begin + layout.size()).contains(address))
        };
        state.copied.iter().filter(|(to, from)| !is_known(to) || !is_known(from)).count()
    }

    /// Returns the number of live allocations.
    pub(crate) fn pieces(&self) -> usize {
        self.state.lock().sizes.len()
    }
}

impl Api for Stub {
    fn count(&self) -> CudaResult<usize> {
        self.driver_error.clone().map_or(Ok(self.count), |error| Err(CudaError::Driver(error)))
    }

    fn open(&self, _: usize) -> CudaResult<Arc<dyn Gpu>> {
        Ok(Arc::new(StubGpu { capability: self.capability, plans: self.plans.clone(), state: self.state.clone() }))
    }
}
