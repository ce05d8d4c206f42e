//! CPU cores, thread affinity and timers.

use std::thread;

/// Returns the number of threads that this process can run in parallel.
pub fn core_count() -> usize {
    thread::available_parallelism().map_or(1, |count| count.get())
}

/// Returns the cores in the affinity mask of the calling thread; empty if it cannot be read.
pub fn cores() -> Vec<usize> {
    // SAFETY: `cpu_set_t` is a bit mask; all zeros is the empty set.
    let mut set: libc::cpu_set_t = unsafe { std::mem::zeroed() };
    // SAFETY: the set has the given size and outlives the call.
    let code = unsafe { libc::sched_getaffinity(0, size_of_val(&set), &mut set) };
    if code != 0 {
        return Vec::new();
    }
    // SAFETY: the indices are below `CPU_SETSIZE`.
    (0..libc::CPU_SETSIZE as usize).filter(|&core| unsafe { libc::CPU_ISSET(core, &set) }).collect()
}

/// Pins the calling thread to a core. Errors are ignored: affinity only affects performance.
pub fn pin(core: usize) {
    // SAFETY: as above.
    let mut set: libc::cpu_set_t = unsafe { std::mem::zeroed() };
    if core < libc::CPU_SETSIZE as usize {
        // SAFETY: the index is below `CPU_SETSIZE`.
        unsafe { libc::CPU_SET(core, &mut set) };
        // SAFETY: the set has the given size.
        unsafe { libc::sched_setaffinity(0, size_of_val(&set), &set) };
    }
}

/// Makes timed waits of the calling thread end within a microsecond of their time, instead of 50 µs. Errors are ignored: the
/// precision only affects performance.
pub fn wake_precisely() {
    const SLACK_NS: libc::c_ulong = 1000;
    // SAFETY: the option has one argument, a number.
    unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, SLACK_NS) };
}

/// Runs `work` on min(cores, `pieces`) threads, the calling one included. Returns when all of them have returned.
pub fn run_on_cores(pieces: usize, work: impl Fn() + Sync) {
    thread::scope(|scope| {
        let workers = core_count().min(pieces).saturating_sub(1);
        // If a thread cannot be started, the others process all pieces.
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
