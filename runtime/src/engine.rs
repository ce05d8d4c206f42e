//! Runs steps by data flow: a step that is done makes those ready that waited for it, in the queues of their lanes.

mod gpu;

use crate::{
    admission::Admission,
    block::Block,
    bundle::{Action, Status, unit},
    error::{Error, Result},
    layout::Layout,
    program::{Planned, Program},
    request::{Outputs, Request},
    slot::{Current, Slot},
    span::{Recording, Span},
    station::{Ready, Seat, Station},
    team::Work,
    tensor::TensorRef,
    transfer::Transfer,
};
use std::{
    any::Any,
    cell::Cell,
    panic::{AssertUnwindSafe, catch_unwind},
    ptr, slice,
    sync::{
        Arc,
        atomic::{AtomicU8, Ordering},
    },
    time::Instant,
};

/// Called with a stage's name before it is launched.
pub type LaunchHook = Arc<dyn Fn(&str) + Send + Sync>;

pub(crate) struct Engine {
    pub(crate) layout: Layout,
    /// By input: whether kernels may read it where its owner has it.
    pub(crate) may_lend: Vec<bool>,
    /// By output: whether a GPU may copy it to where it goes.
    pub(crate) may_place: Vec<bool>,
    /// A device runs one stage at a time, so its stages share one.
    pub(crate) _arenas: Vec<Block>,
    pub(crate) slots: Vec<Slot>,
    pub(crate) admission: Admission,
    pub(crate) stations: Vec<Station>,
    /// For each lane, its station and which of the station's lanes it is.
    pub(crate) lanes: Vec<(usize, usize)>,
    /// The station where requests end that have outputs on GPUs.
    pub(crate) completions: Option<usize>,
    pub(crate) transfer: Arc<dyn Transfer>,
    pub(crate) before_launch: Option<LaunchHook>,
    /// A [`Recording`].
    pub(crate) recording: AtomicU8,
    pub(crate) loaded: Instant,
    /// Dropped last: the others have pointers into it.
    pub(crate) program: Program,
}

/// A thread that goes on with what it has made ready at stations of others: to wake another thread takes longer than many a step
/// does.
#[derive(Default)]
pub(crate) struct Hand {
    /// Its own station.
    station: Option<usize>,
    /// The slot of the request that it waits for anyway. It has time for all that GPUs do then; else, it only tells them.
    waits_for: Option<usize>,
    /// The station whose place it has taken.
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
    /// What a station's thread does.
    pub(crate) fn serve(&self, station: usize) {
        let hand = Hand { station: Some(station), ..Hand::default() };
        self.stations[station].serve(|seat, ready| {
            if ready.step as usize == self.program.steps.len() {
                return self.complete(ready.slot as usize);
            }
            self.run(seat, ready, &hand);
            self.drive(&hand, || self.stations[station].has_ready());
        });
    }

    /// Runs steps at the stations that a thread has taken, until it has none or it is enough.
    pub(crate) fn drive(&self, hand: &Hand, is_enough: impl Fn() -> bool) {
        self.end(hand);
        while let Some(station) = hand.next.take() {
            let has_next = || hand.next.get().is_some();
            // Who waits for a request tells all that is to be told before he waits for anything; others go on where they are needed.
            let is_enough = || hand.ended.get().is_some() || (has_next() && hand.waits_for.is_none()) || is_enough();
            // Who has been let in elsewhere to tell a GPU something does not wait for it.
            let may_run = |ready: Ready| {
                let step = self.program.steps.get(ready.step as usize);
                (hand.waits_for.is_some() && !has_next()) || step.is_some_and(|step| self.is_told(step))
            };
            self.stations[station].drive(|seat, ready| self.run(seat, ready, hand), may_run, is_enough);
            self.end(hand);
        }
    }

    /// Sees to the end of a request whose last step a thread has run, which may have to be waited for.
    fn end(&self, hand: &Hand) {
        let Some((slot, request)) = hand.ended.take() else { return };
        match self.completions {
            Some(station) if hand.waits_for != Some(slot) => {
                let step = self.program.steps.len() as u32;
                self.stations[station].push(0, Ready { request, rank: 0, step, slot: slot as u32 });
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
        let failure = self.send_inputs(slot, inputs, lent).err();
        for ((port, input), may_lend) in self.program.bundle.inputs.iter().zip(inputs).zip(&self.may_lend) {
            if self.program.gpu_of(port.value).is_some() {
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
            progress.are_told.fill(false);
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
        let (station, lane) = self.lanes[step.lane];
        if self.is_for(step, hand) && hand.next.get().is_none() && self.stations[station].take() {
            hand.next.set(Some(station));
        }
        let ready = Ready { request, rank: step.rank, step: index as u32, slot: slot as u32 };
        self.stations[station].push(lane, ready);
    }

    /// Whether GPUs are told what to do before it is needed.
    fn tells_ahead(&self) -> bool {
        self.recording.load(Ordering::Relaxed) < Recording::Tasks as u8
    }

    /// Whether a GPU is told of a step, and nobody waits for what it does.
    fn is_told(&self, step: &Planned) -> bool {
        step.is_on_gpu && !step.is_awaited && self.tells_ahead()
    }

    /// Whether a thread may run a step at another's station. A CPU's threads have cores of their own, unless there is one device.
    /// To tell a GPU what to do, anybody may who has no step of his own waiting, and those who have nothing else to do wait for it,
    /// too.
    fn is_for(&self, step: &Planned, hand: &Hand) -> bool {
        let is_idle = || hand.station.is_none_or(|station| !self.stations[station].has_ready());
        match hand.waits_for {
            Some(_) => step.is_on_gpu || self.stations.len() == 1,
            None => self.is_told(step) && is_idle(),
        }
    }

    /// Runs a step, unless its request has failed or was cancelled, and sees to those that wait for it.
    fn run(&self, seat: &mut Seat, ready: Ready, hand: &Hand) {
        let (slot_index, index) = (ready.slot as usize, ready.step as usize);
        let slot = &self.slots[slot_index];
        let request =
            slot.progress.lock().current.as_ref().filter(|it| it.failure.is_none()).map(|it| it.request.clone());
        let failure = request.and_then(|request| {
            let result = catch_unwind(AssertUnwindSafe(|| self.perform(seat, slot, &request, index, ready.request)));
            result.unwrap_or_else(|panic| Err(self.panicked(index, &*panic))).err()
        });
        let mut fetches = vec![];
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
                if step.is_fetch && self.tells_ahead() {
                    fetches.push(dependent);
                } else {
                    self.make_ready(slot_index, ready.request, (dependent, step), hand);
                }
            }
            progress.steps_left -= 1;
            progress.steps_left == 0
        };
        for fetch in fetches {
            self.fetch_ahead(slot, ready.request, fetch);
            self.make_ready(slot_index, ready.request, (fetch, &self.program.steps[fetch]), hand);
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
            None => self.fetch_outputs(slot, &mut outputs).map(|()| {
                for (index, port) in self.program.bundle.outputs.iter().enumerate() {
                    let (value, place) = (slot.value(port.value), outputs.pointer(index));
                    if self.program.gpu_of(port.value).is_some() || value == place {
                        continue;
                    }
                    let bytes = self.program.bundle.values[port.value].tensor.bytes as usize;
                    // SAFETY: the value was written, and the place for it is as long, which was checked.
                    unsafe { ptr::copy_nonoverlapping(value, place, bytes) };
                }
                outputs
            }),
        };
        // Who has the slot next may write what GPUs read until now.
        let settled = self.settle(slot);
        self.program.gpus.iter().flatten().for_each(|gpu| gpu.keep_times(slot_index));
        request.finish(outcome.and_then(|outputs| settled.map(|()| outputs)));
        self.admission.leave(slot_index);
    }

    fn perform(&self, seat: &mut Seat, slot: &Slot, request: &Request, index: usize, id: u64) -> Result<()> {
        if request.is_cancelled() {
            return Err(Error::Cancelled);
        }
        let recording = self.recording.load(Ordering::Relaxed);
        let is_recording = recording >= Recording::Steps as u8;
        let begin_ns = if is_recording { self.now() } else { 0 };
        let bundle = &self.program.bundle;
        match &bundle.steps[index].action {
            _ if self.program.steps[index].is_on_gpu => {
                let record_tasks = (recording >= Recording::Tasks as u8).then_some(id);
                self.perform_on_gpu(seat, slot, (index, self.stamp(id, index)), record_tasks)?;
                if record_tasks.is_none() {
                    return Ok(());
                }
                self.settle(slot)?;
            }
            Action::Launch { .. } => self.launch(seat, slot, request, index, is_recording.then_some(id))?,
            Action::Transfer { input, output } => self.carry(slot, *input, *output)?,
            Action::Slice { input, output, positions, of, outer, .. } => {
                let part = unit(bundle.values[*input].tensor.bytes, *of, *outer).unwrap_or(0);
                // SAFETY: a sound bundle's parts are inside both values, and the steps that they depend on are done.
                sliced(positions, *of, *outer, part).for_each(|(from, to)| unsafe {
                    copy(slot.value(*input), from, slot.value(*output), to, part);
                });
            }
            Action::Gather { inputs, output, of, outer, .. } => {
                let part = unit(bundle.values[*output].tensor.bytes, of.iter().sum(), *outer).unwrap_or(0);
                // SAFETY: as above.
                gathered(of, *outer, part).for_each(|(which, from, to, bytes)| unsafe {
                    copy(slot.value(inputs[which]), from, slot.value(*output), to, bytes);
                });
            }
        }
        if is_recording {
            seat.spans.push(Span { request: id, step: index, task: None, begin_ns, end_ns: self.now() });
        }
        Ok(())
    }

    fn launch(&self, seat: &mut Seat, slot: &Slot, request: &Request, index: usize, record: Option<u64>) -> Result<()> {
        let Action::Launch { stage: stage_index, .. } = self.program.bundle.steps[index].action else { return Ok(()) };
        let stage = &self.program.bundle.stages[stage_index];
        if let Some(hook) = &self.before_launch {
            hook(&stage.name);
        }
        let table = slot.table(self.program.steps[index].table).as_ptr();
        let Some(team) = &mut seat.team else { return Ok(()) };
        let mut task_began: Option<(usize, u64)> = None;
        for call in &self.program.stages[stage_index] {
            if request.is_cancelled() {
                return Err(Error::Cancelled);
            }
            if let Some(request) = record
                && task_began.is_none_or(|(task, _)| task != call.task)
            {
                let now = self.now();
                if let Some((task, begin_ns)) = task_began.replace((call.task, now)) {
                    seat.spans.push(Span { request, step: index, task: Some(task), begin_ns, end_ns: now });
                }
            }
            let buffers = table.wrapping_add(call.buffers.start);
            let work = Work { kernel: call.kernel, buffers, extent: call.extent, grain: call.grain };
            // SAFETY: the compiler wrote the kernel for buffers of these sizes; the arena is this seat's, inputs are there,
            // and outputs are this step's.
            let status = unsafe { team.run(work) };
            if let Some(problem) = Status::problem(status) {
                let task = stage.tasks.get(call.task).map_or_else(String::new, |task| task.name.clone());
                return Err(Error::Failed { stage: stage.name.clone(), task, problem: problem.to_owned() });
            }
        }
        if let (Some(request), Some((task, begin_ns))) = (record, task_began) {
            seat.spans.push(Span { request, step: index, task: Some(task), begin_ns, end_ns: self.now() });
        }
        Ok(())
    }

    fn carry(&self, slot: &Slot, input: usize, output: usize) -> Result<()> {
        let bundle = &self.program.bundle;
        let (from, to) = (&bundle.devices[bundle.values[input].device], &bundle.devices[bundle.values[output].device]);
        let length = bundle.values[input].tensor.bytes as usize;
        // SAFETY: the value is there and does not change, since the step that wrote it is done.
        let source = unsafe { slice::from_raw_parts(slot.value(input), length) };
        // SAFETY: the value is as long, elsewhere, and this step's.
        let target = unsafe { slice::from_raw_parts_mut(slot.value(output), length) };
        self.transfer.carry(from, to, source, target).map_err(|problem| Error::Transfer {
            value: bundle.values[input].name.clone(),
            from: from.id.clone(),
            to: to.id.clone(),
            problem,
        })
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

/// # Safety
/// Both ranges are inside what the pointers lead to, and do not overlap.
unsafe fn copy(source: *const u8, from: u64, target: *mut u8, to: u64, bytes: u64) {
    // SAFETY: the caller's.
    unsafe { ptr::copy_nonoverlapping(source.add(from as usize), target.add(to as usize), bytes as usize) };
}
