//! Thread pool of a device: the thread that calls, and workers that share a kernel's iterations with it.

use crate::{
    cores::pin,
    phase::Phase,
    sync::{
        UnsafeCell,
        atomic::{AtomicU64, Ordering},
        thread::{Builder, JoinHandle},
    },
};
use std::{io, sync::Arc, time::Duration};

/// A kernel: does the iterations `begin..end` of its outermost loop on its buffers, and returns a status, 0 if all is well.
pub type Kernel = unsafe extern "C" fn(buffers: *const *mut u8, begin: i64, end: i64) -> i32;

/// A kernel on its buffers, with all its iterations.
#[derive(Clone, Copy)]
pub struct Work {
    pub kernel: Kernel,
    pub buffers: *const *mut u8,
    pub extent: i64,
    pub grain: i64,
}

pub struct ThreadPool {
    workers: Vec<Worker>,
    /// A thread's pieces of the work at hand that nobody has taken, for each thread.
    pieces: Arc<[Pieces]>,
}

struct Worker {
    mailbox: Arc<Mailbox>,
    thread: Option<JoinHandle<()>>,
}

/// Mailbox of a worker, with its share of the work. The cell belongs to the worker while the share is `TAKEN`, and to the pool else.
struct Mailbox {
    phase: Phase,
    share: UnsafeCell<Share>,
}

/// There is a share that nobody has begun.
const POSTED: u32 = 1;
/// The worker is at it.
const TAKEN: u32 = 2;
/// The worker has done it.
const DONE: u32 = 3;

#[derive(Clone, Copy)]
struct Share {
    /// `None` if the worker is to stop.
    work: Option<Work>,
    /// Pieces of the work, and the threads that have some.
    count: u32,
    threads: usize,
    status: i32,
}

/// Pieces for each thread: where one is slower, or its core is taken by somebody else, others do more.
const PIECES: i64 = 8;

/// Pieces that follow each other: the first in the lower half of the number, the one behind the last in the upper half. On a
/// cache line of its own, as one thread takes most of them.
#[repr(align(64))]
struct Pieces(AtomicU64);

impl Pieces {
    fn set(&self, first: u32, end: u32) {
        self.0.store(u64::from(end) << 32 | u64::from(first), Ordering::Relaxed);
    }

    /// Takes the first piece, or the last one: whose pieces they are reads on where it was, and others stay out of its way.
    fn take(&self, is_first: bool) -> Option<u32> {
        let mut both = self.0.load(Ordering::Relaxed);
        loop {
            let (first, end) = (both as u32, (both >> 32) as u32);
            if first >= end {
                return None;
            }
            let (piece, rest) = if is_first { (first, both + 1) } else { (end - 1, both - (1 << 32)) };
            // Nothing but the piece is handed over by it.
            match self.0.compare_exchange_weak(both, rest, Ordering::Relaxed, Ordering::Relaxed) {
                Ok(_) => return Some(piece),
                Err(now) => both = now,
            }
        }
    }
}

impl Share {
    /// Does pieces as long as there are some: a thread's own, then those of others. Returns what the first one that failed
    /// returned.
    ///
    /// # Safety
    /// As for [`ThreadPool::run`].
    unsafe fn run(&self, work: Work, pieces: &[Pieces], own: usize) -> i32 {
        let border = |piece: u32| (i128::from(work.extent) * i128::from(piece) / i128::from(self.count)) as i64;
        let mut status = 0;
        for turn in 0..self.threads {
            let whose = (own + turn) % self.threads;
            while let Some(piece) = pieces[whose].take(turn == 0) {
                // SAFETY: the caller's.
                let code = unsafe { (work.kernel)(work.buffers, border(piece), border(piece + 1)) };
                status = if status == 0 { code } else { status };
            }
        }
        status
    }
}

// SAFETY: the cell is used by one thread at a time, see above; what its pointers lead to is the caller's care, see `run`.
unsafe impl Sync for Mailbox {}
// SAFETY: as above.
unsafe impl Send for Mailbox {}

impl ThreadPool {
    /// A pool of as many threads; the first is the one that calls [`ThreadPool::run`]. Workers are kept on the cores that are
    /// given for them. They look for work for as long as `spin_timeout` before they sleep.
    pub fn new(name: &str, threads: usize, cores: &[usize], spin_timeout: Duration) -> io::Result<Self> {
        let pieces = (0..threads.max(1)).map(|_| Pieces(AtomicU64::new(0))).collect();
        let mut pool = Self { workers: Vec::with_capacity(threads.saturating_sub(1)), pieces };
        for index in 1..threads {
            let share = UnsafeCell::new(Share { work: None, count: 0, threads: 0, status: 0 });
            let mailbox = Arc::new(Mailbox { phase: Phase::new(spin_timeout), share });
            let (its, pieces, core) = (mailbox.clone(), pool.pieces.clone(), cores.get(index).copied());
            let thread = Builder::new().name(format!("{name}.{index}")).spawn(move || {
                if let Some(core) = core {
                    pin(core);
                }
                its.serve(&pieces, index);
            });
            pool.workers.push(Worker { mailbox, thread: Some(thread?) });
        }
        Ok(pool)
    }

    /// Runs a kernel, split into pieces that are worth it, which threads take as they are ready for them. Returns what one that
    /// failed returned. Workers that have not begun when all pieces are taken need not begin: one may take longer to wake up
    /// than the kernel takes.
    ///
    /// # Safety
    /// The kernel may be called with these buffers and any part of its iterations, by several threads at once.
    pub unsafe fn run(&mut self, work: Work) -> i32 {
        let worth = (work.extent / work.grain).max(1);
        let threads = worth.min(self.workers.len() as i64 + 1);
        if threads == 1 {
            // SAFETY: the caller's.
            return unsafe { (work.kernel)(work.buffers, 0, work.extent) };
        }
        let count = worth.min(threads * PIECES);
        for (index, pieces) in (0..threads).zip(&*self.pieces) {
            pieces.set((count * index / threads) as u32, (count * (index + 1) / threads) as u32);
        }
        let share = Share { work: Some(work), count: count as u32, threads: threads as usize, status: 0 };
        let workers = &self.workers[..threads as usize - 1];
        for worker in workers {
            // SAFETY: no share of this worker is taken.
            worker.mailbox.share.with_mut(|place| unsafe { *place = share });
            worker.mailbox.phase.set(POSTED);
        }
        // SAFETY: the caller's.
        let own = unsafe { share.run(work, &self.pieces, 0) };
        for worker in workers.iter().rev() {
            // Nothing is left to do for a worker that has not begun.
            worker.mailbox.phase.replace(POSTED, DONE);
        }
        // All must be done, whatever some of them returned.
        workers.iter().fold(own, |status, worker| {
            worker.mailbox.phase.wait_for(DONE);
            // SAFETY: the share is done.
            let other = worker.mailbox.share.with(|share| unsafe { (*share).status });
            if status == 0 { other } else { status }
        })
    }
}

impl Mailbox {
    fn serve(&self, pieces: &[Pieces], own: usize) {
        loop {
            self.phase.wait_for(POSTED);
            if !self.phase.replace(POSTED, TAKEN) {
                continue;
            }
            // SAFETY: it is taken, by this thread.
            let share = self.share.with(|share| unsafe { *share });
            let Some(work) = share.work else { return };
            // SAFETY: the promise of `run`, whose caller waits for this.
            let status = unsafe { share.run(work, pieces, own) };
            // SAFETY: as above.
            self.share.with_mut(|share| unsafe { (*share).status = status });
            self.phase.set(DONE);
        }
    }
}

impl Drop for ThreadPool {
    fn drop(&mut self) {
        for worker in &mut self.workers {
            // SAFETY: no share of this worker is taken.
            worker.mailbox.share.with_mut(|share| unsafe { (*share).work = None });
            worker.mailbox.phase.set(POSTED);
        }
        for thread in self.workers.iter_mut().filter_map(|worker| worker.thread.take()) {
            // Workers run kernels only, which cannot panic.
            let _ = thread.join();
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicI64;

    /// Adds the numbers of its iterations up, in its only buffer.
    unsafe extern "C" fn sum(buffers: *const *mut u8, begin: i64, end: i64) -> i32 {
        // SAFETY: the buffer is an atomic integer.
        let total = unsafe { *buffers };
        // SAFETY: as above.
        let total = unsafe { &*total.cast::<AtomicI64>() };
        total.fetch_add((begin..end).sum(), Ordering::SeqCst);
        if begin > 50 { 2 } else { 0 }
    }

    fn sum_of(pool: &mut ThreadPool, extent: i64, grain: i64) -> (i64, i32) {
        let total = AtomicI64::new(0);
        let buffers = [(&raw const total).cast_mut().cast::<u8>()];
        // SAFETY: the kernel has the buffer that it expects.
        let status = unsafe { pool.run(Work { kernel: sum, buffers: buffers.as_ptr(), extent, grain }) };
        (total.into_inner(), status)
    }

    #[test]
    fn every_iteration_is_done_once() {
        for spin_timeout in [Duration::ZERO, Duration::from_micros(20)] {
            for threads in [1, 2, 5] {
                let mut pool = ThreadPool::new("test", threads, &[], spin_timeout).unwrap();
                for extent in [0, 1, 7, 50] {
                    for _ in 0..20 {
                        assert_eq!(sum_of(&mut pool, extent, 1), (extent * (extent - 1) / 2, 0));
                    }
                }
                assert_eq!(sum_of(&mut pool, 40, 100), (780, 0));
            }
        }
    }

    /// Takes long, but for the first share.
    unsafe extern "C" fn late(_: *const *mut u8, begin: i64, _: i64) -> i32 {
        if begin > 0 {
            std::thread::sleep(Duration::from_micros(20));
        }
        0
    }

    #[test]
    fn workers_that_fell_asleep_before_the_caller_woke_up_are_woken() {
        // Hardly any spin_timeout: the caller sleeps until its worker is done, and the worker sleeps again at once.
        for _ in 0..1000 {
            let mut pool = ThreadPool::new("test", 2, &[], Duration::from_nanos(1)).unwrap();
            // Lets the worker start before it is given work.
            std::thread::sleep(Duration::from_micros(20));
            // SAFETY: the kernel has no buffers.
            let status = unsafe { pool.run(Work { kernel: late, buffers: std::ptr::null(), extent: 2, grain: 1 }) };
            assert_eq!(status, 0);
        }
    }

    #[test]
    fn a_worker_that_fails_is_heard() {
        let mut pool = ThreadPool::new("test", 2, &[], Duration::ZERO).unwrap();
        assert_eq!((sum_of(&mut pool, 200, 1).1, sum_of(&mut pool, 20, 1).1), (2, 0));
    }
}
