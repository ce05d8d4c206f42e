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
            // No stage is captured meanwhile.
            let _state = self.state.lock();
            let mut timeline = self.timeline.lock();
            let event = match timeline.origin.take() {
                Some((event, _)) => event,
                None => self.gpu.event()?,
            };
            self.gpu.record(event, self.outward)?;
            self.gpu.finish(self.outward)?;
            timeline.origin = Some((event, now()));
            Ok(())
        };
        set().map_err(|fault| self.problem(fault))
    }

    /// Puts something on a stream, between events if its time is wanted.
    pub(super) fn timed(
        &self,
        (slot, stamp): (usize, Option<Stamp>),
        stream: Stream,
        issue: impl FnOnce() -> Outcome<()>,
    ) -> Outcome<()> {
        let Some(stamp) = stamp else { return issue() };
        let event = || self.timeline.lock().spare.pop().map_or_else(|| self.gpu.event(), Ok);
        let events = [event()?, event()?];
        self.gpu.record(events[0], stream)?;
        issue()?;
        self.gpu.record(events[1], stream)?;
        self.timeline.lock().steps.push((slot, stamp, events));
        Ok(())
    }

    /// Keeps the times of a slot's steps, all of which are done.
    pub(super) fn keep_times(&self, slot: usize) -> Outcome<()> {
        let mut timeline = self.timeline.lock();
        let Timeline { origin, steps, spare, spans } = &mut *timeline;
        for (_, Stamp { request, step }, events) in steps.extract_if(.., |(of, ..)| *of == slot) {
            spare.extend(events);
            let Some((origin, clock)) = *origin else { continue };
            let at = |event| Ok(clock + (self.gpu.micros_between(origin, event)? * 1e3) as u64);
            let (begin_ns, end_ns) = (at(events[0])?, at(events[1])?);
            spans.push(Span { request, step, task: None, begin_ns, end_ns });
        }
        Ok(())
    }

    /// The spans of steps whose requests are done.
    pub(crate) fn take_spans(&self) -> Spans {
        std::mem::take(&mut self.timeline.lock().spans)
    }
}
