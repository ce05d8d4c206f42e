//! Times of steps on a GPU, measured by events before and after them, without synchronization.

use super::CudaExecutable;
use crate::{
    drivers::cuda::driver::{CudaResult, Event, Stream},
    hal::{Owner, QueueResult},
    span::{Span, Spans},
};

/// Recorded steps of a GPU.
#[derive(Default)]
pub(super) struct Timeline {
    /// Reference event that has occurred, and its time by the host's clock in nanoseconds.
    origin: Option<(Event, u64)>,
    /// Recorded steps with the events before and after them.
    steps: Vec<(Owner, [Event; 2])>,
    /// Free events.
    spare: Vec<Event>,
    spans: Spans,
}

impl CudaExecutable {
    /// Sets the reference event, which relates the GPU's clock to the host's.
    pub(super) fn relate_clocks(&self, now: &dyn Fn() -> u64) -> QueueResult {
        let set = || {
            let event = self.spare_event()?;
            self.gpu.record(event, self.download_stream)?;
            self.gpu.await_event(event)?;
            Ok((event, now()))
        };
        let origin = set().map_err(|fault| self.fault_message(fault))?;
        let mut timeline = self.timeline.lock();
        let before = timeline.origin.replace(origin);
        timeline.spare.extend(before.map(|(event, _)| event));
        Ok(())
    }

    /// Enqueues work on a stream, between events if its time is recorded.
    pub(super) fn timed(&self, owner: Owner, stream: Stream, issue: impl FnOnce() -> CudaResult<()>) -> CudaResult<()> {
        if owner.recorded.is_none() || owner.step.is_none() {
            return issue();
        }
        let events = [self.spare_event()?, self.spare_event()?];
        self.gpu.record(events[0], stream)?;
        issue()?;
        self.gpu.record(events[1], stream)?;
        self.timeline.lock().steps.push((owner, events));
        Ok(())
    }

    fn spare_event(&self) -> CudaResult<Event> {
        let spare = self.timeline.lock().spare.pop();
        spare.map_or_else(|| self.gpu.event(), Ok)
    }

    /// Converts the events of a slot's steps, all of which have completed, to spans.
    pub(super) fn keep_spans(&self, slot: usize) {
        let mut timeline = self.timeline.lock();
        let Timeline { origin, steps, spare, spans } = &mut *timeline;
        for (owner, events) in steps.extract_if(.., |(owner, _)| owner.slot == slot) {
            match (self.times(*origin, events), owner.recorded.zip(owner.step)) {
                (Some((begin_ns, end_ns)), Some((request, step))) => {
                    spans.push(Span { request, step, task: None, begin_ns, end_ns });
                }
                _ => spans.dropped += 1,
            }
            spare.extend(events);
        }
    }

    /// Returns the times of two events by the host's clock. CUDA's precision decreases with the distance of events (`f32`
    /// ms), so the second time is relative to the first event.
    fn times(&self, origin: Option<(Event, u64)>, [begin, end]: [Event; 2]) -> Option<(u64, u64)> {
        let nanos = |from, to| self.gpu.micros_between(from, to).map(|micros| (micros * 1e3) as i64).ok();
        let (origin, clock) = origin?;
        let begin_ns = clock.saturating_add_signed(nanos(origin, begin)?);
        Some((begin_ns, begin_ns.saturating_add_signed(nanos(begin, end)?)))
    }

    /// Returns the spans of completed requests and clears them.
    pub(super) fn take_spans(&self) -> Spans {
        std::mem::take(&mut self.timeline.lock().spans)
    }
}
