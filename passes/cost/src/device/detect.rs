//! Devices that a kind finds on this machine.

use super::Rates;
use crate::system::units::{Bytes, BytesPerSecond, Seconds};
use std::path::Path;

/// The devices of one kind.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Detected {
    pub devices: Vec<DetectedDevice>,
    /// What had to be left out or assumed, one sentence each.
    pub warnings: Vec<String>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct DetectedDevice {
    /// A bare identifier of MLIR, which no device of another kind has: `gpu0`.
    pub id: String,
    pub memory: Bytes,
    /// Batch sizes to plan with where no description names any.
    pub batch_sizes: Vec<u32>,
    pub arch: Option<String>,
    pub threads: Option<u32>,
    pub rates: Rates,
    /// The link from the host's memory, and the link back; none if its memory is the host's.
    pub host: Option<[DetectedLink; 2]>,
    /// Links to other devices of this kind, by their index.
    pub peers: Vec<(usize, DetectedLink)>,
}

/// A link from one device to another.
#[derive(Clone, Debug, PartialEq)]
pub struct DetectedLink {
    pub bandwidth: BytesPerSecond,
    pub latency: Seconds,
    pub bus: Option<String>,
}

/// The text of a small file, such as those the kernel shows.
pub(super) fn text(path: impl AsRef<Path>) -> Option<String> {
    std::fs::read_to_string(path).ok()
}
