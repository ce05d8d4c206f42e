//! Copies from, to and on a GPU.

use super::{CudaExecutable, State, completion::WorkKind};
use crate::{
    drivers::cuda::{
        driver::{CudaResult, Stream},
        upload::ColdStartImage,
    },
    hal::{Copy, Event, Owner, Queue, QueueResult, StepTimes},
};
use std::sync::atomic::Ordering;

impl Queue for CudaExecutable {
    unsafe fn copy(&self, owner: Owner, copies: &mut dyn Iterator<Item = Copy>, synchronized: bool) -> QueueResult {
        let (gpu, stream) = (&*self.gpu, self.streams[0]);
        let mut state = self.enter()?;
        let mut copy = || {
            self.wait_on_stream(owner.slot, WorkKind::Upload, stream)?;
            self.await_constants(&mut state, self.constants.newest_value(), stream)?;
            self.timed(owner, stream, || {
                // SAFETY: guaranteed by the caller.
                each(copies, |it| unsafe { gpu.copy_on_device(address(it.to), address(it.from), it.bytes, stream) })
            })?;
            self.record_completion(owner.slot, WorkKind::Compute, stream)?;
            if synchronized || state.image.is_some() {
                gpu.synchronize(stream)?;
            }
            self.forget_image(&mut state)
        };
        copy().map_err(|fault| self.note_fault(&mut state, &fault))
    }

    unsafe fn upload(&self, owner: Owner, copies: &mut dyn Iterator<Item = Copy>) -> QueueResult {
        if owner.overwrites {
            let waited = self.wait_on_stream(owner.slot, WorkKind::Compute, self.upload_stream);
            waited.map_err(|fault| self.fault_message(fault))?;
        }
        let sent = self.timed(owner, self.upload_stream, || {
            // SAFETY: guaranteed by the caller.
            each(copies, |it| unsafe { self.gpu.copy_to_device(address(it.to), it.from, it.bytes, self.upload_stream) })
        });
        let marked = sent.and_then(|()| self.record_completion(owner.slot, WorkKind::Upload, self.upload_stream));
        marked.map_err(|fault| self.fault_message(fault))
    }

    unsafe fn download(&self, owner: Owner, copies: &mut dyn Iterator<Item = Copy>) -> Result<Event, String> {
        let (gpu, stream) = (&*self.gpu, self.download_stream);
        let Owner { slot, step, .. } = owner;
        let mut download = || {
            self.wait_on_stream(slot, WorkKind::Upload, stream)?;
            self.wait_on_stream(slot, WorkKind::Compute, stream)?;
            if self.is_cold.load(Ordering::Relaxed) {
                // The downloaded value may be a constant.
                self.await_constants(&mut self.state.lock(), self.constants.newest_value(), stream)?;
            }
            self.timed(owner, stream, || {
                // SAFETY: guaranteed by the caller.
                each(copies, |it| unsafe { gpu.copy_to_host(it.to, address(it.from), it.bytes, stream) })
            })?;
            self.record_completion(slot, WorkKind::Download(step), stream)
        };
        download().map_err(|fault| self.fault_message(fault))?;
        Ok(Event { slot, step })
    }

    fn wait(&self, event: Event) -> QueueResult {
        self.wait_on_host(event.slot, WorkKind::Download(event.step)).map_err(|fault| self.fault_message(fault))
    }

    fn synchronize(&self, slot: usize) -> QueueResult {
        self.synchronize_slot(slot)
    }

    fn synchronize_all(&self) {
        self.synchronize_streams();
    }

    fn set_clock(&self, now: &dyn Fn() -> u64) -> QueueResult {
        self.relate_clocks(now)
    }

    fn collect_times(&self, slot: usize) {
        self.keep_spans(slot);
    }

    fn take_times(&self) -> StepTimes {
        StepTimes(self.take_spans())
    }
}

fn each(copies: &mut dyn Iterator<Item = Copy>, mut run: impl FnMut(Copy) -> CudaResult<()>) -> CudaResult<()> {
    for copy in copies {
        run(copy)?;
    }
    Ok(())
}

fn address(pointer: *const u8) -> u64 {
    pointer.addr() as u64
}

impl CudaExecutable {
    /// Makes a stream wait for the constants up to `newest` in the upload's order. During a cold start, calls run on the
    /// first stream only, and constants are copied on the second.
    pub(super) fn await_constants(&self, state: &mut State, newest: Option<usize>, stream: Stream) -> CudaResult<()> {
        self.send_constants(state)?;
        let Some(image) = &mut state.image else { return Ok(()) };
        let Some(arrival) = image.arrival(newest) else { return Ok(()) };
        image.expect(arrival.is_last);
        self.gpu.wait(stream, arrival.event)
    }

    /// Enqueues the copies of the constants of a cold start, once.
    pub(super) fn send_constants(&self, state: &mut State) -> CudaResult<()> {
        let Some(image) = &mut state.image else { return Ok(()) };
        // SAFETY: the image is not dropped before the stream has finished.
        unsafe { self.constants.send(&*self.gpu, image, self.streams[1]) }
    }

    /// Ends the cold start if some work has waited for the last constants.
    pub(super) fn forget_image(&self, state: &mut State) -> CudaResult<()> {
        if state.image.as_ref().is_some_and(ColdStartImage::is_awaited) {
            self.gpu.synchronize(self.streams[1])?;
            // Not freed here: freeing pinned memory would block the request.
            state.retired_image = state.image.take();
            self.is_cold.swap(false, Ordering::Relaxed);
        }
        Ok(())
    }
}
