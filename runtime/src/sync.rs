//! Locks and conditions of POSIX threads. Those of `std` are made of futexes, which valgrind's race detectors do not know:
//! with these, they see who waits for whom.

use std::{
    cell::UnsafeCell,
    marker::PhantomData,
    ops::{Deref, DerefMut},
};

/// As in `std`, but never poisoned: what it guards is sound between any two statements.
pub(crate) struct Mutex<T> {
    /// Boxed, because it must not move while it is used.
    raw: Box<UnsafeCell<libc::pthread_mutex_t>>,
    value: UnsafeCell<T>,
}

// SAFETY: the value is reached by one thread at a time.
unsafe impl<T: Send> Send for Mutex<T> {}
// SAFETY: as above.
unsafe impl<T: Send> Sync for Mutex<T> {}

pub(crate) struct Guard<'a, T> {
    mutex: &'a Mutex<T>,
    /// The thread that locks is the one that unlocks.
    stays: PhantomData<*const ()>,
}

impl<T> Mutex<T> {
    pub(crate) fn new(value: T) -> Self {
        let raw = Box::new(UnsafeCell::new(libc::PTHREAD_MUTEX_INITIALIZER));
        // Not needed by the system, but by those who watch what is done with it.
        // SAFETY: it is where it will stay, and nobody has it yet.
        unsafe { libc::pthread_mutex_init(raw.get(), std::ptr::null()) };
        Self { raw, value: UnsafeCell::new(value) }
    }

    pub(crate) fn lock(&self) -> Guard<'_, T> {
        // SAFETY: the mutex is initialised and stays where it is.
        let code = unsafe { libc::pthread_mutex_lock(self.raw.get()) };
        debug_assert_eq!(code, 0);
        Guard { mutex: self, stays: PhantomData }
    }

    pub(crate) fn into_inner(self) -> T {
        let this = std::mem::ManuallyDrop::new(self);
        // SAFETY: both fields are read once, and not dropped by `this`.
        let (raw, value) = unsafe { (std::ptr::read(&this.raw), std::ptr::read(&this.value)) };
        // SAFETY: nobody else has it, so it is not locked.
        unsafe { libc::pthread_mutex_destroy(raw.get()) };
        value.into_inner()
    }
}

impl<T> Drop for Mutex<T> {
    fn drop(&mut self) {
        // SAFETY: nobody else has it, so it is not locked.
        unsafe { libc::pthread_mutex_destroy(self.raw.get()) };
    }
}

impl<T> Deref for Guard<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        // SAFETY: the mutex is locked by this thread.
        unsafe { &*self.mutex.value.get() }
    }
}

impl<T> DerefMut for Guard<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: the mutex is locked by this thread, and the guard is borrowed by this caller alone.
        unsafe { &mut *self.mutex.value.get() }
    }
}

impl<T> Drop for Guard<'_, T> {
    fn drop(&mut self) {
        // SAFETY: this thread locked it.
        unsafe { libc::pthread_mutex_unlock(self.mutex.raw.get()) };
    }
}

pub(crate) struct Condition {
    /// Boxed, because it must not move while it is used.
    raw: Box<UnsafeCell<libc::pthread_cond_t>>,
}

// SAFETY: conditions are made to be used by several threads.
unsafe impl Send for Condition {}
// SAFETY: as above.
unsafe impl Sync for Condition {}

impl Condition {
    pub(crate) fn new() -> Self {
        let raw = Box::new(UnsafeCell::new(libc::PTHREAD_COND_INITIALIZER));
        // SAFETY: as for a mutex.
        unsafe { libc::pthread_cond_init(raw.get(), std::ptr::null()) };
        Self { raw }
    }

    /// Lets go of the lock, and has it again when somebody notified, or for no reason.
    pub(crate) fn wait<T>(&self, guard: &mut Guard<'_, T>) {
        // SAFETY: both are initialised, and this thread has the lock.
        unsafe { libc::pthread_cond_wait(self.raw.get(), guard.mutex.raw.get()) };
    }

    pub(crate) fn notify_one(&self) {
        // SAFETY: the condition is initialised.
        unsafe { libc::pthread_cond_signal(self.raw.get()) };
    }

    pub(crate) fn notify_all(&self) {
        // SAFETY: as above.
        unsafe { libc::pthread_cond_broadcast(self.raw.get()) };
    }
}

impl Drop for Condition {
    fn drop(&mut self) {
        // SAFETY: nobody else has it, so nobody waits.
        unsafe { libc::pthread_cond_destroy(self.raw.get()) };
    }
}
