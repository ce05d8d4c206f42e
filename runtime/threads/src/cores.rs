//! Cores of this machine.

use std::thread;

/// The number of threads that this process can run at the same time.
pub fn core_count() -> usize {
    thread::available_parallelism().map_or(1, |count| count.get())
}

/// The cores that this process may use.
pub fn cores() -> Vec<usize> {
    // SAFETY: a set of cores is bits, and all zeros is one.
    let mut set: libc::cpu_set_t = unsafe { std::mem::zeroed() };
    // SAFETY: the set is as large as is said, and outlives the call.
    let code = unsafe { libc::sched_getaffinity(0, size_of_val(&set), &mut set) };
    if code != 0 {
        return Vec::new();
    }
    // SAFETY: the indices are inside the set.
    (0..libc::CPU_SETSIZE as usize).filter(|&core| unsafe { libc::CPU_ISSET(core, &set) }).collect()
}

/// Pins the calling thread to a core. Where the system does not allow it, the thread runs anywhere, which is only slower.
pub fn pin(core: usize) {
    // SAFETY: as above.
    let mut set: libc::cpu_set_t = unsafe { std::mem::zeroed() };
    if core < libc::CPU_SETSIZE as usize {
        // SAFETY: the core is inside the set.
        unsafe { libc::CPU_SET(core, &mut set) };
        // SAFETY: the set is as large as is said.
        unsafe { libc::sched_setaffinity(0, size_of_val(&set), &set) };
    }
}

/// Does the same work on all cores, but no more of them than there are pieces of it. Returns when all are done.
pub fn on_cores(pieces: usize, work: impl Fn() + Sync) {
    thread::scope(|scope| {
        let workers = core_count().min(pieces).saturating_sub(1);
        // If the system has no more threads, those that were started do all of it.
        let start = |_| thread::Builder::new().spawn_scoped(scope, &work).ok();
        let workers: Vec<_> = (0..workers).map_while(start).collect();
        work();
        for worker in workers {
            if let Err(panic) = worker.join() {
                std::panic::resume_unwind(panic);
            }
        }
    });
}
