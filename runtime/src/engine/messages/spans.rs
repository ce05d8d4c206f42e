//! Collection of the spans of all ranks at rank 0, on its clock.
//!
//! Rank 0 compares its clock with those of the other ranks when recording begins and when it collects the spans: of several
//! round trips of a control message, the shortest one counts. In between, the difference of two clocks is assumed to change
//! linearly.

use super::{Messages, control::Control};
use crate::{
    bundle::Action,
    engine::{Engine, Worker},
    span::{Recording, Span, Spans},
};
use std::{
    collections::BTreeMap,
    mem,
    sync::atomic::Ordering,
    time::{Duration, Instant},
};

/// Round trips of a comparison of two clocks.
const ROUND_TRIPS: usize = 20;
/// Time limit of the reply of a rank, in which it also sends its spans so far.
const REPLY: Duration = Duration::from_secs(5);

/// Difference of the clock of a rank from that of rank 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClockDifference {
    /// Rank.
    pub rank: usize,
    /// Difference when recording began, in nanoseconds since both runtimes were loaded.
    pub offset_ns: i64,
    /// Change of the difference until the spans were collected.
    pub drift_ns: i64,
    /// Largest error of the two comparisons: half of a round trip.
    pub error_ns: u64,
}

/// Comparison of two clocks.
#[derive(Clone, Copy, Debug)]
struct Comparison {
    /// Time at rank 0.
    at_ns: u64,
    offset_ns: i64,
    round_trip_ns: u64,
}

/// Spans of another rank at rank 0, and the comparisons of its clock.
#[derive(Default)]
pub(super) struct Collected {
    /// The comparison of the shortest round trip, and the number of round trips.
    comparison: Option<Comparison>,
    replies: usize,
    /// Comparison when recording began.
    first: Option<Comparison>,
    spans: Spans,
    /// True if the rank has sent all of its spans.
    is_complete: bool,
}

impl Engine {
    /// Sets which spans are recorded from now on: by all ranks if this is rank 0.
    pub(crate) fn record(&self, recording: Recording) {
        if recording == Recording::Steps {
            // On failure, the spans of the device are dropped and counted.
            let now = || self.now();
            self.program.devices.iter().for_each(|device| _ = device.queue().set_clock(&now));
        }
        let is_changed = self.recording.swap(recording as u8, Ordering::Relaxed) != recording as u8;
        let Some(messages) = self.messages.as_ref().filter(|messages| is_changed && messages.rank() == 0) else {
            return;
        };
        self.tell(messages, || Control::Record { recording });
        if recording != Recording::Off {
            self.compare_clocks(messages);
            for collected in messages.collected.lock().values_mut() {
                collected.first = collected.comparison;
            }
        }
    }

    /// Returns the recorded spans, and the number of dropped ones, and clears both: the spans of all ranks if this is rank 0.
    /// Their steps are those of the whole bundle.
    pub(crate) fn take_spans(&self) -> (Vec<Span>, u64, Vec<ClockDifference>) {
        let Spans { mut spans, mut dropped } = self.take_own_spans();
        let mut clocks = vec![];
        if let Some(messages) = self.messages.as_ref().filter(|messages| messages.rank() == 0) {
            let mut others = vec![];
            self.compare_clocks(messages);
            self.tell(messages, || Control::TakeSpans);
            self.wait_for_replies(messages, |collected| collected.is_complete);
            for (rank, collected) in mem::take(&mut *messages.collected.lock()) {
                // Without a comparison, its times mean nothing.
                let Some(last) = collected.comparison else { continue };
                let clock = Clock { first: collected.first.unwrap_or(last), last };
                clocks.push(clock.difference(rank));
                dropped += collected.spans.dropped;
                others.extend(collected.spans.spans.into_iter().map(|span| clock.align(span)));
            }
            spans = self.merge(spans, others);
        }
        spans.sort_by_key(|span| (span.begin_ns, span.step, span.task));
        (spans, dropped, clocks)
    }

    /// Returns the spans of this rank, with the steps of the whole bundle.
    fn take_own_spans(&self) -> Spans {
        let mut own = Spans::default();
        let of_executors = self.executors.iter().map(|executor| mem::take(&mut *executor.state()));
        let of_devices = self.program.devices.iter().map(|device| device.queue().take_times().0);
        let of_messages = self.messages.iter().map(|messages| mem::take(&mut messages.state.lock().spans));
        for Spans { spans, dropped } in of_executors.chain(of_devices).chain(of_messages) {
            let whole = |span: Span| Span { step: self.program.whole_steps[span.step], ..span };
            own.spans.extend(spans.into_iter().map(whole));
            own.dropped += dropped;
        }
        own
    }

    /// Merges the spans of other ranks. A message has a span on both of its ranks: it takes from the later start, as the
    /// receiver is ready early, to the later end.
    fn merge(&self, mut spans: Vec<Span>, others: Vec<Span>) -> Vec<Span> {
        let is_transfer = |span: &Span| matches!(self.program.plan().steps[span.step].action, Action::Transfer { .. });
        let places = spans.iter().enumerate().filter(|(_, span)| is_transfer(span));
        let mut transfers: BTreeMap<(u64, usize), usize> =
            places.map(|(place, span)| ((span.request, span.step), place)).collect();
        for span in others {
            let place = if is_transfer(&span) { transfers.get(&(span.request, span.step)).copied() } else { None };
            match place.map(|place| &mut spans[place]) {
                Some(known) => {
                    known.begin_ns = known.begin_ns.max(span.begin_ns);
                    known.end_ns = known.end_ns.max(span.end_ns);
                }
                None => {
                    if is_transfer(&span) {
                        transfers.insert((span.request, span.step), spans.len());
                    }
                    spans.push(span);
                }
            }
        }
        spans
    }

    /// Handles a control message about spans and clocks.
    pub(super) fn control_of_spans(&self, messages: &Messages, rank: usize, control: Control) {
        match control {
            Control::Record { recording } => self.record(recording),
            Control::Clock { sent_ns } => {
                messages.push_control(rank, Control::ClockReply { sent_ns, now_ns: self.now() });
            }
            Control::TakeSpans => {
                let own = self.take_own_spans();
                Control::spans(own).for_each(|control| messages.push_control(rank, control));
            }
            Control::ClockReply { sent_ns, now_ns } => {
                let arrived_ns = self.now();
                let round_trip_ns = arrived_ns.saturating_sub(sent_ns);
                let at_ns = sent_ns + round_trip_ns / 2;
                let comparison = Comparison { at_ns, offset_ns: now_ns as i64 - at_ns as i64, round_trip_ns };
                self.note(messages, rank, |collected| {
                    collected.replies += 1;
                    let best = collected.comparison.get_or_insert(comparison);
                    if comparison.round_trip_ns < best.round_trip_ns {
                        *best = comparison;
                    }
                });
            }
            Control::Spans { spans, dropped, is_last } => self.note(messages, rank, |collected| {
                spans.into_iter().for_each(|span| collected.spans.push(span));
                collected.spans.dropped += dropped;
                collected.is_complete = is_last;
            }),
            _ => {}
        }
    }

    fn note(&self, messages: &Messages, rank: usize, change: impl FnOnce(&mut Collected)) {
        change(messages.collected.lock().entry(rank).or_default());
        messages.has_collected.notify_all();
    }

    /// Compares the clocks of all ranks with that of this one.
    fn compare_clocks(&self, messages: &Messages) {
        for rank in messages.others() {
            let mut all = messages.collected.lock();
            let collected = all.entry(rank).or_default();
            (collected.comparison, collected.replies) = (None, 0);
        }
        for trip in 1..=ROUND_TRIPS {
            self.tell(messages, || Control::Clock { sent_ns: 0 });
            if !self.wait_for_replies(messages, |collected| collected.replies >= trip) {
                return;
            }
        }
    }

    fn tell(&self, messages: &Messages, control: impl Fn() -> Control) {
        messages.others().for_each(|rank| messages.push_control(rank, control()));
        let worker = Worker::default();
        worker.has_messages.set(true);
        self.start_messages(&worker);
        messages.wake();
    }

    /// Waits until all other ranks have replied. Returns false if one does not.
    fn wait_for_replies(&self, messages: &Messages, has_replied: impl Fn(&Collected) -> bool) -> bool {
        let limit = Instant::now() + REPLY;
        let mut collected = messages.collected.lock();
        loop {
            let is_done = messages.others().all(|rank| collected.get(&rank).is_some_and(&has_replied));
            let left = limit.saturating_duration_since(Instant::now());
            if is_done || left.is_zero() || messages.is_broken.load(Ordering::SeqCst) {
                return is_done;
            }
            // A job that breaks down does not notify.
            collected = messages.has_collected.wait_timeout(collected, left.min(Duration::from_millis(20)));
        }
    }
}

/// Difference of two clocks over time.
struct Clock {
    first: Comparison,
    last: Comparison,
}

impl Clock {
    fn difference(&self, rank: usize) -> ClockDifference {
        ClockDifference {
            rank,
            offset_ns: self.first.offset_ns,
            drift_ns: self.last.offset_ns - self.first.offset_ns,
            error_ns: self.first.round_trip_ns.max(self.last.round_trip_ns) / 2,
        }
    }

    /// Returns a span of the other rank on the clock of this one.
    fn align(&self, span: Span) -> Span {
        let passed = self.last.at_ns.saturating_sub(self.first.at_ns);
        let drift = self.last.offset_ns - self.first.offset_ns;
        let at = |time_ns: u64| {
            let since = (time_ns as i64 - self.first.offset_ns - self.first.at_ns as i64) as f64;
            let share = if passed > 0 { (since / passed as f64).clamp(0.0, 1.0) } else { 0.0 };
            let offset = self.first.offset_ns + (drift as f64 * share) as i64;
            u64::try_from(time_ns as i64 - offset).unwrap_or(0)
        };
        let begin_ns = at(span.begin_ns);
        Span { begin_ns, end_ns: at(span.end_ns).max(begin_ns), ..span }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clocks_are_aligned() {
        let comparison = |at_ns, offset_ns| Comparison { at_ns, offset_ns, round_trip_ns: 20 };
        let clock = Clock { first: comparison(1000, 500), last: comparison(2000, 600) };
        let aligned = |begin_ns| clock.align(Span { request: 0, step: 0, task: None, begin_ns, end_ns: begin_ns + 10 });
        assert_eq!((aligned(1500).begin_ns, aligned(2600).begin_ns), (1000, 2000));
        assert_eq!(aligned(0).begin_ns, 0, "before rank 0 was loaded");
        let difference = ClockDifference { rank: 2, offset_ns: 500, drift_ns: 100, error_ns: 10 };
        assert_eq!(clock.difference(2), difference);
    }
}
