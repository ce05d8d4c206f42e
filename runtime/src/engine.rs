//! Runs steps by data flow: a step that is done makes those ready that waited for it, in the queues of their lanes.

mod device;

use crate::{
    admission::Admission,
    bundle::Action,
    error::{Error, Result},
    hal::Allocation,
    layout::Layout,
    options::LaunchHook,
    program::{Planned, Program},
    request::{Outputs, Request},
    slot::{Current, Slot},
    span::{Recording, Span, Spans},
    tensor::TensorRef,
};
use device::part_bytes;
use divi_threads::{Executor, Ready};
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

pub(crate) struct Engine {
    pub(crate) layout: Layout,
    /// By input: whether kernels may read it where its owner has it.
    pub(crate) may_lend: Vec<bool>,
    /// By output: whether a device may copy it to where it goes.
    pub(crate) may_place: Vec<bool>,
    /// A device runs one stage at a time, so its stages share one.
    pub(crate) _arenas: Vec<Box<dyn Allocation>>,
    pub(crate) slots: Vec<Slot>,
    pub(crate) admission: Admission,
    pub(crate) executors: Vec<Executor<Spans>>,
    /// For each lane, its executor and which of the executor's lanes it is.
    pub(crate) lanes: Vec<(usize, usize)>,
    /// The executor where requests end that have outputs in other memory than the host's.
    pub(crate) completions: Option<usize>,
    pub(crate) before_launch: Option<LaunchHook>,
    /// A [`Recording`].
    pub(crate) recording: AtomicU8,
    pub(crate) loaded: Instant,
    /// Dropped last: the others have pointers into it.
    pub(crate) program: Program,
}

/// A thread that goes on with what it has made ready at executors of others: to wake another thread takes longer than many a step
/// does.
#[derive(Default)]
pub(crate) struct Hand {
    /// Its own executor.
    executor: Option<usize>,
    /// The slot of the request that it waits for. It may synchronize devices then; else, it only enqueues work.
    waits_for: Option<usize>,
    /// The executor whose place it has taken.
    next: Cell<Option<usize>>,
    /// A request whose last step it has run, and its slot.
    ended: Cell<Option<(usize, u64)>>,
}

impl Hand {
    pub(crate) fn waiting_for(slot: usize) -> Self {
        Self { waits_for: Some(slot), ..Self::default() }
    }
}

impl Engine {
    /// Runs the steps of an executor, as its thread, until the executor is closed.
    pub(crate) fn serve(&self, executor: usize) {
        let hand = Hand { executor: Some(executor), ..Hand::default() };
        self.executors[executor].serve(|spans, ready| {
            if ready.step as usize == self.program.steps.len() {
                return self.complete(ready.slot as usize);
            }
            self.run(spans, ready, &hand);
            self.drive(&hand, || self.executors[executor].has_ready());
        });
    }

    /// Runs steps at the executors that a thread has taken, until it has none or it is enough.
    pub(crate) fn drive(&self, hand: &Hand, is_enough: impl Fn() -> bool) {
        self.end(hand);
        while let Some(executor) = hand.next.take() {
            let has_next = || hand.next.get().is_some();
            // A thread blocked on a request enqueues all pending work before it synchronizes; others go on where they are needed.
            let is_enough = || hand.ended.get().is_some() || (has_next() && hand.waits_for.is_none()) || is_enough();
            // A thread that only enqueues work for another executor does not synchronize.
            let may_run = |ready: Ready| {
                let step = self.program.steps.get(ready.step as usize);
                (hand.waits_for.is_some() && !has_next()) || step.is_some_and(|step| self.is_enqueued(step))
            };
            self.executors[executor].drive(|spans, ready| self.run(spans, ready, hand), may_run, is_enough);
            self.end(hand);
        }
    }

    /// Sees to the end of a request whose last step a thread has run, which may have to be waited for.
    fn end(&self, hand: &Hand) {
        let Some((slot, request)) = hand.ended.take() else { return };
        match self.completions {
            Some(executor) if hand.waits_for != Some(slot) => {
                let step = self.program.steps.len() as u32;
                self.executors[executor].push(0, Ready { request, rank: 0, step, slot: slot as u32 });
            }
            _ => self.complete(slot),
        }
    }

    /// Gives a request the slot it was let into and makes its first steps ready. `inputs` are those of the bundle, in order;
    /// kernels read them where they are if that is `lent` and where kernels can read, else they are copied.
    pub(crate) fn begin(
        &self,
        (slot_index, id): (usize, u64),
        request: Arc<Request>,
        mut outputs: Outputs,
        inputs: &[TensorRef<'_>],
        lent: bool,
        hand: &Hand,
    ) {
        let slot = &self.slots[slot_index];
        let failure = self.upload_inputs(slot, inputs, lent).err();
        for ((port, input), may_lend) in self.program.bundle.inputs.iter().zip(inputs).zip(&self.may_lend) {
            if !self.program.is_on_host(port.value) {
                continue;
            }
            let source = input.bytes.as_ptr();
            let is_aligned = source.addr().is_multiple_of(crate::bundle::ALIGNMENT as usize);
            let is_usable = lent && is_aligned && (*may_lend || self.is_pinned(source));
            // SAFETY: the slot was given to this thread, and none of its steps is ready yet.
            unsafe { slot.place(&self.program, &self.layout, port.value, is_usable.then_some(source.cast_mut())) };
            if !is_usable {
                // SAFETY: the value is as long as the input, which was checked, and in memory of its own.
                unsafe { ptr::copy_nonoverlapping(source, slot.value(port.value), input.bytes.len()) };
            }
        }
        for (index, port) in self.program.bundle.outputs.iter().enumerate().filter(|(index, _)| self.may_place[*index])
        {
            let place = Some(outputs.pointer(index)).filter(|&place| self.is_pinned(place));
            // SAFETY: as above; the place is as long as the output, which was checked.
            unsafe { slot.place(&self.program, &self.layout, port.value, place) };
        }
        let steps = &self.program.steps;
        {
            let mut progress = slot.progress.lock();
            progress.current = Some(Current { request, outputs, failure });
            progress.steps_left = steps.len();
            progress.begun.fill(None);
            for (wait, step) in progress.waits.iter_mut().zip(steps) {
                *wait = step.dependencies.len() as u32;
            }
        }
        if steps.is_empty() {
            return self.complete(slot_index);
        }
        for (index, step) in steps.iter().enumerate().filter(|(_, step)| step.dependencies.is_empty()) {
            self.make_ready(slot_index, id, (index, step), hand);
        }
    }

    fn make_ready(&self, slot: usize, request: u64, (index, step): (usize, &Planned), hand: &Hand) {
        let (executor, lane) = self.lanes[step.lane];
        if self.is_for(step, hand) && hand.next.get().is_none() && self.executors[executor].take() {
            hand.next.set(Some(executor));
        }
        let ready = Ready { request, rank: step.rank, step: index as u32, slot: slot as u32 };
        self.executors[executor].push(lane, ready);
    }

    /// True if devices with queues run behind the threads that enqueue their work.
    fn runs_ahead(&self) -> bool {
        self.recording.load(Ordering::Relaxed) < Recording::Tasks as u8
    }

    /// True if a step is only enqueued, not synchronized.
    fn is_enqueued(&self, step: &Planned) -> bool {
        step.is_queued && !step.is_synchronized && self.runs_ahead()
    }

    /// True if a thread may run a step at another's executor. Threads that compute have cores of their own, unless there is one device.
    /// Any thread that has no step of its own waiting may enqueue work, and those that are blocked on a request synchronize, too.
    fn is_for(&self, step: &Planned, hand: &Hand) -> bool {
        let is_idle = || hand.executor.is_none_or(|executor| !self.executors[executor].has_ready());
        match hand.waits_for {
            Some(_) => step.is_queued || self.executors.len() == 1,
            None => self.is_enqueued(step) && is_idle(),
        }
    }

    /// Runs a step, unless its request has failed or was cancelled, and sees to those that wait for it.
    fn run(&self, spans: &mut Spans, ready: Ready, hand: &Hand) {
        let (slot_index, index) = (ready.slot as usize, ready.step as usize);
        let slot = &self.slots[slot_index];
        let request =
            slot.progress.lock().current.as_ref().filter(|it| it.failure.is_none()).map(|it| it.request.clone());
        let failure = request.and_then(|request| {
            let result = catch_unwind(AssertUnwindSafe(|| self.perform(spans, slot, &request, index, ready.request)));
            result.unwrap_or_else(|panic| Err(self.panicked(index, &*panic))).err()
        });
        let mut downloads = vec![];
        let is_last = {
            let mut progress = slot.progress.lock();
            if let Some(current) = &mut progress.current
                && current.failure.is_none()
            {
                current.failure = failure;
            }
            for &dependent in &self.program.steps[index].dependents {
                progress.waits[dependent] -= 1;
                if progress.waits[dependent] > 0 {
                    continue;
                }
                let step = &self.program.steps[dependent];
                if step.is_download && self.runs_ahead() {
                    downloads.push(dependent);
                } else {
                    self.make_ready(slot_index, ready.request, (dependent, step), hand);
                }
            }
            progress.steps_left -= 1;
            progress.steps_left == 0
        };
        for download in downloads {
            self.begin_download(slot, ready.request, download);
            self.make_ready(slot_index, ready.request, (download, &self.program.steps[download]), hand);
        }
        if is_last {
            hand.ended.set(Some((slot_index, ready.request)));
        }
    }

    fn panicked(&self, step: usize, panic: &(dyn Any + Send)) -> Error {
        let text =
            panic.downcast_ref::<&str>().copied().or_else(|| panic.downcast_ref::<String>().map(|text| &text[..]));
        let stage = self.program.bundle.step_name(&self.program.bundle.steps[step]);
        Error::Panicked { stage, message: text.unwrap_or("without a message").to_owned() }
    }

    /// Ends a request, all of whose steps are done. The one who has its slot next can be sure of that.
    fn complete(&self, slot_index: usize) {
        let slot = &self.slots[slot_index];
        let Some(Current { request, mut outputs, failure, .. }) = slot.progress.lock().current.take() else { return };
        let outcome = match failure {
            Some(error) => Err(error),
            None => self.download_outputs(slot, &mut outputs).map(|()| {
                for (index, port) in self.program.bundle.outputs.iter().enumerate() {
                    let (value, place) = (slot.value(port.value), outputs.pointer(index));
                    if !self.program.is_on_host(port.value) || value == place {
                        continue;
                    }
                    let bytes = self.program.bundle.values[port.value].tensor.bytes as usize;
                    // SAFETY: the value was written, and the place for it is as long, which was checked.
                    unsafe { ptr::copy_nonoverlapping(value, place, bytes) };
                }
                outputs
            }),
        };
        // The next request of the slot may write what devices read until now.
        let synchronized = self.synchronize(slot);
        self.program.devices.iter().for_each(|device| device.queue().keep_times(slot_index));
        request.finish(outcome.and_then(|outputs| synchronized.map(|()| outputs)));
        self.admission.leave(slot_index);
    }

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
                // Tasks of devices with queues run one after the other if their times are recorded.
                let least = if is_queued { Recording::Tasks } else { Recording::Steps };
                self.launch(spans, slot, request, step, (recording >= least as u8).then_some(id))?;
            }
            Action::Transfer { .. } => self.transfer(slot, step)?,
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
            // Devices record the times of their steps themselves, unless steps wait for their tasks.
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

    pub(crate) fn now(&self) -> u64 {
        self.loaded.elapsed().as_nanos() as u64
    }
}

/// Where the parts of a slice are in what it is taken out of, and where they go, in bytes.
fn sliced(positions: &[u64], of: u64, outer: u64, part: u64) -> impl Iterator<Item = (u64, u64)> {
    // Values without bytes may have any number of parts.
    let outer = if part == 0 { 0 } else { outer };
    let places = (0..outer).flat_map(move |o| positions.iter().map(move |position| o * of + position));
    places.enumerate().map(move |(to, from)| (from * part, to as u64 * part))
}

/// Which value each part of a gather is of, where it is there, where it goes, and its length, in bytes.
fn gathered(of: &[u64], outer: u64, part: u64) -> impl Iterator<Item = (usize, u64, u64, u64)> {
    let outer = if part == 0 { 0 } else { outer };
    let total: u64 = of.iter().sum();
    let befores = of.iter().scan(0, |sum, of| Some(std::mem::replace(sum, *sum + of)));
    of.iter().zip(befores).enumerate().flat_map(move |(which, (of, before))| {
        (0..outer).map(move |o| (which, o * of * part, (o * total + before) * part, of * part))
    })
}
