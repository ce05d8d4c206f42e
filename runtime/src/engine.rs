//! Data-flow execution: a completed step adds its dependents to the ready queues of their lanes when their last dependence is
//! satisfied.

mod device;
mod messages;

use crate::{
    admission::Admission,
    bundle::Action,
    error::{Error, Result},
    hal::Allocation,
    options::LaunchHook,
    program::{PlannedStep, Program},
    request::{Outputs, Request},
    slot::{ActiveRequest, Failure, Slot},
    span::{Recording, Span, Spans},
    tensor::TensorRef,
};
use device::part_bytes;
use divi_threads::{Executor, Ready};
pub use messages::ClockDifference;
pub(crate) use messages::Messages;
use messages::PartFailure;
use std::{
    any::Any,
    cell::Cell,
    panic::{AssertUnwindSafe, catch_unwind},
    ptr,
    sync::{
        Arc,
        atomic::{AtomicU8, Ordering},
    },
    time::Instant,
};

/// Executors, slots and program of a runtime.
pub(crate) struct Engine {
    /// By input: true if kernels may read it in the caller's memory.
    pub(crate) may_read_in_place: Vec<bool>,
    /// By output: true if a device may copy it directly to the caller's memory.
    pub(crate) may_write_in_place: Vec<bool>,
    /// One arena per device, shared by its stages: a device runs one stage at a time.
    pub(crate) _arenas: Vec<Box<dyn Allocation>>,
    pub(crate) slots: Vec<Slot>,
    pub(crate) admission: Admission,
    pub(crate) executors: Vec<Executor<Spans>>,
    /// By lane: the index of its executor, and its index among the executor's lanes.
    pub(crate) lanes: Vec<(usize, usize)>,
    /// Executor that completes requests; `Some` if outputs are in device memory and must be downloaded.
    pub(crate) completions: Option<usize>,
    /// Messages to and from other hosts; `None` if this process runs all parts of the plan.
    pub(crate) messages: Option<Messages>,
    pub(crate) before_launch: Option<LaunchHook>,
    /// A [`Recording`].
    pub(crate) recording: AtomicU8,
    pub(crate) loaded: Instant,
    /// Declared last, so that it is dropped last: the other fields have pointers into it.
    pub(crate) program: Program,
}

/// State of a thread that runs steps. After a step, the thread continues with dependents on other executors, because waking
/// another thread takes longer than many steps.
#[derive(Default)]
pub(crate) struct Worker {
    /// Executor that the thread serves.
    executor: Option<usize>,
    /// Slot of the request that the thread is blocked on. Only then may it synchronize devices; otherwise it only enqueues
    /// work.
    blocked_on: Option<usize>,
    /// Executor that the thread has claimed ([`Executor::try_claim`]).
    claimed: Cell<Option<usize>>,
    /// Slot and number of a request whose last step the thread has run.
    ended: Cell<Option<(usize, u64)>>,
    /// True if the thread has added messages to their queue and not started them.
    has_messages: Cell<bool>,
    /// True while the thread starts messages.
    is_passing: Cell<bool>,
}

impl Worker {
    pub(crate) fn blocked_on(slot: usize) -> Self {
        Self { blocked_on: Some(slot), ..Self::default() }
    }
}

impl Engine {
    /// Body of an executor's thread: runs its steps until it is closed.
    pub(crate) fn serve(&self, executor: usize) {
        let worker = Worker { executor: Some(executor), ..Worker::default() };
        self.executors[executor].serve(|spans, ready| {
            if ready.step as usize == self.program.steps.len() {
                self.complete(ready.slot as usize, &worker);
                self.start_messages(&worker);
            } else {
                self.run(spans, ready, &worker);
            }
            self.drive(&worker, || self.executors[executor].has_ready());
        });
    }

    /// Runs steps of the executors that the thread has claimed, until none is claimed. `is_enough` ends the claim of an
    /// executor.
    pub(crate) fn drive(&self, worker: &Worker, is_enough: impl Fn() -> bool) {
        self.end(worker);
        while let Some(executor) = worker.claimed.take() {
            let has_claimed = || worker.claimed.get().is_some();
            // A thread blocked on a request enqueues all pending work before it synchronizes; others move on to the next
            // executor.
            let is_enough =
                || worker.ended.get().is_some() || (has_claimed() && worker.blocked_on.is_none()) || is_enough();
            // A thread that enqueues work on behalf of another executor must not synchronize.
            let may_run = |ready: Ready| {
                let step = self.program.steps.get(ready.step as usize);
                (worker.blocked_on.is_some() && !has_claimed()) || step.is_some_and(|step| self.is_enqueued(step))
            };
            self.executors[executor].run_claimed(|spans, ready| self.run(spans, ready, worker), may_run, is_enough);
            self.end(worker);
        }
    }

    /// Completes the request whose last step the thread has run, or passes it to the completion executor if that would block
    /// the thread on downloads.
    fn end(&self, worker: &Worker) {
        while let Some((slot, request)) = worker.ended.take() {
            match self.completions {
                Some(executor) if worker.blocked_on != Some(slot) => {
                    let step = self.program.steps.len() as u32;
                    self.executors[executor].push(0, Ready { request, rank: 0, step, slot: slot as u32 });
                }
                _ => self.complete(slot, worker),
            }
            // A message may end another request.
            self.start_messages(worker);
        }
    }

    /// Starts a request in its slot and enqueues its first steps. `inputs` are in the bundle's order. Kernels read them in
    /// place if they are `lent`, aligned and accessible; otherwise they are copied.
    pub(crate) fn begin(
        &self,
        (slot_index, id): (usize, u64),
        request: Arc<Request>,
        mut outputs: Outputs,
        inputs: &[TensorRef<'_>],
        lent: bool,
        worker: &Worker,
    ) {
        let slot = &self.slots[slot_index];
        let failure = self.upload_inputs(slot, inputs, lent).err().map(|error| Failure::of(0, error));
        for ((port, input), may_read_in_place) in
            self.program.bundle.inputs.iter().zip(inputs).zip(&self.may_read_in_place)
        {
            if !self.program.is_on_host(port.value) {
                continue;
            }
            let source = input.bytes.as_ptr();
            let is_aligned = source.addr().is_multiple_of(crate::bundle::ALIGNMENT as usize);
            let is_usable = lent && is_aligned && (*may_read_in_place || self.is_pinned(source));
            // SAFETY: this thread owns the slot, and none of its steps is ready yet.
            unsafe { slot.bind(&self.program, port.value, is_usable.then_some(source.cast_mut())) };
            if !is_usable {
                // SAFETY: `match_inputs` checked the size, and the value is in the slot's own memory.
                unsafe { ptr::copy_nonoverlapping(source, slot.value(port.value), input.bytes.len()) };
            }
        }
        for (index, port) in
            self.program.bundle.outputs.iter().enumerate().filter(|(index, _)| self.may_write_in_place[*index])
        {
            let lent = Some(outputs.pointer(index)).filter(|&pointer| self.is_pinned(pointer));
            // SAFETY: as above; the size of the buffer was checked.
            unsafe { slot.bind(&self.program, port.value, lent) };
        }
        let steps = &self.program.steps;
        {
            let mut progress = slot.progress.lock();
            progress.id = id;
            progress.current = Some(ActiveRequest { request, outputs, failure });
            progress.steps_left = steps.len();
            progress.has_ended = false;
            let reporting = self.messages.as_ref().map_or(0, Messages::reporting);
            progress.waiting_for.extend(1..=reporting);
            progress.started_transfers.fill(None);
            for (wait, step) in progress.pending_dependences.iter_mut().zip(steps) {
                *wait = step.dependencies.len() as u32;
            }
        }
        self.announce((slot_index, id), worker);
        if steps.is_empty() && slot.progress.lock().ends() {
            worker.ended.set(Some((slot_index, id)));
        }
        for (index, step) in steps.iter().enumerate().filter(|(_, step)| step.dependencies.is_empty()) {
            self.make_ready(slot_index, id, (index, step), worker);
        }
        self.start_messages(worker);
    }

    /// Adds a step to its ready queue and, if the thread may run it, claims the executor.
    fn make_ready(&self, slot: usize, request: u64, (index, step): (usize, &PlannedStep), worker: &Worker) {
        if let Some(messages) = self.messages.as_ref().filter(|_| step.is_message) {
            messages.push(Ready { request, rank: step.rank, step: index as u32, slot: slot as u32 });
            return worker.has_messages.set(true);
        }
        let (executor, lane) = self.lanes[step.lane];
        if self.may_run_elsewhere(step, worker)
            && worker.claimed.get().is_none()
            && self.executors[executor].try_claim()
        {
            worker.claimed.set(Some(executor));
        }
        let ready = Ready { request, rank: step.rank, step: index as u32, slot: slot as u32 };
        self.executors[executor].push(lane, ready);
    }

    /// Returns true if devices with queues run asynchronously, which recording of tasks prevents.
    fn is_asynchronous(&self) -> bool {
        self.recording.load(Ordering::Relaxed) < Recording::Tasks as u8
    }

    /// Returns true if a step is only enqueued, not synchronized.
    fn is_enqueued(&self, step: &PlannedStep) -> bool {
        step.is_queued && !step.is_synchronized && self.is_asynchronous()
    }

    /// Returns true if the thread may run a step of another executor. Inline computation stays on the executor's own core,
    /// unless there is one executor only. A thread without ready steps of its own may enqueue work; a thread blocked on a
    /// request may also synchronize, and move parts of values on a device without stages.
    fn may_run_elsewhere(&self, step: &PlannedStep, worker: &Worker) -> bool {
        let is_idle = || worker.executor.is_none_or(|executor| !self.executors[executor].has_ready());
        match worker.blocked_on {
            Some(_) => step.is_queued || step.is_on_idle_device || self.executors.len() == 1,
            None => self.is_enqueued(step) && is_idle(),
        }
    }

    /// Runs a step, unless its request has failed or was cancelled, and makes its dependents ready.
    fn run(&self, spans: &mut Spans, ready: Ready, worker: &Worker) {
        let (slot_index, index) = (ready.slot as usize, ready.step as usize);
        let slot = &self.slots[slot_index];
        let request =
            slot.progress.lock().current.as_ref().filter(|it| it.failure.is_none()).map(|it| it.request.clone());
        let failure = request.and_then(|request| {
            let mut perform = || {
                let perform = AssertUnwindSafe(|| self.perform(spans, slot, &request, index, ready.request));
                catch_unwind(perform).unwrap_or_else(|panic| Err(self.panicked(index, &*panic))).err()
            };
            match &self.messages {
                Some(messages) if self.program.steps[index].is_computing => messages.while_computing(perform),
                _ => perform(),
            }
        });
        self.finish(ready, failure, worker);
        self.start_messages(worker);
        let PlannedStep { lane, is_computing, .. } = self.program.steps[index];
        if let Some(messages) = self.messages.as_ref().filter(|_| is_computing)
            && !self.executors[self.lanes[lane].0].has_ready()
        {
            // The device waits for messages now.
            messages.wake();
        }
    }

    /// Makes the dependents of a step ready, which has been run or skipped.
    fn finish(&self, ready: Ready, failure: Option<Error>, worker: &Worker) {
        let (slot_index, index) = (ready.slot as usize, ready.step as usize);
        let slot = &self.slots[slot_index];
        let mut downloads = vec![];
        let is_last = {
            let mut progress = slot.progress.lock();
            if let (Some(current), Some(error)) = (&mut progress.current, failure) {
                current.fail(Failure::of(self.program.whole_steps[index], error));
            }
            for &dependent in &self.program.steps[index].dependents {
                progress.pending_dependences[dependent] -= 1;
                if progress.pending_dependences[dependent] > 0 {
                    continue;
                }
                let step = &self.program.steps[dependent];
                if step.is_download && self.is_asynchronous() {
                    downloads.push(dependent);
                } else {
                    self.make_ready(slot_index, ready.request, (dependent, step), worker);
                }
            }
            progress.steps_left -= 1;
            progress.ends()
        };
        for download in downloads {
            self.begin_download(slot, ready.request, download);
            self.make_ready(slot_index, ready.request, (download, &self.program.steps[download]), worker);
        }
        if is_last {
            worker.ended.set(Some((slot_index, ready.request)));
        }
    }

    fn panicked(&self, step: usize, panic: &(dyn Any + Send)) -> Error {
        let text =
            panic.downcast_ref::<&str>().copied().or_else(|| panic.downcast_ref::<String>().map(|text| &text[..]));
        let stage = self.program.bundle.step_name(&self.program.bundle.steps[step]);
        Error::Panicked { stage, message: text.unwrap_or("no message").to_owned() }
    }

    /// Completes a request whose steps have all run: downloads its outputs, synchronizes the slot and releases it.
    fn complete(&self, slot_index: usize, worker: &Worker) {
        let slot = &self.slots[slot_index];
        let (id, current) = {
            let mut progress = slot.progress.lock();
            (progress.id, progress.current.take())
        };
        let Some(ActiveRequest { request, mut outputs, failure }) = current else { return };
        let mut step = self.program.whole_steps.len();
        let outcome = match failure {
            Some(failure) => {
                step = failure.step;
                Err(failure.error)
            }
            None => self.download_outputs(slot, &mut outputs).map(|()| {
                for (index, port) in self.program.bundle.outputs.iter().enumerate() {
                    let (value, target) = (slot.value(port.value), outputs.pointer(index));
                    if !self.program.is_on_host(port.value) || value == target {
                        continue;
                    }
                    let bytes = self.program.bundle.values[port.value].tensor.bytes as usize;
                    // SAFETY: the value has been written, and the size of the target was checked.
                    unsafe { ptr::copy_nonoverlapping(value, target, bytes) };
                }
                outputs
            }),
        };
        // Devices may still read memory that the next request of the slot will write.
        let synchronized = self.synchronize(slot);
        self.program.devices.iter().for_each(|device| device.queue().collect_times(slot_index));
        let outcome = outcome.and_then(|outputs| synchronized.map(|()| outputs));
        let failure = outcome.as_ref().err().map(|error| PartFailure::of(step, error));
        let is_lost = matches!(outcome, Err(Error::Lost { .. }));
        request.finish(outcome);
        // Rank 0 may use the slot again as soon as it has the report.
        self.admission.release(slot_index);
        if !is_lost {
            self.report((slot_index, id), failure, worker);
        }
    }

    /// Performs the action of a step and records its span.
    fn perform(&self, spans: &mut Spans, slot: &Slot, request: &Request, index: usize, id: u64) -> Result<()> {
        if request.is_cancelled() {
            return Err(Error::Cancelled);
        }
        let recording = self.recording.load(Ordering::Relaxed);
        let is_queued = self.program.steps[index].is_queued;
        let is_recording = recording >= Recording::Steps as u8;
        let begin_ns = if is_recording { self.now() } else { 0 };
        let bundle = &self.program.bundle;
        let step = (index, self.owner(slot, id, index));
        match &bundle.steps[index].action {
            Action::Launch { .. } => {
                // Recording the tasks of a device with a queue serializes them, so it is done at the highest level only.
                let least = if is_queued { Recording::Tasks } else { Recording::Steps };
                self.launch(spans, slot, request, step, (recording >= least as u8).then_some(id))?;
            }
            Action::Transfer { .. } => self.transfer(slot, step)?,
            // Messages are passed by `start_messages`.
            Action::Send { .. } | Action::Receive { .. } => {}
            Action::Slice { input, output, positions, of, outer, .. } => {
                let bytes = part_bytes(bundle.values[*input].tensor.bytes, *of, *outer);
                let parts = sliced(positions, *of, *outer, bytes);
                let copies = parts.map(|(from, to)| Self::part(slot, (*output, to), (*input, from), bytes));
                self.copy_on_device(step, *output, copies)?;
            }
            Action::Gather { inputs, output, of, outer, .. } => {
                let part = part_bytes(bundle.values[*output].tensor.bytes, of.iter().sum(), *outer);
                let parts = gathered(of, *outer, part);
                let copies =
                    parts.map(|(which, from, to, bytes)| Self::part(slot, (*output, to), (inputs[which], from), bytes));
                self.copy_on_device(step, *output, copies)?;
            }
        }
        if is_queued {
            // Devices record the times of their steps with events, unless steps are synchronized to record tasks.
            if recording < Recording::Tasks as u8 {
                return Ok(());
            }
            self.synchronize(slot)?;
        }
        if is_recording {
            spans.push(Span { request: id, step: index, task: None, begin_ns, end_ns: self.now() });
        }
        Ok(())
    }

    /// Returns nanoseconds since the runtime was loaded.
    pub(crate) fn now(&self) -> u64 {
        self.loaded.elapsed().as_nanos() as u64
    }
}

/// Returns the byte offsets of each part of a slice in its operand and in its result.
fn sliced(positions: &[u64], of: u64, outer: u64, part: u64) -> impl Iterator<Item = (u64, u64)> {
    // A value of zero bytes may have any number of parts.
    let outer = if part == 0 { 0 } else { outer };
    let parts = (0..outer).flat_map(move |o| positions.iter().map(move |position| o * of + position));
    parts.enumerate().map(move |(to, from)| (from * part, to as u64 * part))
}

/// Returns for each part of a gather the index of its operand, the byte offsets in the operand and in the result, and its size.
fn gathered(of: &[u64], outer: u64, part: u64) -> impl Iterator<Item = (usize, u64, u64, u64)> {
    let outer = if part == 0 { 0 } else { outer };
    let total: u64 = of.iter().sum();
    let starts = of.iter().scan(0, |sum, of| Some(std::mem::replace(sum, *sum + of)));
    of.iter().zip(starts).enumerate().flat_map(move |(operand, (of, start))| {
        (0..outer).map(move |o| (operand, o * of * part, (o * total + start) * part, of * part))
    })
}
