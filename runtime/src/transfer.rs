//! How values get from device to device.

use crate::bundle::Device;

/// What moves the bytes of a value. CPUs of one machine share memory; others will need messages between processes. To GPUs and
/// back, the driver copies.
pub trait Transfer: Send + Sync {
    /// Moves all of `source`, which `from` can read, to `target`, which `to` can read and which is as long. The error says
    /// why it did not get there.
    fn carry(&self, from: &Device, to: &Device, source: &[u8], target: &mut [u8]) -> Result<(), String>;
}

/// A copy in the memory of this process.
pub struct MemoryCopy;

impl Transfer for MemoryCopy {
    fn carry(&self, _: &Device, _: &Device, source: &[u8], target: &mut [u8]) -> Result<(), String> {
        target.copy_from_slice(source);
        Ok(())
    }
}
