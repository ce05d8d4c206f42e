//! How much memory something takes: Rust's heap by the thread, the process as the kernel sees it.

use std::{
    alloc::{GlobalAlloc, Layout, System},
    cell::Cell,
};

thread_local! {
    static LIVE_BYTES: Cell<isize> = const { Cell::new(0) };
    static PEAK_BYTES: Cell<isize> = const { Cell::new(0) };
}

/// The system's allocator, which counts what each thread has. A test binary makes it its `#[global_allocator]`.
///
/// MLIR's own memory is not Rust's and is not counted; [`peak_resident_bytes`] has it.
pub struct CountingAllocator;

impl CountingAllocator {
    fn count(bytes: isize) {
        // A thread that is being torn down has no counters any more.
        let _ = LIVE_BYTES.try_with(|live| {
            live.set(live.get() + bytes);
            let _ = PEAK_BYTES.try_with(|peak| peak.set(peak.get().max(live.get())));
        });
    }
}

// SAFETY: every call is handed to the system's allocator as it is.
unsafe impl GlobalAlloc for CountingAllocator {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        Self::count(layout.size() as isize);
        // SAFETY: the caller's promise.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        Self::count(layout.size() as isize);
        // SAFETY: the caller's promise.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        Self::count(-(layout.size() as isize));
        // SAFETY: the caller's promise.
        unsafe { System.dealloc(pointer, layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // Both buffers may be there while one is copied into the other.
        Self::count(size as isize);
        Self::count(-(layout.size() as isize));
        // SAFETY: the caller's promise.
        unsafe { System.realloc(pointer, layout, size) }
    }
}

/// Runs `body`; returns also the most heap that this thread had on top of what it had before.
pub fn measure_heap<T>(body: impl FnOnce() -> T) -> (T, u64) {
    let before = LIVE_BYTES.get();
    PEAK_BYTES.set(before);
    let value = body();
    (value, (PEAK_BYTES.get() - before) as u64)
}

/// The most memory that this process has had resident so far, in bytes.
pub fn peak_resident_bytes() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").expect("Linux says how much memory a process has");
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).expect("the peak is among what it says");
    let kilobytes = line.trim().trim_end_matches("kB").trim().parse::<u64>().expect("it is a number");
    kilobytes << 10
}
