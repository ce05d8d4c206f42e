//! Steps on devices: launches, copies between and on devices, inputs and outputs.

use super::Engine;
use crate::{
    bundle::{Action, Port, unit},
    error::{Error, Result},
    hal::{Arguments, Copy, Launch, Owner, Queue, QueueResult},
    program::PlannedStep,
    request::{Outputs, Request},
    slot::{Failure, Slot},
    span::{Recording, Span, Spans},
    tensor::TensorRef,
};
use std::{ptr, sync::atomic::Ordering};

impl Engine {
    /// Launches the stage of a step. If `recorded` is the number of the request, records the times of the tasks.
    pub(super) fn launch(
        &self,
        spans: &mut Spans,
        slot: &Slot,
        request: &Request,
        (step, owner): (usize, Owner),
        recorded: Option<u64>,
    ) -> Result<()> {
        let Action::Launch { stage, .. } = self.program.bundle.steps[step].action else { return Ok(()) };
        let description = &self.program.bundle.stages[stage];
        if let Some(hook) = &self.before_launch {
            hook(&description.name);
        }
        let (is_cancelled, now) = (|| request.is_cancelled(), || self.now());
        let clock: &dyn Fn() -> u64 = &now;
        let launch = self.describe_launch(slot, owner, (step, stage), &is_cancelled, recorded.map(|_| clock));
        let device = &self.program.devices[description.device];
        // SAFETY: the steps that it depends on have completed or are enqueued on the device, which runs one stage at a time;
        // only this step writes its outputs.
        let times = unsafe { device.executable.launch(&launch) }?;
        for time in times {
            let (request, task) = (recorded.unwrap_or(0), Some(time.task));
            spans.push(Span { request, step, task, begin_ns: time.begin_ns, end_ns: time.end_ns });
        }
        Ok(())
    }

    fn describe_launch<'a>(
        &'a self,
        slot: &'a Slot,
        owner: Owner,
        (step, stage): (usize, usize),
        is_cancelled: &'a dyn Fn() -> bool,
        clock: Option<&'a dyn Fn() -> u64>,
    ) -> Launch<'a> {
        let bundle = &self.program.bundle;
        let (inputs, outputs): (&[usize], &[usize]) = match &bundle.steps[step].action {
            Action::Launch { inputs, outputs, .. } => (inputs, outputs),
            _ => (&[], &[]),
        };
        let arguments = |indices| Arguments { values: slot.values(), indices };
        let buffers = slot.table(self.program.steps[step].table.clone());
        let (inputs, outputs) = (arguments(inputs), arguments(outputs));
        Launch { stage, owner, inputs, outputs, buffers, is_cancelled, clock }
    }

    /// Prepares devices for a cold start: a first request that precedes the arrival of the constants.
    pub(crate) fn prepare_cold(&self) -> Result<()> {
        for (step, planned) in self.program.bundle.steps.iter().enumerate() {
            let Action::Launch { stage, .. } = planned.action else { continue };
            let device = &self.program.devices[self.program.bundle.stages[stage].device];
            for slot in &self.slots {
                let owner = Owner { slot: slot.index, step: Some(step), recorded: None, overwrites: false };
                device.executable.prepare_cold(&self.describe_launch(slot, owner, (step, stage), &|| false, None))?;
            }
        }
        Ok(())
    }

    /// Copies parts of values into the value `output` on the same device.
    pub(super) fn copy_on_device(
        &self,
        (step, owner): (usize, Owner),
        output: usize,
        mut copies: impl Iterator<Item = Copy>,
    ) -> Result<()> {
        let device = self.program.device_of(output);
        // SAFETY: a valid bundle's parts are within both values, and the steps that they depend on have completed or are
        // enqueued.
        let copied = unsafe { device.queue().copy(owner, &mut copies, false) };
        copied.map_err(|problem| {
            let bundle = &self.program.bundle;
            let id = &bundle.devices[bundle.values[output].device].id;
            let name = bundle.step_name(&bundle.steps[step]);
            Error::Device { what: format!("{name} on device '{id}' ({})", device.device.name()), problem }
        })
    }

    /// Builds the copy of a part of a value into another value.
    pub(super) fn part(slot: &Slot, (output, to): (usize, u64), (input, from): (usize, u64), bytes: u64) -> Copy {
        let at = |value: usize, offset: u64| slot.value(value).wrapping_add(offset as usize);
        Copy { to: at(output, to), from: at(input, from), bytes }
    }

    /// Transfers a value to another device, or waits for a download started by [`Engine::begin_download`].
    pub(super) fn transfer(&self, slot: &Slot, (step, owner): (usize, Owner)) -> Result<()> {
        let Some(transport) = self.program.transport(step) else { return Ok(()) };
        let is_download = self.program.steps[step].is_download;
        let started = if is_download { slot.progress.lock().started_transfers[step].take() } else { None };
        let event = match started {
            Some(event) => Some(event),
            None => self.begin_transfer(slot, (step, owner))?,
        };
        let waited = event.map_or(Ok(()), |event| transport.wait(event));
        let Action::Transfer { output, .. } = self.program.bundle.steps[step].action else { return Ok(()) };
        let finished = match self.program.steps[step].is_overwritten {
            true => waited.and_then(|()| self.program.device_of(output).queue().synchronize(slot.index)),
            false => waited,
        };
        finished.map_err(|problem| self.not_transferred(step, problem))
    }

    fn begin_transfer(&self, slot: &Slot, (step, owner): (usize, Owner)) -> Result<Option<crate::hal::Event>> {
        let Action::Transfer { input, output } = self.program.bundle.steps[step].action else { return Ok(None) };
        let Some(transport) = self.program.transport(step) else { return Ok(None) };
        let bytes = self.program.bundle.values[input].tensor.bytes;
        let copy = Self::part(slot, (output, 0), (input, 0), bytes);
        // SAFETY: the step that writes the input has completed or is enqueued on its device; the output has the same size,
        // does not overlap it, and only this step writes it.
        unsafe { transport.begin(owner, copy) }.map_err(|problem| self.not_transferred(step, problem))
    }

    /// Enqueues a download as soon as the step that computes the value is enqueued; the transfer step itself only waits for it.
    pub(super) fn begin_download(&self, slot: &Slot, request: u64, step: usize) {
        if slot.progress.lock().current.as_ref().is_none_or(|current| current.failure.is_some()) {
            return;
        }
        let started = self.begin_transfer(slot, (step, self.owner(slot, request, step)));
        let mut progress = slot.progress.lock();
        match started {
            Ok(event) => progress.started_transfers[step] = event,
            Err(error) => {
                if let Some(current) = &mut progress.current {
                    current.fail(Failure::of(self.program.whole_steps[step], error));
                }
            }
        }
    }

    /// Returns the owner of a step's work. The device records its time if it has a queue and only steps are recorded.
    pub(super) fn owner(&self, slot: &Slot, request: u64, step: usize) -> Owner {
        let PlannedStep { is_queued, overwrites, .. } = self.program.steps[step];
        let is_recorded = is_queued && self.recording.load(Ordering::Relaxed) == Recording::Steps as u8;
        Owner { slot: slot.index, step: Some(step), recorded: is_recorded.then_some(request), overwrites }
    }

    fn not_transferred(&self, step: usize, problem: String) -> Error {
        let bundle = &self.program.bundle;
        let action = &bundle.steps[step].action;
        let (input, output) = (action.reads()[0], action.writes()[0]);
        let device = |value: usize| bundle.devices[bundle.values[value].device].id.clone();
        Error::Transfer { value: bundle.values[input].name.clone(), from: device(input), to: device(output), problem }
    }

    /// Returns true if a device copies from and to this host memory without staging.
    pub(super) fn is_pinned(&self, pointer: *const u8) -> bool {
        self.program.devices.iter().any(|device| device.device.is_pinned(pointer))
    }

    /// Copies inputs to device memory: directly if they are `lent` and pinned, otherwise through the staging buffer.
    pub(super) fn upload_inputs(&self, slot: &Slot, inputs: &[TensorRef<'_>], lent: bool) -> Result<()> {
        self.each_device(&self.program.bundle.inputs, |queue, ports| {
            let mut copies = ports.iter().map(|&port| {
                let input = inputs[port].bytes;
                let mut source = input.as_ptr();
                if !lent || !self.is_pinned(source) {
                    let staging = slot.inputs.buffer(port);
                    // SAFETY: the staging buffer belongs to the slot, and the size of the input was checked.
                    unsafe { ptr::copy_nonoverlapping(source, staging, input.len()) };
                    source = staging;
                }
                let value = self.program.bundle.inputs[port].value;
                Copy { to: slot.value(value), from: source, bytes: input.len() as u64 }
            });
            let owner = Owner { slot: slot.index, step: None, recorded: None, overwrites: false };
            // SAFETY: this thread owns the slot, and none of its steps is ready yet.
            unsafe { queue.upload(owner, &mut copies) }
        })
    }

    /// Waits for all work enqueued for a slot on all devices, even if one of them fails. Returns the first error.
    pub(super) fn synchronize(&self, slot: &Slot) -> Result<()> {
        let devices = self.program.devices.iter().zip(&self.program.bundle.devices);
        let mut first = Ok(());
        for (device, description) in devices {
            if let Err(problem) = device.queue().synchronize(slot.index) {
                let what = format!("device '{}'", description.id);
                first = first.and(Err(Error::Device { what, problem }));
            }
        }
        first
    }

    /// Copies outputs from device memory to the caller's memory, through the staging buffer if it is not pinned.
    pub(super) fn download_outputs(&self, slot: &Slot, outputs: &mut Outputs) -> Result<()> {
        self.each_device(&self.program.bundle.outputs, |queue, ports| {
            let value = |port: usize| self.program.bundle.outputs[port].value;
            let bytes = |port: usize| self.program.bundle.values[value(port)].tensor.bytes;
            let targets = |&port: &usize| {
                let target = outputs.pointer(port);
                let download = if self.is_pinned(target) { target } else { slot.outputs.buffer(port) };
                (port, target, download)
            };
            let targets: Vec<(usize, *mut u8, *mut u8)> = ports.iter().map(targets).collect();
            let mut copies =
                targets.iter().map(|&(port, _, to)| Copy { to, from: slot.value(value(port)), bytes: bytes(port) });
            let owner = Owner { slot: slot.index, step: None, recorded: None, overwrites: false };
            // SAFETY: all steps are enqueued; targets are staging buffers, or the caller's buffers, whose sizes were checked.
            let event = unsafe { queue.download(owner, &mut copies) }?;
            queue.wait(event)?;
            for &(port, target, download) in targets.iter().filter(|(_, target, download)| target != download) {
                // SAFETY: as above.
                unsafe { ptr::copy_nonoverlapping(download, target, bytes(port) as usize) };
            }
            Ok(())
        })
    }

    /// Calls `run` for each device with its own memory, with the indices of the ports in that memory, unless there are none.
    fn each_device(&self, ports: &[Port], mut run: impl FnMut(&dyn Queue, &[usize]) -> QueueResult) -> Result<()> {
        let bundle = &self.program.bundle;
        for (index, device) in self.program.devices.iter().enumerate().filter(|(_, device)| !device.is_on_host()) {
            let is_there = |port: &usize| bundle.values[ports[*port].value].device == index;
            let there: Vec<usize> = (0..ports.len()).filter(is_there).collect();
            if !there.is_empty() {
                let what = || format!("inputs and outputs on device '{}'", bundle.devices[index].id);
                run(device.queue(), &there).map_err(|problem| Error::Device { what: what(), problem })?;
            }
        }
        Ok(())
    }
}

/// Returns the size in bytes of the parts that a slice or gather copies.
pub(super) fn part_bytes(bytes: u64, of: u64, outer: u64) -> u64 {
    unit(bytes, of, outer).unwrap_or(0)
}

impl Drop for Engine {
    fn drop(&mut self) {
        // A cancelled request may have left enqueued copies, and memory is freed before devices are closed.
        self.program.devices.iter().for_each(|device| device.queue().synchronize_all());
    }
}
