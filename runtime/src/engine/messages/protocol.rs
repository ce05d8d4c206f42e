//! Protocol of requests that run on several ranks: begin, completion and failure.

use super::{
    Event, Messages, Outcome,
    control::{Control, PartFailure},
};
use crate::{
    engine::{Engine, Worker},
    error::{Error, Result},
    request::{Outputs, Request},
    slot::Failure,
};
use std::{mem, sync::atomic::Ordering};

/// Problem that ends the job.
struct Problem {
    message: String,
    /// True if the cause is the death of a rank.
    is_death: bool,
    /// True if no other rank has reported it.
    is_own: bool,
}

impl Problem {
    fn of(messages: &Messages, error: &Error) -> Self {
        Self { message: messages.describe(error), is_death: error.is_death(), is_own: true }
    }
}

impl Engine {
    pub(super) fn handle(&self, messages: &Messages, events: &mut Vec<Event>, worker: &Worker) {
        for event in events.drain(..) {
            // An event may end a request, as what precedes it may.
            self.end(worker);
            match event {
                Event::Step(ready, failure) => self.finish(ready, failure, worker),
                Event::Control(rank, control) => {
                    if let Err(error) = self.control(messages, rank, control, worker) {
                        self.break_down(messages, &Problem::of(messages, &error), worker);
                    }
                }
                Event::Broken(error) => self.break_down(messages, &Problem::of(messages, &error), worker),
            }
        }
        if !worker.is_passing.get() {
            self.drive(worker, || false);
        }
    }

    /// Handles a control message.
    fn control(&self, messages: &Messages, rank: usize, control: Control, worker: &Worker) -> Result<()> {
        let invalid = |reason: String| Error::InvalidMessage { rank, reason };
        match control {
            Control::Begin { request, slot } if rank == 0 && messages.rank() != 0 => {
                if !self.admission.take(slot) {
                    return Err(invalid(format!("it begins request {request} in slot {slot}, which is not free")));
                }
                let outputs = Outputs::Owned(vec![]);
                self.begin((slot, request), Request::new(), outputs, &[], false, worker);
                Ok(())
            }
            Control::Complete { request, slot, failure } if messages.rank() == 0 => {
                let known = self.slots.get(slot).ok_or_else(|| invalid(format!("it completes slot {slot}")))?;
                let mut progress = known.progress.lock();
                if progress.id != request || !progress.waiting_for.remove(&rank) {
                    return Err(invalid(format!(
                        "it completes request {request} in slot {slot}, which it does not run"
                    )));
                }
                if let (Some(PartFailure { step, message }), Some(current)) = (failure, &mut progress.current) {
                    let is_consequence = message.is_empty();
                    let error =
                        if is_consequence { Error::Withheld { rank } } else { Error::Reported { rank, message } };
                    current.fail(Failure { step, error, is_consequence });
                }
                if progress.ends() {
                    worker.ended.set(Some((slot, request)));
                }
                Ok(())
            }
            Control::Fail { message, is_death } => {
                self.break_down(messages, &Problem { message, is_death, is_own: false }, worker);
                Ok(())
            }
            Control::End if rank == 0 && messages.rank() != 0 => {
                messages.set_outcome(Outcome::Closed);
                Ok(())
            }
            Control::Alive => Ok(()),
            Control::Record { .. } | Control::Clock { .. } | Control::TakeSpans if rank == 0 => {
                self.control_of_spans(messages, rank, control);
                Ok(())
            }
            Control::Spans { spans, .. } if spans.iter().any(|span| span.step >= self.program.plan().steps.len()) => {
                Err(invalid("a span is of a step that does not exist".into()))
            }
            Control::ClockReply { .. } | Control::Spans { .. } if messages.rank() == 0 => {
                self.control_of_spans(messages, rank, control);
                Ok(())
            }
            _ => Err(invalid("it is not one that this rank may send".into())),
        }
    }

    /// Reports the completion of this rank's part of a request to rank 0.
    pub(in crate::engine) fn report(
        &self,
        (slot, request): (usize, u64),
        failure: Option<PartFailure>,
        worker: &Worker,
    ) {
        let Some(messages) = self.messages.as_ref().filter(|messages| messages.rank() != 0) else { return };
        messages.push_control(0, Control::Complete { request, slot, failure });
        worker.has_messages.set(true);
    }

    /// Announces a request of rank 0 to the other ranks.
    pub(in crate::engine) fn announce(&self, (slot, request): (usize, u64), worker: &Worker) {
        let Some(messages) = self.messages.as_ref().filter(|messages| messages.rank() == 0) else { return };
        for rank in messages.others() {
            messages.push_control(rank, Control::Begin { request, slot });
            worker.has_messages.set(true);
        }
        if messages.is_broken.load(Ordering::SeqCst) {
            self.give_up(slot, messages.lost(), worker);
        }
    }

    /// Ends the job with a problem: fails all requests, and notifies the other ranks unless one of them has reported it.
    fn break_down(&self, messages: &Messages, problem: &Problem, worker: &Worker) {
        let Problem { message, is_death, is_own } = problem;
        let is_death = *is_death;
        let requests = self.slots.iter().filter_map(|slot| {
            let progress = slot.progress.lock();
            progress.current.is_some().then_some(progress.id)
        });
        let mut requests: Vec<u64> = requests.collect();
        requests.sort_unstable();
        messages.set_outcome(Outcome::Lost { problem: message.clone(), requests: requests.clone(), is_death });
        if messages.is_broken.swap(true, Ordering::SeqCst) {
            return;
        }
        if *is_own {
            let fail = || Control::Fail { message: message.clone(), is_death };
            messages.others().for_each(|rank| messages.push_control(rank, fail()));
            worker.has_messages.set(true);
        }
        for slot in 0..self.slots.len() {
            let error = Error::Lost { problem: message.clone(), requests: requests.clone(), is_death };
            self.give_up(slot, error, worker);
            self.end(worker);
        }
        let steps = {
            let mut state = messages.state.lock();
            let steps = mem::take(&mut state.steps);
            state.abandoned.extend(steps.iter().map(|step| step.operation));
            steps
        };
        for step in steps {
            self.finish(step.ready, Some(messages.lost()), worker);
            self.end(worker);
        }
        messages.wake();
    }

    /// Fails the request in a slot, which no longer waits for other ranks.
    fn give_up(&self, slot: usize, error: Error, worker: &Worker) {
        let mut progress = self.slots[slot].progress.lock();
        progress.waiting_for.clear();
        if let Some(current) = &mut progress.current {
            // Precedes all other failures.
            current.failure = Some(Failure { step: 0, error, is_consequence: false });
        }
        if progress.ends() {
            worker.ended.set(Some((slot, progress.id)));
        }
    }

    /// Ends the job with an error of this rank.
    pub(crate) fn fail_job(&self, message: &str) -> Result<()> {
        let Some(messages) = &self.messages else { return Ok(()) };
        let worker = Worker::default();
        let message = format!("rank {}: {message}", messages.rank());
        self.break_down(messages, &Problem { message, is_death: false, is_own: true }, &worker);
        self.start_messages(&worker);
        self.end(&worker);
        messages.wait_for_end()
    }
}
