//! Phase number that two threads set in turn. A waiting thread polls until the spin timeout, then sleeps.

use crate::sync::{
    Condition, Mutex,
    atomic::{AtomicU32, Ordering, fence},
};
use std::{
    hint,
    time::{Duration, Instant},
};

/// Number of polls between two reads of the clock, which are more expensive.
const POLLS: u32 = 64;

/// Polls a condition until it holds or the time limit expires. Returns true if it holds.
pub(crate) fn spin(limit: Duration, mut condition: impl FnMut() -> bool) -> bool {
    if limit.is_zero() {
        return false;
    }
    if cfg!(loom) {
        // loom does not model time.
        return condition();
    }
    let start = Instant::now();
    loop {
        for _ in 0..POLLS {
            if condition() {
                return true;
            }
            hint::spin_loop();
        }
        if start.elapsed() >= limit {
            return false;
        }
    }
}

/// State of the handshake between two threads.
pub(crate) struct Phase {
    number: AtomicU32,
    /// Number of sleeping threads. It can be 2 while one of them is waking up.
    sleepers: AtomicU32,
    lock: Mutex<()>,
    changed: Condition,
    /// Time that a waiting thread polls before it sleeps.
    spin_timeout: Duration,
}

impl Phase {
    pub(crate) fn new(spin_timeout: Duration) -> Self {
        let (number, sleepers) = (AtomicU32::new(0), AtomicU32::new(0));
        Self { number, sleepers, lock: Mutex::new(()), changed: Condition::default(), spin_timeout }
    }

    pub(crate) fn set(&self, number: u32) {
        self.number.store(number, Ordering::Release);
        // SeqCst fences are totally ordered: either this thread observes the sleeper, or the sleeper observes the number.
        fence(Ordering::SeqCst);
        if self.sleepers.load(Ordering::Relaxed) > 0 {
            // The other thread releases the lock only by sleeping or after it has observed the number: no wakeup is lost.
            let _guard = self.lock.lock();
            self.changed.notify_all();
        }
    }

    /// Changes the number if it is still `old` (compare-and-swap). Wakes no thread.
    pub(crate) fn compare_exchange(&self, old: u32, new: u32) -> bool {
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
