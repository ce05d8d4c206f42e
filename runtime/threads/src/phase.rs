//! A number that two threads set in turns. A thread that waits for it polls for a while, then sleeps.

use crate::sync::{
    Condition, Mutex,
    atomic::{AtomicU32, Ordering, fence},
};
use std::{
    hint,
    time::{Duration, Instant},
};

/// Polls between two reads of the clock, which take longer.
const POLLS: u32 = 64;

/// Polls until something has happened, or the limit has passed. Returns true if it has happened.
pub(crate) fn spin(limit: Duration, mut has_happened: impl FnMut() -> bool) -> bool {
    if limit.is_zero() {
        return false;
    }
    if cfg!(loom) {
        // Time does not pass in models.
        return has_happened();
    }
    let start = Instant::now();
    loop {
        for _ in 0..POLLS {
            if has_happened() {
                return true;
            }
            hint::spin_loop();
        }
        if start.elapsed() >= limit {
            return false;
        }
    }
}

/// Progress of the work of two threads.
pub(crate) struct Phase {
    number: AtomicU32,
    /// Threads that sleep. Both may, when one of them is about to wake up.
    sleepers: AtomicU32,
    lock: Mutex<()>,
    changed: Condition,
    /// Time that a thread polls before it sleeps.
    spin_timeout: Duration,
}

impl Phase {
    pub(crate) fn new(spin_timeout: Duration) -> Self {
        let (number, sleepers) = (AtomicU32::new(0), AtomicU32::new(0));
        Self { number, sleepers, lock: Mutex::new(()), changed: Condition::default(), spin_timeout }
    }

    pub(crate) fn set(&self, number: u32) {
        self.number.store(number, Ordering::Release);
        // Either this thread sees the sleeper, or the sleeper sees the number: of two fences, one comes first.
        fence(Ordering::SeqCst);
        if self.sleepers.load(Ordering::Relaxed) > 0 {
            // The lock is free only while the other thread sleeps, or when it has seen the number.
            let _guard = self.lock.lock();
            self.changed.notify_all();
        }
    }

    /// Changes the number if it is still the old one. Wakes no thread.
    pub(crate) fn replace(&self, old: u32, new: u32) -> bool {
        self.number.compare_exchange(old, new, Ordering::AcqRel, Ordering::Acquire).is_ok()
    }

    pub(crate) fn wait_for(&self, number: u32) {
        if spin(self.spin_timeout, || self.number.load(Ordering::Acquire) == number) {
            return;
        }
        let mut guard = self.lock.lock();
        self.sleepers.fetch_add(1, Ordering::Relaxed);
        fence(Ordering::SeqCst);
        while self.number.load(Ordering::Acquire) != number {
            guard = self.changed.wait(guard);
        }
        self.sleepers.fetch_sub(1, Ordering::Relaxed);
    }
}
