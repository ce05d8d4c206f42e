//! Executors: ready queues of a device, of links, or of both, and the thread that runs their steps.

use crate::{
    cores::pin,
    phase::spin,
    sync::{
        Condition, Guard, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
};
use std::{cmp::Reverse, collections::BinaryHeap, io, time::Duration};

/// A step that could run. The order is that in which they do.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Ready {
    /// Earlier requests first: they hold memory that later ones wait for.
    pub request: u64,
    pub rank: u32,
    pub step: u32,
    pub slot: u32,
}

/// Ready queues, one for each of its lanes, and a state that is borrowed by the thread that runs a step.
pub struct Executor<S> {
    queues: Mutex<Queues>,
    changed: Condition,
    /// Number of steps in the queues, for reads without the lock.
    ready: AtomicUsize,
    /// Time that the thread polls for steps before it sleeps.
    spin_timeout: Duration,
    state: Mutex<S>,
}

struct Queues {
    /// One for each lane.
    lanes: Vec<BinaryHeap<Reverse<Ready>>>,
    /// True while steps are run: by the executor's thread, or by one that has taken its place.
    is_taken: bool,
    is_closed: bool,
}

impl<S: Default> Executor<S> {
    /// The most steps that may be ready in a lane at once is known, so that queues never grow.
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

    pub fn state(&self) -> Guard<'_, S> {
        self.state.lock()
    }

    pub fn push(&self, lane: usize, ready: Ready) {
        let mut queues = self.queues.lock();
        queues.lanes[lane].push(Reverse(ready));
        self.ready.fetch_add(1, Ordering::Release);
        if !queues.is_taken {
            self.changed.notify_one();
        }
    }

    /// True if steps are ready, as far as can be seen without the lock.
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

    /// Takes the place of the executor's thread if no other thread has it. [`Executor::drive`] must follow.
    pub fn take(&self) -> bool {
        let mut queues = self.queues.lock();
        !queues.is_closed && !std::mem::replace(&mut queues.is_taken, true)
    }

    /// Runs steps in the place of the executor's thread, until there are none, the next may not be run, or it is enough.
    pub fn drive(
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
            let ends = is_enough();
            queues = self.queues.lock();
            if ends {
                break;
            }
        }
        queues.is_taken = false;
        if queues.is_closed || queues.lanes.iter().any(|lane| !lane.is_empty()) {
            self.changed.notify_one();
        }
    }

    /// Takes the step that is to run first, if it may run.
    fn pop(&self, queues: &mut Queues, may_run: impl Fn(Ready) -> bool) -> Option<Ready> {
        let first = queues.lanes.iter_mut().max_by_key(|lane| lane.peek().copied())?;
        first.peek().filter(|Reverse(ready)| may_run(*ready))?;
        let Reverse(ready) = first.pop()?;
        self.ready.fetch_sub(1, Ordering::Relaxed);
        Some(ready)
    }

    /// Makes its thread return when it is idle.
    pub fn close(&self) {
        let mut queues = self.queues.lock();
        queues.is_closed = true;
        self.changed.notify_all();
    }
}

/// Starts the thread of an executor.
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
