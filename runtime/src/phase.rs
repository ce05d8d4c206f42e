//! A number that two threads hand back and forth: quick if it changes soon, idle if it does not.

use crate::sync::{Condition, Mutex};
use std::{
    hint,
    sync::atomic::{AtomicBool, AtomicU32, Ordering},
    time::{Duration, Instant},
};

/// How often the clock is not looked at while waiting: it takes longer than looking at a number.
const LOOKS: u32 = 64;

/// Looks again and again for a while whether something has happened.
pub(crate) fn spin(limit: Duration, mut has_happened: impl FnMut() -> bool) -> bool {
    if limit.is_zero() {
        return false;
    }
    let start = Instant::now();
    loop {
        for _ in 0..LOOKS {
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

/// How far the work of two threads is. One of them may wait at a time.
pub(crate) struct Phase {
    number: AtomicU32,
    is_waited_for: AtomicBool,
    lock: Mutex<()>,
    changed: Condition,
    /// How long to look at the number before sleeping. Zero: everything is done under the lock.
    patience: Duration,
}

// All stores are swaps, which valgrind's race detectors know to be atomic.
impl Phase {
    pub(crate) fn new(patience: Duration) -> Self {
        let (number, is_waited_for) = (AtomicU32::new(0), AtomicBool::new(false));
        Self { number, is_waited_for, lock: Mutex::new(()), changed: Condition::new(), patience }
    }

    pub(crate) fn set(&self, number: u32) {
        if self.patience.is_zero() {
            let _guard = self.lock.lock();
            self.number.swap(number, Ordering::SeqCst);
            self.changed.notify_one();
            return;
        }
        self.number.swap(number, Ordering::SeqCst);
        // Either this sees that somebody waits, or the one who waits sees the number. The lock is free only when he sleeps.
        if self.is_waited_for.load(Ordering::SeqCst) {
            let _guard = self.lock.lock();
            self.changed.notify_one();
        }
    }

    /// Changes the number if it is still the old one. Nobody is told.
    pub(crate) fn replace(&self, old: u32, new: u32) -> bool {
        let _guard = self.patience.is_zero().then(|| self.lock.lock());
        self.number.compare_exchange(old, new, Ordering::SeqCst, Ordering::SeqCst).is_ok()
    }

    pub(crate) fn wait_for(&self, number: u32) {
        if spin(self.patience, || self.number.load(Ordering::Acquire) == number) {
            return;
        }
        let mut guard = self.lock.lock();
        self.is_waited_for.swap(true, Ordering::SeqCst);
        while self.number.load(Ordering::SeqCst) != number {
            self.changed.wait(&mut guard);
        }
        self.is_waited_for.swap(false, Ordering::SeqCst);
    }
}
