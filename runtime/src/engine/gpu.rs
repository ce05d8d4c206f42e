//! Steps on GPUs, and what comes to them from the host and goes back.

use super::{Engine, gathered, sliced};
use crate::{
    bundle::{Action, Port, unit},
    cuda::{Address, Attempt, Device, Launch},
    error::{Error, Result},
    request::Outputs,
    slot::Slot,
    span::Span,
    station::Seat,
    tensor::TensorRef,
};
use std::ptr;

impl Engine {
    /// Runs a step that a GPU has a part in.
    pub(super) fn perform_on_gpu(&self, seat: &mut Seat, slot: &Slot, index: usize, record: Option<u64>) -> Result<()> {
        let bundle = &self.program.bundle;
        let step = &bundle.steps[index];
        let at = |value: usize| slot.value(value).addr() as Address;
        match &step.action {
            Action::Launch { stage, .. } => self.launch_on_gpu(seat, slot, (index, *stage), record),
            Action::Transfer { input, output } => self.carry_by_gpu(slot, index, (*input, *output)),
            Action::Slice { input, output, positions, of, outer, .. } => {
                let Some(gpu) = self.program.gpu_of(*output) else { return Ok(()) };
                let part = unit(bundle.values[*input].tensor.bytes, *of, *outer).unwrap_or(0);
                let parts = sliced(positions, *of, *outer, part);
                let parts = parts.map(|(from, to)| (at(*output) + to, at(*input) + from, part));
                // SAFETY: a sound bundle's parts are inside both values, and the steps that they depend on are done.
                unsafe { gpu.copy(&bundle.step_name(step), slot.index, parts) }
            }
            Action::Gather { inputs, output, of, outer, .. } => {
                let Some(gpu) = self.program.gpu_of(*output) else { return Ok(()) };
                let part = unit(bundle.values[*output].tensor.bytes, of.iter().sum(), *outer).unwrap_or(0);
                let parts = gathered(of, *outer, part);
                let parts = parts.map(|(which, from, to, bytes)| (at(*output) + to, at(inputs[which]) + from, bytes));
                // SAFETY: as above.
                unsafe { gpu.copy(&bundle.step_name(step), slot.index, parts) }
            }
        }
    }

    fn launch_on_gpu(
        &self,
        seat: &mut Seat,
        slot: &Slot,
        (step, stage): (usize, usize),
        record: Option<u64>,
    ) -> Result<()> {
        let description = &self.program.bundle.stages[stage];
        let Some(gpu) = &self.program.gpus[description.device] else { return Ok(()) };
        if let Some(hook) = &self.before_launch {
            hook(&description.name);
        }
        let length = description.calls.iter().map(|call| call.buffers.len()).sum();
        let table = &slot.table(self.program.steps[step].table)[..length];
        let table: Vec<Address> = table.iter().map(|pointer| pointer.addr() as Address).collect();
        let launch = Launch { stage, step, slot: slot.index, table: &table };
        let now = || self.now();
        let clock: &dyn Fn() -> u64 = &now;
        // SAFETY: the steps that it depends on are done; the arena is this seat's, and outputs are this step's.
        let (begin, times) = unsafe { gpu.launch(launch, record.map(|_| clock)) }?;
        for time in times {
            let at = |micros: f64| begin + (micros * 1e3) as u64;
            let (begin_ns, end_ns) = (at(time.begin_us), at(time.end_us));
            let request = record.unwrap_or(0);
            seat.spans.push(Span { request, step, task: Some(time.task), begin_ns, end_ns });
        }
        Ok(())
    }

    fn carry_by_gpu(&self, slot: &Slot, index: usize, (input, output): (usize, usize)) -> Result<()> {
        let bundle = &self.program.bundle;
        let (source, target) = (slot.value(input), slot.value(output));
        let (from, to) = (source.addr() as Address, target.addr() as Address);
        let bytes = bundle.values[input].tensor.bytes;
        // SAFETY: the value is there and does not change, since the step that wrote it is done; the other one is as long,
        // elsewhere, and this step's.
        let carried = unsafe {
            match (self.program.gpu_of(input), self.program.gpu_of(output)) {
                (None, Some(gpu)) => gpu.send([(to, source.cast_const(), bytes)].into_iter()),
                (Some(gpu), None) => gpu.fetch(slot.index, [(target, from, bytes)].into_iter()),
                (Some(gpu), Some(_)) => {
                    return gpu.copy(
                        &bundle.step_name(&bundle.steps[index]),
                        slot.index,
                        [(to, from, bytes)].into_iter(),
                    );
                }
                (None, None) => Ok(()),
            }
        };
        let device = |value: usize| bundle.devices[bundle.values[value].device].id.clone();
        let (name, from, to) = (&bundle.values[input].name, device(input), device(output));
        carried.map_err(|problem| Error::Transfer { value: name.clone(), from, to, problem })
    }

    /// Copies inputs to the GPUs that they are on.
    pub(super) fn send_inputs(&self, slot: &Slot, inputs: &[TensorRef<'_>]) -> Result<()> {
        self.each_gpu(&self.program.bundle.inputs, |gpu, ports| {
            for &port in ports {
                let source = inputs[port].bytes;
                // SAFETY: the place is the slot's, and as long as the input, which was checked.
                unsafe { ptr::copy_nonoverlapping(source.as_ptr(), slot.inputs.place(port), source.len()) };
            }
            let parts = ports.iter().map(|&port| {
                let value = self.program.bundle.inputs[port].value;
                let bytes = self.program.bundle.values[value].tensor.bytes;
                (slot.value(value).addr() as Address, slot.inputs.place(port).cast_const(), bytes)
            });
            // SAFETY: the slot was given to this thread, and none of its steps is ready yet.
            unsafe { gpu.send_inputs(slot.index, parts) }
        })
    }

    /// Copies outputs from the GPUs that they are on to where they go.
    pub(super) fn fetch_outputs(&self, slot: &Slot, outputs: &mut Outputs) -> Result<()> {
        self.each_gpu(&self.program.bundle.outputs, |gpu, ports| {
            let value = |port: usize| self.program.bundle.outputs[port].value;
            let bytes = |port: usize| self.program.bundle.values[value(port)].tensor.bytes;
            let parts = ports
                .iter()
                .map(|&port| (slot.outputs.place(port), slot.value(value(port)).addr() as Address, bytes(port)));
            // SAFETY: all steps are done, and the places are the slot's.
            unsafe { gpu.fetch(slot.index, parts) }?;
            for &port in ports {
                let place = outputs.pointer(port);
                // SAFETY: the place is as long as the output, which was checked.
                unsafe { ptr::copy_nonoverlapping(slot.outputs.place(port), place, bytes(port) as usize) };
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
