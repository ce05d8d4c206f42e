//! Runs of readers with limits on time and memory.

use crate::{memory::measure_heap, readers::Reader};
use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    time::{Duration, Instant},
};

/// Heap limit independent of the file size.
const BASE_BYTES: u64 = 64 << 20;
/// Additional heap limit per byte of the file.
const BYTES_A_BYTE: u64 = 40;
/// Time limit for a small file, generous for a loaded machine.
pub const LIMIT: Duration = Duration::from_secs(20);

/// Result of a run without findings.
pub struct Trial {
    /// True if the reader accepted the file.
    pub is_accepted: bool,
    /// Peak heap of the run.
    pub heap_bytes: u64,
    /// Duration of the run.
    pub elapsed: Duration,
}

/// Runs a reader. Returns an error on a panic, on excessive memory or time, or on a violated property.
///
/// Heap is only counted if the program's allocator is [`crate::memory::CountingAllocator`].
pub fn run(reader: &Reader, bytes: &[u8]) -> Result<Trial, String> {
    let start = Instant::now();
    let (outcome, heap_bytes) = measure_heap(|| catch_unwind(AssertUnwindSafe(|| (reader.read)(bytes))));
    let elapsed = start.elapsed();
    let is_accepted = outcome.map_err(|panic| format!("panicked: {}", message(&*panic)))??;
    if heap_bytes > BASE_BYTES + BYTES_A_BYTE * bytes.len() as u64 {
        return Err(format!("took {} MiB of heap for {} bytes", heap_bytes >> 20, bytes.len()));
    }
    if elapsed > LIMIT {
        return Err(format!("took {elapsed:?} for {} bytes", bytes.len()));
    }
    Ok(Trial { is_accepted, heap_bytes, elapsed })
}

fn message(panic: &(dyn std::any::Any + Send)) -> &str {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("no message")
}
