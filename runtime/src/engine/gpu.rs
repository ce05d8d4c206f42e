//! Steps on GPUs, and what comes to them from the host and goes back.

use super::{Engine, gathered, sliced};
use crate::{
    bundle::{Action, Port, unit},
    cuda::{Address, Attempt, Device, Launch, Stamp},
    error::{Error, Result},
    request::Outputs,
    slot::Slot,
    span::{Recording, Span},
    station::Seat,
    tensor::TensorRef,
};
use std::{ptr, sync::atomic::Ordering};

impl Engine {
    /// Runs a step that a GPU has a part in, or tells the GPU to. The time of the step is wanted if it has a stamp, and those of
    /// its tasks if there is a request to record them for.
    pub(super) fn perform_on_gpu(
        &self,
        seat: &mut Seat,
        slot: &Slot,
        (index, stamp): (usize, Option<Stamp>),
        record: Option<u64>,
    ) -> Result<()> {
        let bundle = &self.program.bundle;
        let step = &bundle.steps[index];
        let at = |value: usize| slot.value(value).addr() as Address;
        match &step.action {
            Action::Launch { stage, .. } => self.launch_on_gpu(seat, slot, (index, *stage, stamp), record),
            Action::Transfer { input, output } => self.carry_by_gpu(slot, (index, stamp), (*input, *output)),
            Action::Slice { input, output, positions, of, outer, .. } => {
                let Some(gpu) = self.program.gpu_of(*output) else { return Ok(()) };
                let part = unit(bundle.values[*input].tensor.bytes, *of, *outer).unwrap_or(0);
                let parts = sliced(positions, *of, *outer, part);
                let parts = parts.map(|(from, to)| (at(*output) + to, at(*input) + from, part));
                // SAFETY: a sound bundle's parts are inside both values, and the steps that they depend on are done.
                unsafe { gpu.copy(&bundle.step_name(step), (slot.index, stamp), false, parts) }
            }
            Action::Gather { inputs, output, of, outer, .. } => {
                let Some(gpu) = self.program.gpu_of(*output) else { return Ok(()) };
                let part = unit(bundle.values[*output].tensor.bytes, of.iter().sum(), *outer).unwrap_or(0);
                let parts = gathered(of, *outer, part);
                let parts = parts.map(|(which, from, to, bytes)| (at(*output) + to, at(inputs[which]) + from, bytes));
                // SAFETY: as above.
                unsafe { gpu.copy(&bundle.step_name(step), (slot.index, stamp), false, parts) }
            }
        }
    }

    /// Has GPUs get ready for first requests that come before the weights.
    pub(crate) fn prepare_cold(&self) -> Result<()> {
        for (step, planned) in self.program.bundle.steps.iter().enumerate() {
            let Action::Launch { stage, .. } = planned.action else { continue };
            let Some(gpu) = &self.program.gpus[self.program.bundle.stages[stage].device] else { continue };
            for slot in &self.slots {
                let table = self.gpu_table(slot, (step, stage));
                gpu.prepare_cold(Launch { stage, step, slot: slot.index, stamp: None, table: &table })?;
            }
        }
        Ok(())
    }

    /// The addresses of all buffers of a launch.
    fn gpu_table(&self, slot: &Slot, (step, stage): (usize, usize)) -> Vec<Address> {
        let length = self.program.bundle.stages[stage].calls.iter().map(|call| call.buffers.len()).sum();
        let table = &slot.table(self.program.steps[step].table)[..length];
        table.iter().map(|pointer| pointer.addr() as Address).collect()
    }

    fn launch_on_gpu(
        &self,
        seat: &mut Seat,
        slot: &Slot,
        (step, stage, stamp): (usize, usize, Option<Stamp>),
        record: Option<u64>,
    ) -> Result<()> {
        let description = &self.program.bundle.stages[stage];
        let Some(gpu) = &self.program.gpus[description.device] else { return Ok(()) };
        if let Some(hook) = &self.before_launch {
            hook(&description.name);
        }
        let table = self.gpu_table(slot, (step, stage));
        let launch = Launch { stage, step, slot: slot.index, stamp, table: &table };
        let now = || self.now();
        let clock: &dyn Fn() -> u64 = &now;
        // SAFETY: the GPU was told of the steps that it depends on; the arena is this seat's, and outputs are this step's.
        let (begin, times) = unsafe { gpu.launch(launch, record.map(|_| clock)) }?;
        for time in times {
            let at = |micros: f64| begin + (micros * 1e3) as u64;
            let (begin_ns, end_ns) = (at(time.begin_us), at(time.end_us));
            let request = record.unwrap_or(0);
            seat.spans.push(Span { request, step, task: Some(time.task), begin_ns, end_ns });
        }
        Ok(())
    }

    fn carry_by_gpu(
        &self,
        slot: &Slot,
        (index, stamp): (usize, Option<Stamp>),
        (input, output): (usize, usize),
    ) -> Result<()> {
        let bundle = &self.program.bundle;
        if self.program.steps[index].is_fetch {
            let is_told = std::mem::take(&mut slot.progress.lock().are_told[index]);
            if !is_told {
                self.fetch(slot, (index, stamp))?;
            }
            let fetched = self.program.gpu_of(input).map_or(Ok(()), |gpu| gpu.await_fetched(slot.index, Some(index)));
            return fetched.map_err(|problem| self.not_carried((input, output), problem));
        }
        let (source, target) = (slot.value(input), slot.value(output));
        let (from, to) = (source.addr() as Address, target.addr() as Address);
        let bytes = bundle.values[input].tensor.bytes;
        // SAFETY: the value is there and does not change, since the step that wrote it is done; the other one is as long,
        // elsewhere, and this step's.
        let carried = unsafe {
            match (self.program.gpu_of(input), self.program.gpu_of(output)) {
                (None, Some(gpu)) => gpu.send((slot.index, stamp), [(to, source.cast_const(), bytes)].into_iter()),
                // Fetches are above.
                (Some(gpu), _) => {
                    return gpu.copy(
                        &bundle.step_name(&bundle.steps[index]),
                        (slot.index, stamp),
                        true,
                        [(to, from, bytes)].into_iter(),
                    );
                }
                (None, None) => Ok(()),
            }
        };
        carried.map_err(|problem| self.not_carried((input, output), problem))
    }

    /// Has a GPU copy a value to the host.
    fn fetch(&self, slot: &Slot, (index, stamp): (usize, Option<Stamp>)) -> Result<()> {
        let Action::Transfer { input, output } = self.program.bundle.steps[index].action else { return Ok(()) };
        let Some(gpu) = self.program.gpu_of(input) else { return Ok(()) };
        let (from, bytes) = (slot.value(input).addr() as Address, self.program.bundle.values[input].tensor.bytes);
        let parts = [(slot.value(output), from, bytes)].into_iter();
        // SAFETY: the GPU was told of the step that the value depends on; the other one is as long, and this step's.
        let fetched = unsafe { gpu.fetch((slot.index, stamp), Some(index), parts) };
        fetched.map_err(|problem| self.not_carried((input, output), problem))
    }

    /// A step's, if the times of steps are wanted and those of tasks are not.
    pub(super) fn stamp(&self, request: u64, step: usize) -> Option<Stamp> {
        let is_wanted = self.recording.load(Ordering::Relaxed) == Recording::Steps as u8;
        is_wanted.then_some(Stamp { request, step })
    }

    /// Fetches as soon as the GPU was told to compute the value: the step itself only waits for it.
    pub(super) fn fetch_ahead(&self, slot: &Slot, request: u64, index: usize) {
        if slot.progress.lock().current.as_ref().is_none_or(|current| current.failure.is_some()) {
            return;
        }
        let fetched = self.fetch(slot, (index, self.stamp(request, index)));
        let mut progress = slot.progress.lock();
        progress.are_told[index] = true;
        if let (Err(error), Some(current)) = (fetched, &mut progress.current) {
            current.failure.get_or_insert(error);
        }
    }

    fn not_carried(&self, (input, output): (usize, usize), problem: String) -> Error {
        let bundle = &self.program.bundle;
        let device = |value: usize| bundle.devices[bundle.values[value].device].id.clone();
        Error::Transfer { value: bundle.values[input].name.clone(), from: device(input), to: device(output), problem }
    }

    /// Whether GPUs copy from and to memory of the host by themselves.
    pub(super) fn is_pinned(&self, pointer: *const u8) -> bool {
        self.program.gpus.iter().flatten().any(|gpu| gpu.gpu.is_pinned(pointer))
    }

    /// Copies inputs to the GPUs that they are on: from where they are, if they are `lent` and GPUs can.
    pub(super) fn send_inputs(&self, slot: &Slot, inputs: &[TensorRef<'_>], lent: bool) -> Result<()> {
        self.each_gpu(&self.program.bundle.inputs, |gpu, ports| {
            let parts = ports.iter().map(|&port| {
                let input = inputs[port].bytes;
                let mut source = input.as_ptr();
                if !lent || !self.is_pinned(source) {
                    let place = slot.inputs.place(port);
                    // SAFETY: the place is the slot's, and as long as the input, which was checked.
                    unsafe { ptr::copy_nonoverlapping(source, place, input.len()) };
                    source = place;
                }
                let value = self.program.bundle.inputs[port].value;
                (slot.value(value).addr() as Address, source, input.len() as u64)
            });
            // SAFETY: the slot was given to this thread, and none of its steps is ready yet.
            unsafe { gpu.send((slot.index, None), parts) }
        })
    }

    /// Waits until all is done that GPUs were told to do for a slot's request, on all of them, whichever fails.
    pub(super) fn settle(&self, slot: &Slot) -> Result<()> {
        let gpus = self.program.gpus.iter().zip(&self.program.bundle.devices);
        let settled = gpus.filter_map(|(gpu, device)| {
            let problem = gpu.as_ref()?.settle(slot.index).err()?;
            Some(Error::Gpu { what: format!("device '{}'", device.id), problem })
        });
        settled.collect::<Vec<_>>().into_iter().next().map_or(Ok(()), Err)
    }

    /// Copies outputs from the GPUs that they are on to where they go.
    pub(super) fn fetch_outputs(&self, slot: &Slot, outputs: &mut Outputs) -> Result<()> {
        self.each_gpu(&self.program.bundle.outputs, |gpu, ports| {
            let value = |port: usize| self.program.bundle.outputs[port].value;
            let bytes = |port: usize| self.program.bundle.values[value(port)].tensor.bytes;
            let place = |&port: &usize| {
                let goes_to = outputs.pointer(port);
                let copied_to = if self.is_pinned(goes_to) { goes_to } else { slot.outputs.place(port) };
                (port, goes_to, copied_to)
            };
            let places: Vec<(usize, *mut u8, *mut u8)> = ports.iter().map(place).collect();
            let parts = places
                .iter()
                .map(|&(port, _, copied_to)| (copied_to, slot.value(value(port)).addr() as Address, bytes(port)));
            // SAFETY: GPUs were told of all steps, and the places are the slot's, or as long as the outputs, which was checked.
            unsafe { gpu.fetch((slot.index, None), None, parts) }?;
            gpu.await_fetched(slot.index, None)?;
            for &(port, goes_to, copied_to) in places.iter().filter(|(_, goes_to, copied_to)| goes_to != copied_to) {
                // SAFETY: as above.
                unsafe { ptr::copy_nonoverlapping(copied_to, goes_to, bytes(port) as usize) };
            }
            Ok(())
        })
    }

    /// Does something with the ports of each GPU that has some.
    fn each_gpu(&self, ports: &[Port], mut run: impl FnMut(&Device, &[usize]) -> Attempt) -> Result<()> {
        let bundle = &self.program.bundle;
        for (device, gpu) in self.program.gpus.iter().enumerate() {
            let Some(gpu) = gpu else { continue };
            let is_there = |port: &usize| bundle.values[ports[*port].value].device == device;
            let there: Vec<usize> = (0..ports.len()).filter(is_there).collect();
            if !there.is_empty() {
                let what = || format!("inputs and outputs on device '{}'", bundle.devices[device].id);
                run(gpu, &there).map_err(|problem| Error::Gpu { what: what(), problem })?;
            }
        }
        Ok(())
    }
}

impl Drop for Engine {
    fn drop(&mut self) {
        // A request that was cancelled may have left something to copy, and memory goes before GPUs do.
        self.program.gpus.iter().flatten().for_each(Device::finish);
    }
}
