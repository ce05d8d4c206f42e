//! A stub of CUDA for tests: its GPUs are on the host, do nothing before somebody waits for it, and keep a log. They fail when
//! they are told to.

mod gpu;
mod kernels;
mod queue;

use super::driver::{Api, Fault, Gpu, Outcome};
use divi_threads::sync::Mutex;
use gpu::StubGpu;
use queue::State;
use std::sync::Arc;

pub(crate) use kernels::square;

/// A machine with GPUs.
#[derive(Clone)]
pub(crate) struct Stub {
    pub(crate) count: usize,
    pub(crate) capability: (u32, u32),
    /// Why there is no driver.
    pub(crate) refusal: Option<String>,
    /// What a library's ways to compute something take, in microseconds, and in bytes of workspace.
    pub(crate) plans: Vec<(f64, u64)>,
    pub(crate) state: Arc<Mutex<State>>,
}

impl Stub {
    pub(crate) fn new() -> Self {
        let state = Arc::new(Mutex::new(State::new()));
        Self { count: 1, capability: (9, 0), refusal: None, plans: vec![], state }
    }

    /// How often something was done.
    pub(crate) fn times(&self, what: &str) -> usize {
        self.state.lock().log.iter().filter(|line| line.starts_with(what)).count()
    }

    pub(crate) fn events(&self) -> usize {
        self.state.lock().events.len()
    }

    /// How many pieces of memory are not freed.
    pub(crate) fn pieces(&self) -> usize {
        self.state.lock().sizes.len()
    }
}

impl Api for Stub {
    fn count(&self) -> Outcome<usize> {
        self.refusal.clone().map_or(Ok(self.count), |refusal| Err(Fault::Driver(refusal)))
    }

    fn open(&self, _: usize) -> Outcome<Arc<dyn Gpu>> {
        Ok(Arc::new(StubGpu { capability: self.capability, plans: self.plans.clone(), state: self.state.clone() }))
    }
}
