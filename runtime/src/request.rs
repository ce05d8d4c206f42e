//! One run of the program, from its inputs to its outputs.

use crate::{
    error::{Error, Result},
    tensor::TensorData,
};
use divi_threads::sync::{Condition, Mutex};
use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

/// What the engine and those who wait for it share of a request.
pub(crate) struct Request {
    is_cancelled: AtomicBool,
    /// Inputs that are read where they are.
    kept: Mutex<Vec<Arc<TensorData>>>,
    outcome: Mutex<Outcome>,
    done: Condition,
}

/// Result of a request, which can be taken once.
struct Outcome {
    is_done: bool,
    result: Option<Result<Outputs>>,
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
            outcome: Mutex::new(Outcome { is_done: false, result: None }),
            done: Condition::default(),
        })
    }

    pub(crate) fn cancel(&self) {
        self.is_cancelled.store(true, Ordering::Relaxed);
    }

    pub(crate) fn is_cancelled(&self) -> bool {
        self.is_cancelled.load(Ordering::Relaxed)
    }

    pub(crate) fn finish(&self, result: Result<Outputs>) {
        self.kept.lock().clear();
        let mut outcome = self.outcome.lock();
        *outcome = Outcome { is_done: true, result: Some(result) };
        self.done.notify_all();
    }

    pub(crate) fn is_done(&self) -> bool {
        self.outcome.lock().is_done
    }

    /// Waits until the request is done, or for as long as the timeout. Returns whether it is done.
    pub(crate) fn wait_done(&self, timeout: Duration) -> bool {
        // Timeouts that the clock cannot represent never pass.
        let deadline = Instant::now().checked_add(timeout);
        let mut outcome = self.outcome.lock();
        while !outcome.is_done {
            match deadline.map(|deadline| deadline.saturating_duration_since(Instant::now())) {
                Some(Duration::ZERO) => return false,
                Some(left) => outcome = self.done.wait_timeout(outcome, left),
                None => outcome = self.done.wait(outcome),
            }
        }
        true
    }

    /// Takes the result, if the request is done and it was not taken yet.
    pub(crate) fn try_take(&self) -> Option<Result<Outputs>> {
        self.outcome.lock().result.take()
    }

    /// Waits for the result and takes it. A second caller gets an error.
    pub(crate) fn wait(&self) -> Result<Outputs> {
        let mut outcome = self.outcome.lock();
        while !outcome.is_done {
            outcome = self.done.wait(outcome);
        }
        outcome.result.take().unwrap_or_else(|| Err(Error::WrongOutput { reason: "they were taken already".into() }))
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

    /// Waits until the request is done, with or without success, or for as long as the timeout. Returns whether
    /// [`Ticket::wait`] will return at once. Several threads may wait.
    pub fn wait_timeout(&self, timeout: Duration) -> bool {
        self.request.wait_done(timeout)
    }

    /// Waits for the outputs.
    pub fn wait(self) -> Result<Vec<(String, TensorData)>> {
        self.named(self.request.wait())
    }

    /// Takes the outputs of a request that is done. `None` if it is not, or if they were taken already.
    pub fn try_take(&self) -> Option<Result<Vec<(String, TensorData)>>> {
        self.request.try_take().map(|result| self.named(result))
    }

    fn named(&self, result: Result<Outputs>) -> Result<Vec<(String, TensorData)>> {
        match result? {
            Outputs::Owned(tensors) => Ok(self.names.iter().cloned().zip(tensors).collect()),
            Outputs::Lent(_) => Err(Error::WrongOutput { reason: "they are in memory of the caller".into() }),
        }
    }
}

/// Cancels a request from any thread, as often as wanted, also when it is done.
#[derive(Clone)]
pub struct Canceller(Arc<Request>);

impl Canceller {
    pub fn cancel(&self) {
        self.0.cancel();
    }
}
