//! Transports: mechanisms that move values between devices.

use crate::{
    hal::{Copy, Event, Executable, Owner, QueueResult},
    loaded_device::LoadedDevice,
};
use std::{ptr, sync::Arc};

/// Mechanism that moves values from one device to another.
pub trait Transport: Send + Sync {
    /// Starts copying a value. Returns an event if the copy is complete only after [`Transport::wait`]. Without an event, the
    /// copy is complete, or readers on the receiving device are ordered after it.
    ///
    /// # Safety
    /// The source has been written, or the step that writes it has been enqueued on its device. Nothing else accesses the
    /// target. Both stay valid until the event has occurred or the slot has been synchronized on both devices.
    unsafe fn begin(&self, owner: Owner, copy: Copy) -> Result<Option<Event>, String>;

    /// Waits for a copy.
    fn wait(&self, event: Event) -> QueueResult {
        let _ = event;
        Ok(())
    }
}

/// Copy within host memory by the calling thread.
pub struct MemoryCopy;

impl Transport for MemoryCopy {
    unsafe fn begin(&self, _: Owner, Copy { to, from, bytes }: Copy) -> Result<Option<Event>, String> {
        // SAFETY: guaranteed by the caller.
        unsafe { ptr::copy_nonoverlapping(from, to, bytes as usize) };
        Ok(None)
    }
}

/// Copy from the host, performed by the receiving device.
struct Upload(Arc<dyn Executable>);

impl Transport for Upload {
    unsafe fn begin(&self, owner: Owner, copy: Copy) -> Result<Option<Event>, String> {
        // SAFETY: guaranteed by the caller.
        unsafe { self.0.queue().upload(owner, &mut [copy].into_iter()) }.map(|()| None)
    }
}

/// Copy to the host, performed by the sending device.
struct Download(Arc<dyn Executable>);

impl Transport for Download {
    unsafe fn begin(&self, owner: Owner, copy: Copy) -> Result<Option<Event>, String> {
        // SAFETY: guaranteed by the caller.
        unsafe { self.0.queue().download(owner, &mut [copy].into_iter()) }.map(Some)
    }

    fn wait(&self, event: Event) -> QueueResult {
        self.0.queue().wait(event)
    }
}

/// Copy between device memories, performed by the sending device.
struct PeerCopy {
    from: Arc<dyn Executable>,
    to: Arc<dyn Executable>,
}

impl Transport for PeerCopy {
    unsafe fn begin(&self, owner: Owner, copy: Copy) -> Result<Option<Event>, String> {
        if owner.overwrites {
            // The sending device does not know what is enqueued on the receiving one.
            self.to.queue().synchronize(owner.slot)?;
        }
        // SAFETY: guaranteed by the caller.
        unsafe { self.from.queue().copy(owner, &mut [copy].into_iter(), true) }.map(|()| None)
    }
}

/// Returns the transport of a link between two devices; `host` is used if both are in host memory.
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
        (false, false) => Arc::new(PeerCopy { from: from.executable.clone(), to: to.executable.clone() }),
    }
}
