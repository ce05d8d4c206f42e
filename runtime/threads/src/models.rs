//! Models of what threads share, which loom runs in every order in which threads can run:
//! `RUSTFLAGS="--cfg loom" cargo test -p divi-threads`.

use crate::{
    executor::{Executor, Ready},
    phase::Phase,
    sync::thread,
    thread_pool::{ThreadPool, Work},
};
use std::{
    sync::{
        Arc,
        atomic::{AtomicI64, AtomicUsize, Ordering},
    },
    time::Duration,
};

const SPIN_TIMEOUTS: [Duration; 2] = [Duration::ZERO, Duration::from_micros(1)];

/// Runs a model in every order of threads that has at most two preemptions, of which almost all faults need no more.
fn model(run: impl Fn() + Sync + Send + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(2);
    builder.check(run);
}

/// Two threads that wait for each other are woken.
#[test]
fn phases_wake_those_that_wait() {
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

/// Adds the numbers of its iterations up, in its only buffer.
unsafe extern "C" fn sum(buffers: *const *mut u8, begin: i64, end: i64) -> i32 {
    // SAFETY: the buffer is an atomic integer.
    let total = unsafe { &*(*buffers).cast::<AtomicI64>() };
    total.fetch_add((begin..end).sum(), Ordering::SeqCst);
    0
}

/// Every iteration is done once, by a caller and a worker that may come late, and the worker ends.
#[test]
fn pools_do_every_iteration_once() {
    for spin_timeout in SPIN_TIMEOUTS {
        model(move || {
            let mut pool = ThreadPool::new("model", 2, &[], spin_timeout).unwrap();
            for _ in 0..2 {
                let total = AtomicI64::new(0);
                let buffers = [(&raw const total).cast_mut().cast::<u8>()];
                let work = Work { kernel: sum, buffers: buffers.as_ptr(), extent: 2, grain: 1 };
                // SAFETY: the kernel has the buffer that it expects.
                assert_eq!(unsafe { pool.run(work) }, 0);
                assert_eq!(total.into_inner(), 1);
            }
        });
    }
}

/// Steps that are pushed are run once, by the executor's thread or by one that takes its place, and the thread ends when the executor
/// is closed.
#[test]
fn executors_run_every_step_once() {
    for spin_timeout in SPIN_TIMEOUTS {
        model(move || {
            let executor = Arc::new(Executor::<()>::new(1, 2, spin_timeout));
            let runs = Arc::new(AtomicUsize::new(0));
            let (its, counted) = (executor.clone(), runs.clone());
            let thread = thread::spawn(move || its.serve(|_, _| _ = counted.fetch_add(1, Ordering::SeqCst)));
            for step in 0..2 {
                let takes = executor.take();
                executor.push(0, Ready { request: 0, rank: step, step, slot: 0 });
                if takes {
                    executor.drive(|_, _| _ = runs.fetch_add(1, Ordering::SeqCst), |_| true, || false);
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
