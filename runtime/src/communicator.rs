//! Message passing between the ranks of a job. Each host of a plan is a rank.
//!
//! The runtime names no message-passing library: it uses this trait, which has the operations of MPI that it needs. Operations
//! do not block, except for those of all ranks: [`Communicator::all_gather`], [`Communicator::agree`],
//! [`Communicator::survivors`] and [`Communicator::finalize`].

mod message;

use crate::error::{Error, Result};
pub use message::Message;
use std::{sync::Arc, time::Duration};

/// Shortest and longest sleep of a thread that polls for messages.
const SLEEP: (Duration, Duration) = (Duration::from_micros(10), Duration::from_millis(1));
/// Sleeps as a fraction of the time that the thread has waited: messages are delayed by at most this fraction.
const SLEEP_FRACTION: u32 = 8;

/// Sleep of the polling thread of a rank while all devices compute: it takes time from them, and no device waits for a message.
pub const BUSY_SLEEP: Duration = Duration::from_micros(500);

/// Returns the sleep between two polls of a thread that has waited for some time, so that waiting ranks leave cores to busy
/// ones.
pub fn idle_sleep(waited: Duration) -> Duration {
    (waited / SLEEP_FRACTION).clamp(SLEEP.0, SLEEP.1)
}

/// Message passing between the ranks of a job.
///
/// Messages from one rank to another with the same tag arrive in the order in which they were sent. All methods may be called
/// from any thread.
pub trait Communicator: Send + Sync {
    /// Returns the number of this rank, below [`Communicator::size`].
    fn rank(&self) -> usize;

    /// Returns the number of ranks of the job.
    fn size(&self) -> usize;

    /// Returns the largest tag that the library supports.
    fn max_tag(&self) -> u32;

    /// Starts sending a message.
    ///
    /// # Safety
    /// The bytes stay valid and unchanged until [`Communicator::test`] has returned an envelope; if it returns an error or is not
    /// called any more, forever.
    unsafe fn send(&self, to: usize, tag: u32, data: *const u8, bytes: u64) -> Result<Operation>;

    /// Starts receiving a message of at most `bytes` bytes. A longer message is an error.
    ///
    /// # Safety
    /// As for [`Communicator::send`]; nothing else accesses the bytes.
    unsafe fn receive(&self, from: usize, tag: u32, data: *mut u8, bytes: u64) -> Result<Operation>;

    /// Returns the envelope of a complete operation, and `None` for one in progress. Must not be called again after it has
    /// returned an envelope or an error.
    fn test(&self, operation: Operation) -> Result<Option<Envelope>>;

    /// Returns the envelope of a message that has arrived and that no receive operation matches yet: the first one of any
    /// rank, with the given tag if there is one.
    fn probe(&self, tag: Option<u32>) -> Result<Option<Envelope>>;

    /// Sends the same number of bytes from each rank to all ranks, and returns those of all ranks in the order of their
    /// numbers. Blocks until all ranks have called it.
    fn all_gather(&self, own: &[u8]) -> Result<Vec<Vec<u8>>>;

    /// Returns true if ranks can continue after the death of another one: if the next three operations are supported.
    fn can_recover(&self) -> bool {
        false
    }

    /// Ends all operations of all ranks with [`Error::Revoked`], now and in the future, except for [`Communicator::agree`]
    /// and [`Communicator::survivors`].
    fn revoke(&self) -> Result<()> {
        Err(unsupported())
    }

    /// Returns the bitwise and of the flags of all ranks that live, the same on each of them. Blocks until all of them have
    /// called it.
    fn agree(&self, flags: u32) -> Result<u32> {
        let _ = flags;
        Err(unsupported())
    }

    /// Returns the ranks that live, in the same order. Blocks until all of them have called it.
    fn survivors(&self) -> Result<Arc<dyn Communicator>> {
        Err(unsupported())
    }

    /// Returns the number that a rank had at the start of the job.
    fn original_rank(&self, rank: usize) -> usize {
        rank
    }

    /// Leaves the job after all operations of all ranks have completed. Blocks until all ranks have called it.
    fn finalize(&self) -> Result<()>;
}

fn unsupported() -> Error {
    Error::Communication { problem: "the library cannot continue after the death of a rank".to_owned() }
}

/// Operation in progress.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Operation(pub u64);

/// Description of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Envelope {
    /// Sending rank, or the receiving one if the operation sends.
    pub rank: usize,
    /// Tag of the message.
    pub tag: u32,
    /// Size in bytes.
    pub bytes: u64,
}
