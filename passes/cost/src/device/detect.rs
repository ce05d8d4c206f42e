//! Devices that a kind detects on this machine.

use super::Rates;
use crate::system::units::{Bytes, BytesPerSecond, Seconds};
use std::path::{Path, PathBuf};

/// Detected devices of one kind.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Detected {
    /// Devices.
    pub devices: Vec<DetectedDevice>,
    /// Devices that were ignored and values that were assumed, one message each.
    pub warnings: Vec<String>,
}

/// Detected device.
#[derive(Clone, Debug, PartialEq)]
pub struct DetectedDevice {
    /// Identifier, unique among all kinds and a bare identifier of MLIR: `gpu0`.
    pub id: String,
    /// Memory.
    pub memory: Bytes,
    /// Batch sizes to plan with.
    pub batch_sizes: Vec<u32>,
    /// Architecture to compile for.
    pub arch: Option<String>,
    /// Number of threads, for kinds that use threads of the host.
    pub threads: Option<u32>,
    /// Peak rates.
    pub rates: Rates,
    /// Links from and to host memory; `None` if the device uses host memory.
    pub host: Option<[DetectedLink; 2]>,
    /// Links to other devices of this kind, by their index.
    pub peers: Vec<(usize, DetectedLink)>,
    /// Cost model that was fitted to the device.
    pub cost_model: Option<PathBuf>,
}

/// Link from one device to another.
#[derive(Clone, Debug, PartialEq)]
pub struct DetectedLink {
    /// Bandwidth.
    pub bandwidth: BytesPerSecond,
    /// Latency.
    pub latency: Seconds,
    /// Name of the bus that the link shares with others.
    pub bus: Option<String>,
}

/// Returns the contents of a small file, such as those in `/proc` and `/sys`.
pub(super) fn text(path: impl AsRef<Path>) -> Option<String> {
    std::fs::read_to_string(path).ok()
}
