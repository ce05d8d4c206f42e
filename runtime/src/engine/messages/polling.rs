//! Progress of messages: start, completion by polling, and receipt of control messages.
//!
//! No thread blocks in an operation. The polling thread spins for a moment only if there is a core for it; then it sleeps for
//! a growing fraction of the time that it has waited, so that waiting ranks leave cores to busy ones. While all devices
//! compute, it polls rarely.

use super::{
    Event, Messages, PendingControl, PendingStep, State,
    control::{self, Control},
    watch::Watch,
    wrong_size,
};
use crate::{
    bundle::Action,
    communicator::{BUSY_SLEEP, Communicator, Envelope, idle_sleep},
    engine::{Engine, Worker},
    error::{Error, Result},
    slot::Failure,
    span::{Recording, Span, Spans},
};
use divi_threads::Ready;
use std::{
    cmp::Reverse,
    hint, mem,
    sync::atomic::Ordering,
    time::{Duration, Instant},
};

/// Waiting time after which messages that no step expects are looked for.
const UNEXPECTED: Duration = Duration::from_millis(5);
/// Time limit of the delivery of the last control messages after a failure.
const FAREWELL: Duration = Duration::from_secs(1);

impl Engine {
    /// Body of the polling thread.
    pub(crate) fn serve_messages(&self, messages: &Messages) {
        divi_threads::wake_precisely();
        let worker = Worker::default();
        let mut idle_since = Instant::now();
        let mut closing_since = None;
        let mut events = vec![];
        let watch = |timeout| Watch::new(timeout, messages.communicator.size(), Instant::now());
        let mut watch = messages.stall_timeout.map(watch);
        loop {
            let has_controls = {
                let mut state = messages.state.lock();
                self.start_queued(messages, &mut state, &mut events);
                self.poll(messages, &mut state, &mut events);
                if events.is_empty() && idle_since.elapsed() > UNEXPECTED {
                    self.find_unexpected(messages, &mut events);
                }
                !state.controls.is_empty()
            };
            watch.iter_mut().for_each(|watch| self.find_stalled(messages, watch, &mut events));
            if !events.is_empty() {
                idle_since = Instant::now();
                self.handle(messages, &mut events, &worker);
                continue;
            }
            let queue = messages.queue.lock();
            if queue.is_closing {
                let since = *closing_since.get_or_insert_with(Instant::now);
                let is_broken = messages.is_broken.load(Ordering::SeqCst);
                let is_delivered = !has_controls && queue.controls.is_empty();
                if is_delivered || (is_broken && since.elapsed() > FAREWELL) {
                    return;
                }
            }
            let mut queue = queue;
            if mem::take(&mut queue.is_urgent) {
                idle_since = Instant::now();
                continue;
            }
            let (waited, is_busy) = (idle_since.elapsed(), messages.is_busy());
            if waited < messages.spin_timeout && !is_busy {
                drop(queue);
                hint::spin_loop();
                continue;
            }
            if queue.steps.is_empty() && queue.controls.is_empty() {
                let sleep = if is_busy { BUSY_SLEEP } else { idle_sleep(waited) };
                drop(messages.changed.wait_timeout(queue, sleep));
            }
        }
    }

    /// Starts the messages that the thread has made ready, unless another thread is passing messages and will start them.
    pub(in crate::engine) fn start_messages(&self, worker: &Worker) {
        let Some(messages) = &self.messages else { return };
        if worker.is_passing.replace(true) {
            return;
        }
        let mut events = vec![];
        while worker.has_messages.take() {
            let is_complete = match messages.state.try_lock() {
                Some(mut state) => self.start_queued(messages, &mut state, &mut events),
                None => false,
            };
            if !is_complete {
                messages.wake();
            }
            self.handle(messages, &mut events, worker);
        }
        worker.is_passing.set(false);
    }

    /// Starts all messages of the queue. Returns true if all of them are complete.
    fn start_queued(&self, messages: &Messages, state: &mut State, events: &mut Vec<Event>) -> bool {
        let (mut steps, controls) = {
            let mut queue = messages.queue.lock();
            (mem::take(&mut queue.steps), mem::take(&mut queue.controls))
        };
        let mut is_complete = true;
        for (to, mut control) in controls {
            if let Control::Clock { sent_ns } = &mut control {
                *sent_ns = self.now();
            }
            let bytes = control.encode();
            // SAFETY: the bytes are on the heap, and are kept until the operation is complete.
            let started =
                unsafe { messages.communicator.send(to, control::TAG, bytes.as_ptr(), control::BYTES as u64) };
            match started {
                Ok(operation) => state.controls.push(PendingControl { operation, _bytes: bytes }),
                Err(error) => events.push(Event::Broken(error)),
            }
        }
        while let Some(Reverse(ready)) = steps.pop() {
            if messages.is_broken.load(Ordering::SeqCst) {
                events.push(Event::Step(ready, Some(messages.lost())));
                continue;
            }
            let started = self.start_step(messages, ready).and_then(|step| {
                let result = self.test_step(messages, &mut state.spans, &step)?;
                Ok((step, result))
            });
            match started {
                Ok((_, Some(result))) => events.push(Event::Step(ready, result.err())),
                Ok((step, None)) => {
                    is_complete = false;
                    state.steps.push(step);
                }
                Err(error) => {
                    let failure = lost_by(&error);
                    events.extend([Event::Broken(error), Event::Step(ready, Some(failure))]);
                }
            }
        }
        is_complete
    }

    /// Starts the message of a step.
    fn start_step(&self, messages: &Messages, ready: Ready) -> Result<PendingStep> {
        let (slot, step) = (&self.slots[ready.slot as usize], ready.step as usize);
        let is_failed = {
            let mut progress = slot.progress.lock();
            let current = progress.current.as_mut();
            current.is_none_or(|current| {
                if current.request.is_cancelled() {
                    current.fail(Failure::of(self.program.whole_steps[step], Error::Cancelled));
                }
                current.failure.is_some()
            })
        };
        let begin_ns = self.now();
        let bytes = |value: usize| self.program.bundle.values[value].tensor.bytes;
        let (operation, expected) = match self.program.bundle.steps[step].action {
            Action::Send { input, to, message } => {
                let bytes = if is_failed { 0 } else { bytes(input) };
                let (tag, data) = (messages.tag(slot.index, message), slot.value(input));
                // SAFETY: the step that writes the value is complete, steps that overwrite it wait for this one, and the memory
                // is not freed while the operation is in progress (`State::abandoned`).
                (unsafe { messages.communicator.send(to, tag, data, bytes) }?, None)
            }
            Action::Receive { output, from, message } => {
                let (tag, data) = (messages.tag(slot.index, message), slot.value(output));
                // SAFETY: as above; only this step writes the value, and its readers wait for it.
                (unsafe { messages.communicator.receive(from, tag, data, bytes(output)) }?, Some(bytes(output)))
            }
            _ => {
                let problem = format!("step {step} is no message");
                return Err(Error::Communication { problem });
            }
        };
        Ok(PendingStep { operation, ready, begin_ns, expected })
    }

    /// Returns the result of a step if it is complete.
    fn test_step(&self, messages: &Messages, spans: &mut Spans, step: &PendingStep) -> Result<Option<Result<()>>> {
        let Some(Envelope { rank, bytes, .. }) = messages.communicator.test(step.operation)? else { return Ok(None) };
        let Ready { request, step: index, .. } = step.ready;
        if self.recording.load(Ordering::Relaxed) >= Recording::Steps as u8 {
            let (begin_ns, end_ns) = (step.begin_ns, self.now());
            spans.push(Span { request, step: index as usize, task: None, begin_ns, end_ns });
        }
        match step.expected {
            Some(expected) if bytes == expected => Ok(Some(Ok(()))),
            Some(_) if bytes == 0 => Ok(Some(Err(Error::Withheld { rank }))),
            Some(expected) => Err(wrong_size(rank, expected, bytes)),
            None => Ok(Some(Ok(()))),
        }
    }

    /// Completes messages in progress and receives control messages.
    fn poll(&self, messages: &Messages, state: &mut State, events: &mut Vec<Event>) {
        if messages.is_broken.load(Ordering::SeqCst) {
            // Only the delivery of the error to other ranks is still in progress.
            let is_in_progress =
                |control: &PendingControl| matches!(messages.communicator.test(control.operation), Ok(None));
            state.controls.retain(is_in_progress);
            return;
        }
        let mut failure = None;
        let mut note = |error| _ = failure.get_or_insert(error);
        state.controls.retain(|control| match messages.communicator.test(control.operation) {
            Ok(envelope) => envelope.is_none(),
            Err(error) => {
                note(error);
                false
            }
        });
        let State { steps, spans, .. } = state;
        steps.retain(|step| match self.test_step(messages, spans, step) {
            Ok(None) => true,
            Ok(Some(result)) => {
                events.push(Event::Step(step.ready, result.err()));
                false
            }
            Err(error) => {
                let failure = lost_by(&error);
                events.push(Event::Step(step.ready, Some(failure)));
                note(error);
                false
            }
        });
        loop {
            match receive_control(&*messages.communicator) {
                Ok(None) => break,
                Ok(Some((rank, control))) => events.push(Event::Control(rank, control)),
                Err(error) => {
                    note(error);
                    break;
                }
            }
        }
        events.extend(failure.map(Event::Broken));
    }

    /// Sends a sign of life, and looks for ranks that have stalled.
    fn find_stalled(&self, messages: &Messages, watch: &mut Watch, events: &mut Vec<Event>) {
        if messages.is_broken.load(Ordering::SeqCst) || messages.queue.lock().is_closing {
            return;
        }
        let now = Instant::now();
        for event in &*events {
            if let Event::Control(rank, _) = event {
                watch.hear(*rank, now);
            }
        }
        if watch.is_due(now) {
            messages.others().for_each(|rank| messages.push_control(rank, Control::Alive));
        }
        let Some(rank) = watch.stalled(messages.rank(), now) else { return };
        let peer = messages.processes.get(rank);
        // Without recovery, the launcher ends it with the other ranks.
        let is_ended = messages.communicator.can_recover() && peer.is_some_and(|peer| peer.can_be_ended);
        if let Some(process) = peer.and_then(|peer| peer.process).filter(|_| is_ended) {
            process.kill();
        }
        events.push(Event::Broken(watch.error(rank, is_ended)));
    }

    /// Rejects messages that no step of this rank will receive.
    fn find_unexpected(&self, messages: &Messages, events: &mut Vec<Event>) {
        if messages.is_broken.load(Ordering::SeqCst) {
            return;
        }
        let checked = messages.communicator.probe(None).and_then(|envelope| match envelope {
            Some(envelope) if envelope.tag != control::TAG => messages.check_expected(envelope, self.slots.len()),
            _ => Ok(()),
        });
        events.extend(checked.err().map(Event::Broken));
    }
}

/// Returns the error of a step whose message has failed.
fn lost_by(error: &Error) -> Error {
    Error::Lost { problem: error.to_string(), requests: vec![], is_death: error.is_death() }
}

/// Receives a control message if one has arrived.
fn receive_control(communicator: &dyn Communicator) -> Result<Option<(usize, Control)>> {
    let Some(Envelope { rank, bytes, .. }) = communicator.probe(Some(control::TAG))? else { return Ok(None) };
    if bytes != control::BYTES as u64 {
        return Err(wrong_size(rank, control::BYTES as u64, bytes));
    }
    let mut message = Box::new([0; control::BYTES]);
    // SAFETY: the bytes are on the heap, and are kept until the operation is complete, or forever after an error.
    let operation = unsafe { communicator.receive(rank, control::TAG, message.as_mut_ptr(), bytes) }?;
    loop {
        // The message has arrived.
        match communicator.test(operation) {
            Ok(None) => hint::spin_loop(),
            Ok(Some(_)) => return Control::decode(rank, &message).map(|control| Some((rank, control))),
            Err(error) => {
                mem::forget(message);
                return Err(error);
            }
        }
    }
}
