//! Requests: one execution of the program, from its inputs to its outputs.

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

/// State of a request that is shared between the engine and waiting threads.
pub(crate) struct Request {
    is_cancelled: AtomicBool,
    /// Shared inputs, kept alive because kernels read them in place.
    inputs: Mutex<Vec<Arc<TensorData>>>,
    outcome: Mutex<Outcome>,
    done: Condition,
}

/// Result of a request, which can be taken once.
struct Outcome {
    is_done: bool,
    result: Option<Result<Outputs>>,
}

/// Memory that outputs are written to.
pub(crate) enum Outputs {
    Owned(Vec<TensorData>),
    /// Memory of a caller that blocks until the request is complete.
    Lent(Vec<*mut u8>),
}

// SAFETY: the engine has exclusive access to lent memory until the request is complete.
unsafe impl Send for Outputs {}

impl Outputs {
    pub(crate) fn pointer(&mut self, index: usize) -> *mut u8 {
        match self {
            Self::Owned(tensors) => tensors[index].bytes_mut().as_mut_ptr(),
            Self::Lent(pointers) => pointers[index],
        }
    }
}

impl Request {
    pub(crate) fn new() -> Arc<Self> {
        Self::with_inputs(vec![])
    }

    /// Builds a request that keeps shared inputs alive until it is complete.
    pub(crate) fn with_inputs(inputs: Vec<Arc<TensorData>>) -> Arc<Self> {
        Arc::new(Self {
            is_cancelled: AtomicBool::new(false),
            inputs: Mutex::new(inputs),
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
        self.inputs.lock().clear();
        let mut outcome = self.outcome.lock();
        *outcome = Outcome { is_done: true, result: Some(result) };
        self.done.notify_all();
    }

    pub(crate) fn is_done(&self) -> bool {
        self.outcome.lock().is_done
    }

    /// Waits until the request is complete, for at most `timeout`. Returns true if it is complete.
    pub(crate) fn wait_done(&self, timeout: Duration) -> bool {
        // A deadline that the clock cannot represent means no limit.
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

    /// Takes the result; `None` if the request is not complete or the result was already taken.
    pub(crate) fn try_take(&self) -> Option<Result<Outputs>> {
        self.outcome.lock().result.take()
    }

    /// Waits for the result and takes it. A second caller gets an error.
    pub(crate) fn wait(&self) -> Result<Outputs> {
        let mut outcome = self.outcome.lock();
        while !outcome.is_done {
            outcome = self.done.wait(outcome);
        }
        outcome.result.take().unwrap_or_else(|| Err(Error::Taken))
    }
}

/// Handle of a submitted request.
pub struct Ticket {
    pub(crate) request: Arc<Request>,
    pub(crate) id: u64,
    pub(crate) names: Arc<Vec<String>>,
}

impl Ticket {
    /// Returns the number of the request, in the order of admission.
    pub fn id(&self) -> u64 {
        self.id
    }

    /// Returns true if [`Ticket::wait`] will not block.
    pub fn is_done(&self) -> bool {
        self.request.is_done()
    }

    /// Cancels the request: it ends when its running kernels return. Has no effect on a complete request.
    pub fn cancel(&self) {
        self.request.cancel();
    }

    /// Returns a handle that cancels the request while another thread waits for it.
    pub fn canceller(&self) -> Canceller {
        Canceller(self.request.clone())
    }

    /// Waits until the request is complete, successfully or not, for at most `timeout`. Returns true if [`Ticket::wait`] will
    /// not block. Several threads may wait.
    pub fn wait_timeout(&self, timeout: Duration) -> bool {
        self.request.wait_done(timeout)
    }

    /// Waits for the outputs, with their names.
    pub fn wait(self) -> Result<Vec<(String, TensorData)>> {
        self.named(self.request.wait())
    }

    /// Takes the outputs; `None` if the request is not complete or they were already taken.
    pub fn try_take(&self) -> Option<Result<Vec<(String, TensorData)>>> {
        self.request.try_take().map(|result| self.named(result))
    }

    fn named(&self, result: Result<Outputs>) -> Result<Vec<(String, TensorData)>> {
        match result? {
            Outputs::Owned(tensors) => Ok(self.names.iter().cloned().zip(tensors).collect()),
            Outputs::Lent(_) => Err(Error::WrongOutput { reason: "they are in the caller's memory".into() }),
        }
    }
}

/// Cancellation handle of a request, usable from any thread and at any time.
#[derive(Clone)]
pub struct Canceller(Arc<Request>);

impl Canceller {
    /// Cancels the request; see [`Ticket::cancel`].
    pub fn cancel(&self) {
        self.0.cancel();
    }
}
