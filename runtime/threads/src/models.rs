//! Models of the shared data structures for loom, which explores the interleavings of their threads:
//! `RUSTFLAGS="--cfg loom" cargo test -p divi-threads`.

use crate::{
    executor::{Executor, Ready},
    phase::Phase,
    sync::thread,
    thread_pool::{KernelLaunch, ThreadPool},
};
use std::{
    sync::{
        Arc,
        atomic::{AtomicI64, AtomicUsize, Ordering},
    },
    time::Duration,
};

const SPIN_TIMEOUTS: [Duration; 2] = [Duration::ZERO, Duration::from_micros(1)];

/// Checks a model in all interleavings with at most two preemptions, which suffice to expose almost all concurrency bugs.
fn model(run: impl Fn() + Sync + Send + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(2);
    builder.check(run);
}

/// No wakeup is lost when two threads wait for each other in turn.
#[test]
fn phases_wake_waiting_threads() {
    for spin_timeout in SPIN_TIMEOUTS {
        model(move || {
            let phase = Arc::new(Phase::new(spin_timeout));
            let other = phase.clone();
            let thread = thread::spawn(move || {
                other.wait_for(1);
                other.set(2);
            });
            phase.set(1);
            phase.wait_for(2);
            thread.join().unwrap();
        });
    }
}

/// Kernel that adds its iteration numbers to its only buffer.
unsafe extern "C" fn sum(buffers: *const *mut u8, begin: i64, end: i64) -> i32 {
    // SAFETY: the buffer is an atomic integer.
    let total = unsafe { &*(*buffers).cast::<AtomicI64>() };
    total.fetch_add((begin..end).sum(), Ordering::SeqCst);
    0
}

/// Every iteration runs exactly once, even if the worker starts late, and the worker terminates.
#[test]
fn pools_run_every_iteration_once() {
    for spin_timeout in SPIN_TIMEOUTS {
        model(move || {
            let mut pool = ThreadPool::new("model", 2, &[], spin_timeout).unwrap();
            for _ in 0..2 {
                let total = AtomicI64::new(0);
                let buffers = [(&raw const total).cast_mut().cast::<u8>()];
                let work = KernelLaunch { kernel: sum, buffers: buffers.as_ptr(), extent: 2, grain: 1 };
                // SAFETY: the kernel is called with the buffer that it expects.
                assert_eq!(unsafe { pool.run(work) }, 0);
                assert_eq!(total.into_inner(), 1);
            }
        });
    }
}

/// Every step runs exactly once, on the executor's or on the pushing thread, and the executor's thread terminates on close.
#[test]
fn executors_run_every_step_once() {
    for spin_timeout in SPIN_TIMEOUTS {
        model(move || {
            let executor = Arc::new(Executor::<()>::new(1, 2, spin_timeout));
            let runs = Arc::new(AtomicUsize::new(0));
            let (served, counter) = (executor.clone(), runs.clone());
            let thread = thread::spawn(move || served.serve(|_, _| _ = counter.fetch_add(1, Ordering::SeqCst)));
            for step in 0..2 {
                let is_taken = executor.try_claim();
                executor.push(0, Ready { request: 0, rank: step, step, slot: 0 });
                if is_taken {
                    executor.run_claimed(|_, _| _ = runs.fetch_add(1, Ordering::SeqCst), |_| true, || false);
                }
            }
            while runs.load(Ordering::SeqCst) < 2 {
                thread::yield_now();
            }
            executor.close();
            thread.join().unwrap();
        });
    }
}
