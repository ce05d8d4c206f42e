//! Copies from, to and on a GPU.

use super::{CudaExecutable, State, moments::Moment};
use crate::{
    drivers::cuda::{
        driver::{Outcome, Stream},
        upload::Image,
    },
    hal::{Attempt, Copy, Event, Owner, Queue, StepTimes},
};
use std::sync::atomic::Ordering;

impl Queue for CudaExecutable {
    unsafe fn copy(&self, owner: Owner, copies: &mut dyn Iterator<Item = Copy>, synchronized: bool) -> Attempt {
        let (gpu, stream) = (&*self.gpu, self.streams[0]);
        let mut state = self.enter()?;
        let mut copy = || {
            self.follow(owner.slot, Moment::Arrived, stream)?;
            self.await_constants(&mut state, self.constants.newest_value(), stream)?;
            self.timed(owner, stream, || {
                // SAFETY: the caller's.
                each(copies, |it| unsafe { gpu.copy_within(address(it.to), address(it.from), it.bytes, stream) })
            })?;
            self.mark(owner.slot, Moment::Computed, stream)?;
            if synchronized || state.image.is_some() {
                gpu.finish(stream)?;
            }
            self.forget_image(&mut state)
        };
        copy().map_err(|fault| self.failed(&mut state, &fault))
    }

    unsafe fn upload(&self, owner: Owner, copies: &mut dyn Iterator<Item = Copy>) -> Attempt {
        let sent = self.timed(owner, self.inward, || {
            // SAFETY: the caller's.
            each(copies, |it| unsafe { self.gpu.copy_in(address(it.to), it.from, it.bytes, self.inward) })
        });
        let marked = sent.and_then(|()| self.mark(owner.slot, Moment::Arrived, self.inward));
        marked.map_err(|fault| self.problem(fault))
    }

    unsafe fn download(&self, owner: Owner, copies: &mut dyn Iterator<Item = Copy>) -> Result<Event, String> {
        let (gpu, stream) = (&*self.gpu, self.outward);
        let Owner { slot, step, .. } = owner;
        let mut download = || {
            self.follow(slot, Moment::Arrived, stream)?;
            self.follow(slot, Moment::Computed, stream)?;
            if self.is_cold.load(Ordering::Relaxed) {
                // A constant may be downloaded, too.
                self.await_constants(&mut self.state.lock(), self.constants.newest_value(), stream)?;
            }
            self.timed(owner, stream, || {
                // SAFETY: the caller's.
                each(copies, |it| unsafe { gpu.copy_out(it.to, address(it.from), it.bytes, stream) })
            })?;
            self.mark(slot, Moment::Left(step), stream)
        };
        download().map_err(|fault| self.problem(fault))?;
        Ok(Event { slot, step })
    }

    fn wait(&self, event: Event) -> Attempt {
        self.await_moment(event.slot, Moment::Left(event.step)).map_err(|fault| self.problem(fault))
    }

    fn synchronize(&self, slot: usize) -> Attempt {
        self.settle(slot)
    }

    fn synchronize_all(&self) {
        self.finish();
    }

    fn set_clock(&self, now: &dyn Fn() -> u64) -> Attempt {
        self.relate_clocks(now)
    }

    fn keep_times(&self, slot: usize) {
        self.keep_spans(slot);
    }

    fn take_times(&self) -> StepTimes {
        StepTimes(self.take_spans())
    }
}

fn each(copies: &mut dyn Iterator<Item = Copy>, mut run: impl FnMut(Copy) -> Outcome<()>) -> Outcome<()> {
    for copy in copies {
        run(copy)?;
    }
    Ok(())
}

fn address(pointer: *const u8) -> u64 {
    pointer.addr() as u64
}

impl CudaExecutable {
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
