//! Locks and conditions of POSIX threads. Those of `std` are made of futexes, which valgrind's race detectors do not know:
//! with these, they see who waits for whom.

use std::{
    cell::UnsafeCell,
    marker::PhantomData,
    ops::{Deref, DerefMut},
    time::Duration,
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
        // Timeouts are measured on the monotonic clock.
        let mut attributes = std::mem::MaybeUninit::<libc::pthread_condattr_t>::uninit();
        // SAFETY: the attributes are initialised before they are used and destroyed after; the condition as for a mutex.
        unsafe {
            libc::pthread_condattr_init(attributes.as_mut_ptr());
            libc::pthread_condattr_setclock(attributes.as_mut_ptr(), libc::CLOCK_MONOTONIC);
            libc::pthread_cond_init(raw.get(), attributes.as_ptr());
            libc::pthread_condattr_destroy(attributes.as_mut_ptr());
        }
        Self { raw }
    }

    /// Lets go of the lock, and has it again when somebody notified, or for no reason.
    pub(crate) fn wait<T>(&self, guard: &mut Guard<'_, T>) {
        // SAFETY: both are initialised, and this thread has the lock.
        unsafe { libc::pthread_cond_wait(self.raw.get(), guard.mutex.raw.get()) };
    }

    /// As [`Condition::wait`], for at most as long as the timeout.
    pub(crate) fn wait_timeout<T>(&self, guard: &mut Guard<'_, T>, timeout: Duration) {
        const SECOND: i64 = 1_000_000_000;
        let mut deadline = libc::timespec { tv_sec: 0, tv_nsec: 0 };
        // SAFETY: the place for the time outlives the call.
        unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &mut deadline) };
        let nanoseconds = deadline.tv_nsec + i64::from(timeout.subsec_nanos());
        let seconds = i64::try_from(timeout.as_secs()).unwrap_or(i64::MAX).saturating_add(nanoseconds / SECOND);
        deadline.tv_sec = deadline.tv_sec.saturating_add(seconds);
        deadline.tv_nsec = nanoseconds % SECOND;
        // SAFETY: both are initialised, and this thread has the lock; the deadline outlives the call.
        unsafe { libc::pthread_cond_timedwait(self.raw.get(), guard.mutex.raw.get(), &deadline) };
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
