//! Memory measurement: Rust's heap per thread, and resident memory of the process.

use std::{
    alloc::{GlobalAlloc, Layout, System},
    cell::Cell,
};

thread_local! {
    static LIVE_BYTES: Cell<isize> = const { Cell::new(0) };
    static PEAK_BYTES: Cell<isize> = const { Cell::new(0) };
}

/// System allocator that counts the live bytes of each thread. A test binary sets it as its `#[global_allocator]`.
///
/// MLIR allocates through C++, which is not counted; [`peak_resident_bytes`] includes it.
pub struct CountingAllocator;

impl CountingAllocator {
    fn count(bytes: isize) {
        // The counters are gone during thread teardown.
        let _ = LIVE_BYTES.try_with(|live| {
            live.set(live.get() + bytes);
            let _ = PEAK_BYTES.try_with(|peak| peak.set(peak.get().max(live.get())));
        });
    }
}

// SAFETY: every call is forwarded unchanged to the system allocator.
unsafe impl GlobalAlloc for CountingAllocator {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        Self::count(layout.size() as isize);
        // SAFETY: guaranteed by the caller.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        Self::count(layout.size() as isize);
        // SAFETY: guaranteed by the caller.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        Self::count(-(layout.size() as isize));
        // SAFETY: guaranteed by the caller.
        unsafe { System.dealloc(pointer, layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // Both buffers may exist during the copy.
        Self::count(size as isize);
        Self::count(-(layout.size() as isize));
        // SAFETY: guaranteed by the caller.
        unsafe { System.realloc(pointer, layout, size) }
    }
}

/// Runs `body`; returns its value and the peak heap of this thread, relative to the heap before, in bytes.
pub fn measure_heap<T>(body: impl FnOnce() -> T) -> (T, u64) {
    let before = LIVE_BYTES.get();
    PEAK_BYTES.set(before);
    let value = body();
    (value, (PEAK_BYTES.get() - before) as u64)
}

/// Returns the peak resident memory of this process so far, in bytes.
pub fn peak_resident_bytes() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").expect("Linux has /proc/self/status");
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).expect("the status has VmHWM");
    let kilobytes = line.trim().trim_end_matches("kB").trim().parse::<u64>().expect("VmHWM is a number");
    kilobytes << 10
}
