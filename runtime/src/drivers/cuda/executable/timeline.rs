//! When a GPU did the steps that it was told of, by events before and behind them: nobody waits for that.

use super::CudaExecutable;
use crate::{
    drivers::cuda::driver::{Event, Outcome, Stream},
    hal::{Attempt, Owner},
    span::{Span, Spans},
};

#[derive(Default)]
pub(super) struct Timeline {
    /// An event that has happened, and when, in nanoseconds of the host's clock.
    origin: Option<(Event, u64)>,
    /// Steps whose times are wanted, with the events before and behind them.
    steps: Vec<(Owner, [Event; 2])>,
    /// Events that are nobody's.
    spare: Vec<Event>,
    spans: Spans,
}

impl CudaExecutable {
    /// Says what the host's clock shows now, so that the GPU's can be told from it.
    pub(super) fn relate_clocks(&self, now: &dyn Fn() -> u64) -> Attempt {
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
    pub(super) fn timed(&self, owner: Owner, stream: Stream, issue: impl FnOnce() -> Outcome<()>) -> Outcome<()> {
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

    fn spare_event(&self) -> Outcome<Event> {
        let spare = self.timeline.lock().spare.pop();
        spare.map_or_else(|| self.gpu.event(), Ok)
    }

    /// Keeps the times of a slot's steps, all of which are done.
    pub(super) fn keep_spans(&self, slot: usize) {
        let mut timeline = self.timeline.lock();
        let Timeline { origin, steps, spare, spans } = &mut *timeline;
        for (owner, events) in steps.extract_if(.., |(owner, _)| owner.slot == slot) {
            match (self.times(*origin, events), owner.recorded.zip(owner.step)) {
                (Some((begin_ns, end_ns)), Some((request, step))) => {
                    spans.push(Span { request, step, task: None, begin_ns, end_ns });
                }
                _ => spans.left_out += 1,
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
    pub(super) fn take_spans(&self) -> Spans {
        std::mem::take(&mut self.timeline.lock().spans)
    }
}
