//! Transports: the ways in which values get from device to device.

use crate::{
    hal::{Attempt, Copy, Event, Executable, Owner},
    loaded_device::LoadedDevice,
};
use std::{ptr, sync::Arc};

/// Moves values from a device to another one.
pub trait Transport: Send + Sync {
    /// Starts to copy a value. Returns an event if the value is there only after [`Transport::wait`]; else it is there, or what reads
    /// it on the receiving device is ordered behind the copy. The error says why it does not get there.
    ///
    /// # Safety
    /// The value is written, or what writes it is enqueued on its device. Nothing else uses the bytes that are written. Both stay where
    /// they are until the event has happened, or the slot was synchronized on both devices.
    unsafe fn begin(&self, owner: Owner, copy: Copy) -> Result<Option<Event>, String>;

    fn wait(&self, event: Event) -> Attempt {
        let _ = event;
        Ok(())
    }
}

/// A copy in the memory of this process, by the calling thread.
pub struct MemoryCopy;

impl Transport for MemoryCopy {
    unsafe fn begin(&self, _: Owner, Copy { to, from, bytes }: Copy) -> Result<Option<Event>, String> {
        // SAFETY: the caller's.
        unsafe { ptr::copy_nonoverlapping(from, to, bytes as usize) };
        Ok(None)
    }
}

/// A copy from the host, which the receiving device makes.
struct Upload(Arc<dyn Executable>);

impl Transport for Upload {
    unsafe fn begin(&self, owner: Owner, copy: Copy) -> Result<Option<Event>, String> {
        // SAFETY: the caller's.
        unsafe { self.0.queue().upload(owner, &mut [copy].into_iter()) }.map(|()| None)
    }
}

/// A copy to the host, which the sending device makes.
struct Download(Arc<dyn Executable>);

impl Transport for Download {
    unsafe fn begin(&self, owner: Owner, copy: Copy) -> Result<Option<Event>, String> {
        // SAFETY: the caller's.
        unsafe { self.0.queue().download(owner, &mut [copy].into_iter()) }.map(Some)
    }

    fn wait(&self, event: Event) -> Attempt {
        self.0.queue().wait(event)
    }
}

/// A copy to another device's memory, which the sending device makes.
struct PeerCopy(Arc<dyn Executable>);

impl Transport for PeerCopy {
    unsafe fn begin(&self, owner: Owner, copy: Copy) -> Result<Option<Event>, String> {
        // SAFETY: the caller's.
        unsafe { self.0.queue().copy(owner, &mut [copy].into_iter(), true) }.map(|()| None)
    }
}

/// The transport of a link between two devices; `host` is that of two devices in the host's memory.
pub(crate) fn transport(
    devices: &[LoadedDevice],
    (from, to): (usize, usize),
    host: &Arc<dyn Transport>,
) -> Arc<dyn Transport> {
    let [from, to] = [from, to].map(|device| &devices[device]);
    match (from.is_on_host(), to.is_on_host()) {
        (true, true) => host.clone(),
        (true, false) => Arc::new(Upload(to.executable.clone())),
        (false, true) => Arc::new(Download(from.executable.clone())),
        (false, false) => Arc::new(PeerCopy(from.executable.clone())),
    }
}
