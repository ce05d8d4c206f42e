//! Ready queues, and who serves them: a thread has a station, with the queue of a device, of links, or of both.

use crate::{
    error::Error,
    phase::spin,
    span::Spans,
    sync::{Condition, Guard, Mutex},
};
use std::{
    cmp::Reverse,
    collections::BinaryHeap,
    sync::atomic::{AtomicUsize, Ordering},
    time::Duration,
};

/// A step that could run. The order is that in which they do.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Ready {
    /// Earlier requests first: they hold memory that later ones wait for.
    pub(crate) request: u64,
    pub(crate) rank: u32,
    pub(crate) step: u32,
    pub(crate) slot: u32,
}

pub(crate) struct Station {
    queues: Mutex<Queues>,
    changed: Condition,
    /// As many as there are in the queues, for those who look without the lock.
    ready: AtomicUsize,
    /// Time that its thread polls for steps before it sleeps.
    spin_timeout: Duration,
    /// What the one who runs a step has for himself.
    seat: Mutex<Seat>,
}

struct Queues {
    /// One for each lane of the station.
    lanes: Vec<BinaryHeap<Reverse<Ready>>>,
    /// Somebody runs steps: the station's thread, or a caller who does not want to wait for it.
    is_taken: bool,
    is_closed: bool,
}

pub(crate) struct Seat {
    pub(crate) spans: Spans,
}

impl Station {
    /// The most steps that may be ready in a lane at once is known, so that queues never grow.
    pub(crate) fn new(lanes: usize, most_ready: usize, spin_timeout: Duration) -> Self {
        let lanes = (0..lanes).map(|_| BinaryHeap::with_capacity(most_ready)).collect();
        let queues = Mutex::new(Queues { lanes, is_taken: false, is_closed: false });
        let seat = Mutex::new(Seat { spans: Spans::default() });
        Self { queues, changed: Condition::new(), ready: AtomicUsize::new(0), spin_timeout, seat }
    }

    pub(crate) fn seat(&self) -> Guard<'_, Seat> {
        self.seat.lock()
    }

    pub(crate) fn push(&self, lane: usize, ready: Ready) {
        let mut queues = self.queues.lock();
        queues.lanes[lane].push(Reverse(ready));
        self.ready.fetch_add(1, Ordering::Release);
        if !queues.is_taken {
            self.changed.notify_one();
        }
    }

    /// Whether steps wait here, as far as can be seen without the lock.
    pub(crate) fn has_ready(&self) -> bool {
        self.ready.load(Ordering::Acquire) > 0
    }

    /// Runs steps until the station is closed.
    pub(crate) fn serve(&self, mut run: impl FnMut(&mut Seat, Ready)) {
        let mut queues = self.queues.lock();
        loop {
            if queues.is_closed {
                return;
            }
            if queues.is_taken {
                self.changed.wait(&mut queues);
                continue;
            }
            if let Some(ready) = self.pop(&mut queues, |_| true) {
                queues.is_taken = true;
                drop(queues);
                run(&mut self.seat.lock(), ready);
                queues = self.queues.lock();
                queues.is_taken = false;
                continue;
            }
            drop(queues);
            spin(self.spin_timeout, || self.has_ready());
            queues = self.queues.lock();
            if !queues.is_closed && (queues.is_taken || queues.lanes.iter().all(BinaryHeap::is_empty)) {
                self.changed.wait(&mut queues);
            }
        }
    }

    /// Takes the place of the station's thread, if nobody has it: [`Station::drive`] must follow.
    pub(crate) fn take(&self) -> bool {
        let mut queues = self.queues.lock();
        !queues.is_closed && !std::mem::replace(&mut queues.is_taken, true)
    }

    /// Runs steps instead of the station's thread, until there are none, the next is not his to run, or it is enough.
    pub(crate) fn drive(
        &self,
        mut run: impl FnMut(&mut Seat, Ready),
        may_run: impl Fn(Ready) -> bool,
        is_enough: impl Fn() -> bool,
    ) {
        let mut seat = self.seat.lock();
        let mut queues = self.queues.lock();
        while let Some(ready) = self.pop(&mut queues, &may_run) {
            drop(queues);
            run(&mut seat, ready);
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
    pub(crate) fn close(&self) {
        let mut queues = self.queues.lock();
        queues.is_closed = true;
        self.changed.notify_all();
    }
}

/// Starts the thread of a station.
pub(crate) fn start(
    name: String,
    core: Option<usize>,
    serve: impl FnOnce() + Send + 'static,
) -> Result<std::thread::JoinHandle<()>, Error> {
    let run = move || {
        if let Some(core) = core {
            crate::cpu::pin(core);
        }
        serve();
    };
    std::thread::Builder::new().name(name).spawn(run).map_err(Error::Thread)
}
