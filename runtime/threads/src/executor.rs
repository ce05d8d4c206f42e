//! Executors: the ready queues of a device, of links, or of both, and the thread that runs their steps.

use crate::{
    cores::pin,
    phase::spin,
    sync::{
        Condition, Guard, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
};
use std::{cmp::Reverse, collections::BinaryHeap, io, time::Duration};

/// Step whose dependences are satisfied. The derived order is the scheduling priority.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Ready {
    /// Sequence number of the request. Earlier requests run first: they hold memory that later ones wait for.
    pub request: u64,
    /// Priority of the step within its request; lower runs first.
    pub rank: u32,
    /// Index of the step.
    pub step: u32,
    /// Index of the slot that the request occupies.
    pub slot: u32,
}

/// Ready queues, one per lane, and the state that is borrowed by the thread that runs a step.
pub struct Executor<S> {
    queues: Mutex<Queues>,
    changed: Condition,
    /// Number of steps in the queues, readable without the lock.
    ready: AtomicUsize,
    /// Time that the thread polls for ready steps before it sleeps.
    spin_timeout: Duration,
    state: Mutex<S>,
}

struct Queues {
    /// One queue per lane.
    lanes: Vec<BinaryHeap<Reverse<Ready>>>,
    /// True while steps run, on the executor's thread or on a thread that called [`Executor::try_claim`].
    is_taken: bool,
    is_closed: bool,
}

impl<S: Default> Executor<S> {
    /// Builds an executor. `most_ready` is the maximum number of ready steps in a lane, so that queues never reallocate.
    pub fn new(lanes: usize, most_ready: usize, spin_timeout: Duration) -> Self {
        let lanes = (0..lanes).map(|_| BinaryHeap::with_capacity(most_ready)).collect();
        let queues = Mutex::new(Queues { lanes, is_taken: false, is_closed: false });
        Self {
            queues,
            changed: Condition::default(),
            ready: AtomicUsize::new(0),
            spin_timeout,
            state: Mutex::default(),
        }
    }

    /// Locks the state. Blocks while a step runs.
    pub fn state(&self) -> Guard<'_, S> {
        self.state.lock()
    }

    /// Adds a step to the ready queue of a lane.
    pub fn push(&self, lane: usize, ready: Ready) {
        let mut queues = self.queues.lock();
        queues.lanes[lane].push(Reverse(ready));
        self.ready.fetch_add(1, Ordering::Release);
        if !queues.is_taken {
            self.changed.notify_one();
        }
    }

    /// Returns true if steps are ready. Lock-free, so the result may be outdated.
    pub fn has_ready(&self) -> bool {
        self.ready.load(Ordering::Acquire) > 0
    }

    /// Runs steps until the executor is closed.
    pub fn serve(&self, mut run: impl FnMut(&mut S, Ready)) {
        let mut queues = self.queues.lock();
        loop {
            if queues.is_closed {
                return;
            }
            if queues.is_taken {
                queues = self.changed.wait(queues);
                continue;
            }
            if let Some(ready) = self.pop(&mut queues, |_| true) {
                queues.is_taken = true;
                drop(queues);
                run(&mut self.state.lock(), ready);
                queues = self.queues.lock();
                queues.is_taken = false;
                continue;
            }
            drop(queues);
            spin(self.spin_timeout, || self.has_ready());
            queues = self.queues.lock();
            if !queues.is_closed && (queues.is_taken || queues.lanes.iter().all(BinaryHeap::is_empty)) {
                queues = self.changed.wait(queues);
            }
        }
    }

    /// Claims the right to run steps on the calling thread. Returns false if a step is running or the executor is closed.
    /// After true, [`Executor::run_claimed`] must be called.
    pub fn try_claim(&self) -> bool {
        let mut queues = self.queues.lock();
        !queues.is_closed && !std::mem::replace(&mut queues.is_taken, true)
    }

    /// Runs steps on the calling thread until the queues are empty, `may_run` rejects the first step, or `is_enough` returns
    /// true after a step.
    pub fn run_claimed(
        &self,
        mut run: impl FnMut(&mut S, Ready),
        may_run: impl Fn(Ready) -> bool,
        is_enough: impl Fn() -> bool,
    ) {
        let mut state = self.state.lock();
        let mut queues = self.queues.lock();
        while let Some(ready) = self.pop(&mut queues, &may_run) {
            drop(queues);
            run(&mut state, ready);
            let is_done = is_enough();
            queues = self.queues.lock();
            if is_done {
                break;
            }
        }
        queues.is_taken = false;
        if queues.is_closed || queues.lanes.iter().any(|lane| !lane.is_empty()) {
            self.changed.notify_one();
        }
    }

    /// Pops the first step of all lanes if `may_run` accepts it.
    fn pop(&self, queues: &mut Queues, may_run: impl Fn(Ready) -> bool) -> Option<Ready> {
        let first = queues.lanes.iter_mut().max_by_key(|lane| lane.peek().copied())?;
        first.peek().filter(|Reverse(ready)| may_run(*ready))?;
        let Reverse(ready) = first.pop()?;
        self.ready.fetch_sub(1, Ordering::Relaxed);
        Some(ready)
    }

    /// Makes [`Executor::serve`] return after the step that is running; steps still queued do not run.
    pub fn close(&self) {
        let mut queues = self.queues.lock();
        queues.is_closed = true;
        self.changed.notify_all();
    }
}

/// Starts the thread of an executor, pinned to `core` if given.
pub fn start(
    name: String,
    core: Option<usize>,
    serve: impl FnOnce() + Send + 'static,
) -> io::Result<std::thread::JoinHandle<()>> {
    let run = move || {
        if let Some(core) = core {
            pin(core);
        }
        serve();
    };
    std::thread::Builder::new().name(name).spawn(run)
}
