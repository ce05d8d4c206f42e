//! What comes to a GPU, goes from it, and is copied on it.

use super::{Device, Stamp, State, moments::Moment};
use crate::{
    cuda::{
        driver::{Address, Outcome, Stream},
        upload::Image,
    },
    error::Result,
};
use std::sync::atomic::Ordering;

/// The error says what is wrong.
pub(crate) type Attempt = std::result::Result<(), String>;

impl Device {
    /// Has values of a slot copied inside the GPU, or to another one: `(to, from, bytes)`. They are `awaited` if somebody else
    /// than the GPU needs them.
    ///
    /// # Safety
    /// The values are there, or the GPU was told of them, and what is written is nobody else's.
    pub(crate) unsafe fn copy(
        &self,
        what: &str,
        (slot, stamp): (usize, Option<Stamp>),
        is_awaited: bool,
        mut parts: impl Iterator<Item = (Address, Address, u64)>,
    ) -> Result<()> {
        let (gpu, stream) = (&*self.gpu, self.streams[0]);
        let mut state = self.enter(what)?;
        let mut copy = || {
            self.follow(slot, Moment::Arrived, stream)?;
            self.await_constants(&mut state, self.constants.newest_value(), stream)?;
            self.timed((slot, stamp), stream, || {
                // SAFETY: the caller's.
                parts.try_for_each(|(to, from, bytes)| unsafe { gpu.copy_within(to, from, bytes, stream) })
            })?;
            self.mark(slot, Moment::Computed, stream)?;
            if is_awaited || state.image.is_some() {
                gpu.finish(stream)?;
            }
            self.forget_image(&mut state)
        };
        copy().map_err(|fault| self.failed(&mut state, fault, what))
    }

    /// Has values of the host copied to the GPU for a slot's request: `(to, from, bytes)`. They are there when what waits for them
    /// runs.
    ///
    /// # Safety
    /// As above; what is copied stays until the request is done, or what is made of it on the GPU is on the host.
    pub(crate) unsafe fn send(
        &self,
        (slot, stamp): (usize, Option<Stamp>),
        mut parts: impl Iterator<Item = (Address, *const u8, u64)>,
    ) -> Attempt {
        let sent = self.timed((slot, stamp), self.inward, || {
            // SAFETY: the caller's.
            parts.try_for_each(|(to, from, bytes)| unsafe { self.gpu.copy_in(to, from, bytes, self.inward) })
        });
        let marked = sent.and_then(|()| self.mark(slot, Moment::Arrived, self.inward));
        marked.map_err(|fault| self.problem(fault))
    }

    /// Has values of a slot copied to the host, for a step or for the end of the request: `(to, from, bytes)`. See
    /// [`Device::await_fetched`].
    ///
    /// # Safety
    /// As for [`Device::copy`]; the places stay, and are nobody else's, until that was waited for, or the slot has settled.
    pub(crate) unsafe fn fetch(
        &self,
        (slot, stamp): (usize, Option<Stamp>),
        step: Option<usize>,
        mut parts: impl Iterator<Item = (*mut u8, Address, u64)>,
    ) -> Attempt {
        let (gpu, stream) = (&*self.gpu, self.outward);
        let mut fetch = || {
            self.follow(slot, Moment::Arrived, stream)?;
            self.follow(slot, Moment::Computed, stream)?;
            if self.is_cold.load(Ordering::Relaxed) {
                // What is fetched may be a constant.
                self.await_constants(&mut self.state.lock(), self.constants.newest_value(), stream)?;
            }
            self.timed((slot, stamp), stream, || {
                // SAFETY: the caller's.
                parts.try_for_each(|(to, from, bytes)| unsafe { gpu.copy_out(to, from, bytes, stream) })
            })?;
            self.mark(slot, Moment::Left(step), stream)
        };
        fetch().map_err(|fault| self.problem(fault))
    }

    /// Waits for what was fetched.
    pub(crate) fn await_fetched(&self, slot: usize, step: Option<usize>) -> Attempt {
        self.await_moment(slot, Moment::Left(step)).map_err(|fault| self.problem(fault))
    }

    /// Has a stream wait for constants up to one of the upload's order. Calls are on the first stream until all are here, so
    /// the second is free for constants.
    pub(super) fn await_constants(&self, state: &mut State, newest: Option<usize>, stream: Stream) -> Outcome<()> {
        self.send_constants(state)?;
        let Some(image) = &mut state.image else { return Ok(()) };
        let Some(arrival) = image.arrival(newest) else { return Ok(()) };
        image.expect(arrival.is_last);
        self.gpu.wait(stream, arrival.event)
    }

    /// Has constants copied that are not here yet.
    pub(super) fn send_constants(&self, state: &mut State) -> Outcome<()> {
        let Some(image) = &mut state.image else { return Ok(()) };
        // SAFETY: the image is dropped when the stream has finished.
        unsafe { self.constants.send(&*self.gpu, image, self.streams[1]) }
    }

    /// Puts the constants of a cold start aside if all of them are here.
    pub(super) fn forget_image(&self, state: &mut State) -> Outcome<()> {
        if state.image.as_ref().is_some_and(Image::is_awaited) {
            self.gpu.finish(self.streams[1])?;
            // Giving pinned memory back holds the driver up for longer than a request should wait.
            state.spent = state.image.take();
            self.is_cold.swap(false, Ordering::Relaxed);
        }
        Ok(())
    }
}
