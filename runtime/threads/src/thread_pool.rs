//! Thread pool of a device: the calling thread and workers that share the iterations of a kernel with it.

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

/// Kernel: runs the iterations `begin..end` of its outermost loop on its buffers and returns a status, 0 on success.
pub type Kernel = unsafe extern "C" fn(buffers: *const *mut u8, begin: i64, end: i64) -> i32;

/// Call of a kernel with its whole iteration space.
#[derive(Clone, Copy)]
pub struct KernelLaunch {
    /// Kernel to call.
    pub kernel: Kernel,
    /// Buffers of the kernel.
    pub buffers: *const *mut u8,
    /// Number of iterations of the outermost loop.
    pub extent: i64,
    /// Minimum number of iterations that are worth a chunk of their own.
    pub grain: i64,
}

/// Threads that run one kernel at a time together.
pub struct ThreadPool {
    workers: Vec<Worker>,
    /// Chunks of the current kernel that have not been started, for each thread.
    chunks: Arc<[ChunkRange]>,
}

struct Worker {
    mailbox: Arc<Mailbox>,
    thread: Option<JoinHandle<()>>,
}

/// Mailbox of a worker, with its share of the work. The worker owns the cell while the phase is `TAKEN`, otherwise the pool
/// does.
struct Mailbox {
    phase: Phase,
    share: UnsafeCell<WorkShare>,
}

/// The share has been posted and not been started.
const POSTED: u32 = 1;
/// The worker is processing the share.
const TAKEN: u32 = 2;
/// The share is complete, or was withdrawn.
const DONE: u32 = 3;

#[derive(Clone, Copy)]
struct WorkShare {
    /// `None` makes the worker terminate.
    work: Option<KernelLaunch>,
    /// Total number of chunks.
    count: u32,
    /// Number of threads that the chunks are divided among.
    threads: usize,
    status: i32,
}

/// Chunks per thread, for load balancing: if a thread is slow or its core is shared, the others steal from it.
const CHUNKS: i64 = 8;

/// Range of consecutive chunks: its begin in the lower half of the number, its end (exclusive) in the upper half. Aligned to a
/// cache line to avoid false sharing, because the owner takes most of them.
#[repr(align(64))]
struct ChunkRange(AtomicU64);

impl ChunkRange {
    fn set(&self, first: u32, end: u32) {
        self.0.store(u64::from(end) << 32 | u64::from(first), Ordering::Relaxed);
    }

    /// Takes the first chunk (the owner, for sequential memory accesses) or the last one (threads that steal).
    fn take(&self, is_first: bool) -> Option<u32> {
        let mut both = self.0.load(Ordering::Relaxed);
        loop {
            let (first, end) = (both as u32, (both >> 32) as u32);
            if first >= end {
                return None;
            }
            let (chunk, rest) = if is_first { (first, both + 1) } else { (end - 1, both - (1 << 32)) };
            // Relaxed: the exchange publishes no other data.
            match self.0.compare_exchange_weak(both, rest, Ordering::Relaxed, Ordering::Relaxed) {
                Ok(_) => return Some(chunk),
                Err(now) => both = now,
            }
        }
    }
}

impl WorkShare {
    /// Runs chunks until none are left: first the thread's own, then those of other threads. Returns the first nonzero status.
    ///
    /// # Safety
    /// As for [`ThreadPool::run`].
    unsafe fn run(&self, work: KernelLaunch, chunks: &[ChunkRange], own: usize) -> i32 {
        let bound = |chunk: u32| (i128::from(work.extent) * i128::from(chunk) / i128::from(self.count)) as i64;
        let mut status = 0;
        for offset in 0..self.threads {
            let owner = (own + offset) % self.threads;
            while let Some(chunk) = chunks[owner].take(offset == 0) {
                // SAFETY: guaranteed by the caller.
                let code = unsafe { (work.kernel)(work.buffers, bound(chunk), bound(chunk + 1)) };
                status = if status == 0 { code } else { status };
            }
        }
        status
    }
}

// SAFETY: the phase gives one thread at a time access to the cell; callers of `run` guarantee that its pointers may be shared.
unsafe impl Sync for Mailbox {}
// SAFETY: as above.
unsafe impl Send for Mailbox {}

impl ThreadPool {
    /// Builds a pool of `threads` threads, including the one that calls [`ThreadPool::run`]. Worker `i` is pinned to `cores[i]`
    /// if it exists. Workers poll for work for `spin_timeout` before they sleep.
    pub fn new(name: &str, threads: usize, cores: &[usize], spin_timeout: Duration) -> io::Result<Self> {
        let chunks = (0..threads.max(1)).map(|_| ChunkRange(AtomicU64::new(0))).collect();
        let mut pool = Self { workers: Vec::with_capacity(threads.saturating_sub(1)), chunks };
        for index in 1..threads {
            let share = UnsafeCell::new(WorkShare { work: None, count: 0, threads: 0, status: 0 });
            let mailbox = Arc::new(Mailbox { phase: Phase::new(spin_timeout), share });
            let (inbox, chunks, core) = (mailbox.clone(), pool.chunks.clone(), cores.get(index).copied());
            let thread = Builder::new().name(format!("{name}.{index}")).spawn(move || {
                if let Some(core) = core {
                    pin(core);
                }
                inbox.serve(&chunks, index);
            });
            pool.workers.push(Worker { mailbox, thread: Some(thread?) });
        }
        Ok(pool)
    }

    /// Runs a kernel, split into chunks of at least `grain` iterations that are distributed dynamically. Returns 0 or a nonzero
    /// status of a chunk. The shares of workers that have not started when all chunks are taken are withdrawn, because waking a
    /// worker may take longer than the kernel.
    ///
    /// # Safety
    /// The kernel may be called with these buffers and any part of its iterations, by several threads at once.
    pub unsafe fn run(&mut self, work: KernelLaunch) -> i32 {
        let max_chunks = (work.extent / work.grain).max(1);
        let threads = max_chunks.min(self.workers.len() as i64 + 1);
        if threads == 1 {
            // SAFETY: guaranteed by the caller.
            return unsafe { (work.kernel)(work.buffers, 0, work.extent) };
        }
        let count = max_chunks.min(threads * CHUNKS);
        for (index, chunks) in (0..threads).zip(&*self.chunks) {
            chunks.set((count * index / threads) as u32, (count * (index + 1) / threads) as u32);
        }
        let share = WorkShare { work: Some(work), count: count as u32, threads: threads as usize, status: 0 };
        let workers = &self.workers[..threads as usize - 1];
        for worker in workers {
            // SAFETY: no share of this worker is taken.
            worker.mailbox.share.with_mut(|cell| unsafe { *cell = share });
            worker.mailbox.phase.set(POSTED);
        }
        // SAFETY: guaranteed by the caller.
        let own = unsafe { share.run(work, &self.chunks, 0) };
        for worker in workers.iter().rev() {
            // All chunks are taken: withdraw the share if the worker has not started.
            worker.mailbox.phase.compare_exchange(POSTED, DONE);
        }
        // Wait for all workers even after a failure: they use the buffers.
        workers.iter().fold(own, |status, worker| {
            worker.mailbox.phase.wait_for(DONE);
            // SAFETY: the phase is `DONE`, so the cell is owned by the pool.
            let other = worker.mailbox.share.with(|share| unsafe { (*share).status });
            if status == 0 { other } else { status }
        })
    }
}

impl Mailbox {
    fn serve(&self, chunks: &[ChunkRange], own: usize) {
        loop {
            self.phase.wait_for(POSTED);
            if !self.phase.compare_exchange(POSTED, TAKEN) {
                continue;
            }
            // SAFETY: the phase is `TAKEN`, so the cell is owned by this thread.
            let share = self.share.with(|share| unsafe { *share });
            let Some(work) = share.work else { return };
            // SAFETY: guaranteed by the caller of `run`, which waits for this share.
            let status = unsafe { share.run(work, chunks, own) };
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
            // Workers only run kernels, which cannot panic.
            let _ = thread.join();
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicI64;

    /// Kernel that adds its iteration numbers to its only buffer.
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
        // SAFETY: the kernel is called with the buffer that it expects.
        let status = unsafe { pool.run(KernelLaunch { kernel: sum, buffers: buffers.as_ptr(), extent, grain }) };
        (total.into_inner(), status)
    }

    #[test]
    fn every_iteration_runs_once() {
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

    /// Kernel that sleeps, except in the first chunk.
    unsafe extern "C" fn late(_: *const *mut u8, begin: i64, _: i64) -> i32 {
        if begin > 0 {
            std::thread::sleep(Duration::from_micros(20));
        }
        0
    }

    #[test]
    fn workers_asleep_before_the_caller_wakes_up_are_woken() {
        // With a tiny spin timeout, the caller sleeps until its worker is done, and the worker sleeps again immediately.
        for _ in 0..1000 {
            let mut pool = ThreadPool::new("test", 2, &[], Duration::from_nanos(1)).unwrap();
            // Let the worker thread start before work is posted.
            std::thread::sleep(Duration::from_micros(20));
            // SAFETY: the kernel has no buffers.
            let status =
                unsafe { pool.run(KernelLaunch { kernel: late, buffers: std::ptr::null(), extent: 2, grain: 1 }) };
            assert_eq!(status, 0);
        }
    }

    #[test]
    fn the_status_of_a_failed_worker_is_returned() {
        let mut pool = ThreadPool::new("test", 2, &[], Duration::ZERO).unwrap();
        assert_eq!((sum_of(&mut pool, 200, 1).1, sum_of(&mut pool, 20, 1).1), (2, 0));
    }
}
