//! A number that two threads hand back and forth: quick if it changes soon, idle if it does not.

use crate::sync::{Condition, Mutex};
use std::{
    hint,
    sync::atomic::{AtomicU32, Ordering},
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

/// How far the work of two threads is.
pub(crate) struct Phase {
    number: AtomicU32,
    /// How many sleep; both may, when one of them is about to wake up.
    sleepers: AtomicU32,
    lock: Mutex<()>,
    changed: Condition,
    /// How long to look at the number before sleeping. Zero: everything is done under the lock.
    spin_timeout: Duration,
}

// All stores are swaps, which valgrind's race detectors know to be atomic.
impl Phase {
    pub(crate) fn new(spin_timeout: Duration) -> Self {
        let (number, sleepers) = (AtomicU32::new(0), AtomicU32::new(0));
        Self { number, sleepers, lock: Mutex::new(()), changed: Condition::new(), spin_timeout }
    }

    pub(crate) fn set(&self, number: u32) {
        if self.spin_timeout.is_zero() {
            let _guard = self.lock.lock();
            self.number.swap(number, Ordering::SeqCst);
            self.changed.notify_all();
            return;
        }
        self.number.swap(number, Ordering::SeqCst);
        // Either this sees the one who goes to sleep, or he sees the number. The lock is free only when he sleeps.
        if self.sleepers.load(Ordering::SeqCst) > 0 {
            let _guard = self.lock.lock();
            self.changed.notify_all();
        }
    }

    /// Changes the number if it is still the old one. Nobody is told.
    pub(crate) fn replace(&self, old: u32, new: u32) -> bool {
        let _guard = self.spin_timeout.is_zero().then(|| self.lock.lock());
        self.number.compare_exchange(old, new, Ordering::SeqCst, Ordering::SeqCst).is_ok()
    }

    pub(crate) fn wait_for(&self, number: u32) {
        if spin(self.spin_timeout, || self.number.load(Ordering::Acquire) == number) {
            return;
        }
        let mut guard = self.lock.lock();
        self.sleepers.fetch_add(1, Ordering::SeqCst);
        while self.number.load(Ordering::SeqCst) != number {
            self.changed.wait(&mut guard);
        }
        self.sleepers.fetch_sub(1, Ordering::SeqCst);
    }
}
