//! When a GPU did the steps that it was told of, by events before and behind them: nobody waits for that.

use super::{Attempt, Device};
use crate::{
    cuda::driver::{Event, Outcome, Stream},
    span::{Span, Spans},
};

/// A step whose time is wanted.
#[derive(Clone, Copy)]
pub(crate) struct Stamp {
    pub(crate) request: u64,
    pub(crate) step: usize,
}

#[derive(Default)]
pub(super) struct Timeline {
    /// An event that has happened, and when, in nanoseconds of the host's clock.
    origin: Option<(Event, u64)>,
    /// Steps by slot, with the events before and behind them.
    steps: Vec<(usize, Stamp, [Event; 2])>,
    /// Events that are nobody's.
    spare: Vec<Event>,
    spans: Spans,
}

impl Device {
    /// Says what the host's clock shows now, so that the GPU's can be told from it.
    pub(crate) fn set_clock(&self, now: impl FnOnce() -> u64) -> Attempt {
        let set = || {
            let event = self.spare_event()?;
            self.gpu.record(event, self.outward)?;
            self.gpu.await_event(event)?;
            Ok((event, now()))
        };
        let origin = set().map_err(|fault| self.problem(fault))?;
        let mut timeline = self.timeline.lock();
        let before = timeline.origin.replace(origin);
        timeline.spare.extend(before.map(|(event, _)| event));
        Ok(())
    }

    /// Puts something on a stream, between events if its time is wanted.
    pub(super) fn timed(
        &self,
        (slot, stamp): (usize, Option<Stamp>),
        stream: Stream,
        issue: impl FnOnce() -> Outcome<()>,
    ) -> Outcome<()> {
        let Some(stamp) = stamp else { return issue() };
        let events = [self.spare_event()?, self.spare_event()?];
        self.gpu.record(events[0], stream)?;
        issue()?;
        self.gpu.record(events[1], stream)?;
        self.timeline.lock().steps.push((slot, stamp, events));
        Ok(())
    }

    fn spare_event(&self) -> Outcome<Event> {
        let spare = self.timeline.lock().spare.pop();
        spare.map_or_else(|| self.gpu.event(), Ok)
    }

    /// Keeps the times of a slot's steps, all of which are done.
    pub(crate) fn keep_times(&self, slot: usize) {
        let mut timeline = self.timeline.lock();
        let Timeline { origin, steps, spare, spans } = &mut *timeline;
        for (_, Stamp { request, step }, events) in steps.extract_if(.., |(of, ..)| *of == slot) {
            match self.times(*origin, events) {
                Some((begin_ns, end_ns)) => spans.push(Span { request, step, task: None, begin_ns, end_ns }),
                None => spans.left_out += 1,
            }
            spare.extend(events);
        }
    }

    /// When two events happened by the host's clock. CUDA tells times the less exactly the longer they are, so the second one's is
    /// told from the first.
    fn times(&self, origin: Option<(Event, u64)>, [begin, end]: [Event; 2]) -> Option<(u64, u64)> {
        let nanos = |from, to| self.gpu.micros_between(from, to).map(|micros| (micros * 1e3) as i64).ok();
        let (origin, clock) = origin?;
        let begin_ns = clock.saturating_add_signed(nanos(origin, begin)?);
        Some((begin_ns, begin_ns.saturating_add_signed(nanos(begin, end)?)))
    }

    /// The spans of steps whose requests are done.
    pub(crate) fn take_spans(&self) -> Spans {
        std::mem::take(&mut self.timeline.lock().spans)
    }
}
