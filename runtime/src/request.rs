//! One run of the program, from its inputs to its outputs.

use crate::{
    error::{Error, Result},
    sync::{Condition, Mutex},
    tensor::TensorData,
};
use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

/// What the engine and those who wait for it share of a request.
pub(crate) struct Request {
    is_cancelled: AtomicBool,
    /// Inputs that are read where they are.
    kept: Mutex<Vec<Arc<TensorData>>>,
    outcome: Mutex<Option<Result<Outputs>>>,
    done: Condition,
}

/// Where outputs go.
pub(crate) enum Outputs {
    Owned(Vec<TensorData>),
    /// Memory of a caller that waits until the request is done.
    Lent(Vec<*mut u8>),
}

// SAFETY: lent memory is the engine's until the request is done.
unsafe impl Send for Outputs {}

impl Outputs {
    pub(crate) fn pointer(&mut self, index: usize) -> *mut u8 {
        match self {
            Self::Owned(tensors) => tensors[index].bytes_mut().as_mut_ptr(),
            Self::Lent(places) => places[index],
        }
    }
}

impl Request {
    pub(crate) fn new() -> Arc<Self> {
        Self::keeping(vec![])
    }

    /// One that has inputs of its own until it is done.
    pub(crate) fn keeping(inputs: Vec<Arc<TensorData>>) -> Arc<Self> {
        Arc::new(Self {
            is_cancelled: AtomicBool::new(false),
            kept: Mutex::new(inputs),
            outcome: Mutex::new(None),
            done: Condition::new(),
        })
    }

    pub(crate) fn cancel(&self) {
        // A swap, not a store: valgrind's race detectors know it to be atomic.
        self.is_cancelled.swap(true, Ordering::Relaxed);
    }

    pub(crate) fn is_cancelled(&self) -> bool {
        self.is_cancelled.load(Ordering::Relaxed)
    }

    pub(crate) fn finish(&self, outcome: Result<Outputs>) {
        self.kept.lock().clear();
        let mut place = self.outcome.lock();
        *place = Some(outcome);
        self.done.notify_all();
    }

    pub(crate) fn is_done(&self) -> bool {
        self.outcome.lock().is_some()
    }

    /// Waits for the outcome, which can be had once.
    pub(crate) fn wait(&self) -> Result<Outputs> {
        let mut outcome = self.outcome.lock();
        loop {
            match outcome.take() {
                Some(outcome) => return outcome,
                None => self.done.wait(&mut outcome),
            }
        }
    }
}

/// A request that was submitted.
pub struct Ticket {
    pub(crate) request: Arc<Request>,
    pub(crate) id: u64,
    pub(crate) names: Arc<Vec<String>>,
}

impl Ticket {
    /// Requests are counted in the order in which they were let in.
    pub fn id(&self) -> u64 {
        self.id
    }

    /// Whether [`Ticket::wait`] will return at once.
    pub fn is_done(&self) -> bool {
        self.request.is_done()
    }

    /// Ends the request as soon as the kernels that it is in return. If it is done already, nothing happens.
    pub fn cancel(&self) {
        self.request.cancel();
    }

    /// What cancels the request while another thread waits for it.
    pub fn canceller(&self) -> Canceller {
        Canceller(self.request.clone())
    }

    /// Waits for the outputs.
    pub fn wait(self) -> Result<Vec<(String, TensorData)>> {
        match self.request.wait()? {
            Outputs::Owned(tensors) => Ok(self.names.iter().cloned().zip(tensors).collect()),
            Outputs::Lent(_) => Err(Error::WrongOutput { reason: "they are somebody else's".into() }),
        }
    }
}

#[derive(Clone)]
pub struct Canceller(Arc<Request>);

impl Canceller {
    pub fn cancel(&self) {
        self.0.cancel();
    }
}
