//! The processor that this runs on: what it can do, and its cores.

use std::{collections::HashSet, fs, thread};

/// Which of the features (in the names of `/proc/cpuinfo`) this processor lacks. Where that file is not, none are known.
pub(crate) fn missing(features: &[String]) -> Vec<String> {
    if features.is_empty() {
        return Vec::new();
    }
    let text = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let flags: HashSet<&str> = text
        .lines()
        .find_map(|line| line.strip_prefix("flags").or_else(|| line.strip_prefix("Features")))
        .and_then(|rest| rest.split_once(':'))
        .map(|(_, flags)| flags.split_ascii_whitespace().collect())
        .unwrap_or_default();
    features.iter().filter(|feature| !flags.contains(feature.as_str())).cloned().collect()
}

/// What the processor calls itself.
pub fn name() -> String {
    let text = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = text.lines().find_map(|line| line.strip_prefix("model name")?.split_once(':'));
    model.map_or_else(|| std::env::consts::ARCH.to_owned(), |(_, name)| name.trim().to_owned())
}

/// How many threads this process can run at the same time.
pub(crate) fn core_count() -> usize {
    thread::available_parallelism().map_or(1, |count| count.get())
}

/// The cores that this process may use.
pub(crate) fn cores() -> Vec<usize> {
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

/// Keeps the calling thread on a core. Where the system does not allow it, the thread runs anywhere, which is only slower.
pub(crate) fn pin(core: usize) {
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
pub(crate) fn on_cores(pieces: usize, work: impl Fn() + Sync) {
    thread::scope(|scope| {
        let helpers = core_count().min(pieces).saturating_sub(1);
        // Where there are no more threads to be had, those that are there do all of it.
        let start = |_| thread::Builder::new().spawn_scoped(scope, &work).ok();
        let helpers: Vec<_> = (0..helpers).map_while(start).collect();
        work();
        for helper in helpers {
            if let Err(panic) = helper.join() {
                std::panic::resume_unwind(panic);
            }
        }
    });
}
