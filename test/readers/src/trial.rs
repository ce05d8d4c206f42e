//! One run of a reader within limits.

use crate::{memory::measure_heap, readers::Reader};
use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    time::{Duration, Instant},
};

/// Heap that a reader may take whatever the file.
const BASE_BYTES: u64 = 64 << 20;
/// Heap that it may take for each byte of the file.
const BYTES_A_BYTE: u64 = 40;
/// Time that a reader may take for a small file, on a busy machine.
pub const LIMIT: Duration = Duration::from_secs(20);

/// Outcome of a run that found nothing wrong.
pub struct Trial {
    pub is_accepted: bool,
    pub heap_bytes: u64,
    pub elapsed: Duration,
}

/// Runs a reader. The error says what must not happen: a panic, too much memory or time, a property that does not hold.
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
    text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("without a message")
}
