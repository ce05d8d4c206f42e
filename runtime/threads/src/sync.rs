//! Locks, condition variables, atomics and cells. Under `--cfg loom` they are loom's, for the model checker (`models`).

#[cfg(loom)]
use loom::sync as base;
#[cfg(not(loom))]
use std::sync as base;

use std::{
    sync::{PoisonError, TryLockError},
    time::Duration,
};

pub use base::MutexGuard as Guard;
pub(crate) use base::atomic;

#[cfg(loom)]
pub(crate) use loom::{cell::UnsafeCell, thread};
#[cfg(not(loom))]
pub(crate) use std::thread;

/// Mutex without poisoning: the guarded data is valid between any two statements.
pub struct Mutex<T>(base::Mutex<T>);

impl<T: Default> Default for Mutex<T> {
    fn default() -> Self {
        Self::new(T::default())
    }
}

impl<T> Mutex<T> {
    /// Builds an unlocked mutex.
    pub fn new(value: T) -> Self {
        Self(base::Mutex::new(value))
    }

    /// Blocks until the mutex is free, and locks it.
    pub fn lock(&self) -> Guard<'_, T> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Locks the mutex if it is free.
    pub fn try_lock(&self) -> Option<Guard<'_, T>> {
        match self.0.try_lock() {
            Ok(guard) => Some(guard),
            Err(TryLockError::Poisoned(poisoned)) => Some(poisoned.into_inner()),
            Err(TryLockError::WouldBlock) => None,
        }
    }

    /// Returns the guarded value.
    pub fn into_inner(self) -> T {
        self.0.into_inner().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Condition variable.
pub struct Condition(base::Condvar);

impl Default for Condition {
    fn default() -> Self {
        Self(base::Condvar::new())
    }
}

impl Condition {
    /// Unlocks, waits for a notification, and locks again. Spurious wakeups are possible.
    pub fn wait<'a, T>(&self, guard: Guard<'a, T>) -> Guard<'a, T> {
        self.0.wait(guard).unwrap_or_else(PoisonError::into_inner)
    }

    /// As [`Condition::wait`], for at most `timeout`.
    pub fn wait_timeout<'a, T>(&self, guard: Guard<'a, T>, timeout: Duration) -> Guard<'a, T> {
        self.0.wait_timeout(guard, timeout).unwrap_or_else(PoisonError::into_inner).0
    }

    /// Wakes one waiting thread.
    pub fn notify_one(&self) {
        self.0.notify_one();
    }

    /// Wakes all waiting threads.
    pub fn notify_all(&self) {
        self.0.notify_all();
    }
}

/// `std::cell::UnsafeCell` with loom's interface.
#[cfg(not(loom))]
pub(crate) struct UnsafeCell<T>(std::cell::UnsafeCell<T>);

#[cfg(not(loom))]
impl<T> UnsafeCell<T> {
    pub(crate) fn new(value: T) -> Self {
        Self(std::cell::UnsafeCell::new(value))
    }

    pub(crate) fn with<R>(&self, read: impl FnOnce(*const T) -> R) -> R {
        read(self.0.get())
    }

    pub(crate) fn with_mut<R>(&self, write: impl FnOnce(*mut T) -> R) -> R {
        write(self.0.get())
    }
}
