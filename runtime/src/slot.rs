//! Slots: memory and progress of a request in flight. A fixed number of them is allocated at load.

use crate::{
    bundle::{Action, Buffer, Port},
    error::{Error, Result},
    hal::{self, Allocation, Event},
    loaded_device::LoadedDevice,
    program::Program,
    request::{Outputs, Request},
};
use divi_threads::sync::Mutex;
use std::{cell::UnsafeCell, collections::BTreeSet, ops::Range, sync::Arc};

/// Memory and progress of a request in flight.
pub(crate) struct Slot {
    pub(crate) index: usize,
    /// By device: memory for values.
    blocks: Vec<Box<dyn Allocation>>,
    /// Staging buffers for inputs and outputs in device memory.
    pub(crate) inputs: Staging,
    pub(crate) outputs: Staging,
    pointers: UnsafeCell<Pointers>,
    pub(crate) progress: Mutex<Progress>,
}

/// Pinned staging memory for the ports whose values are in device memory.
pub(crate) struct Staging {
    memory: Option<Box<dyn Allocation>>,
    /// By port.
    offsets: Vec<u64>,
}

impl Staging {
    fn new(program: &Program, ports: &[Port]) -> Result<Self> {
        let mut total = 0;
        let mut device = None;
        let mut offsets = Vec::with_capacity(ports.len());
        for port in ports {
            offsets.push(total);
            if !program.is_on_host(port.value) {
                device = Some(program.device_of(port.value));
                total += program.bundle.values[port.value].tensor.bytes.next_multiple_of(crate::bundle::ALIGNMENT);
            }
        }
        let allocate = |device: &LoadedDevice| hal::allocate_host(&*device.device, total, "inputs and outputs");
        let memory = device.map(allocate).transpose()?;
        Ok(Self { memory, offsets })
    }

    /// Returns the staging buffer of a port.
    pub(crate) fn buffer(&self, port: usize) -> *mut u8 {
        let begin = self.memory.as_ref().map_or(std::ptr::null_mut(), |memory| memory.address());
        begin.wrapping_add(self.offsets[port] as usize)
    }
}

struct Pointers {
    /// Address of each value.
    values: Vec<*mut u8>,
    /// Addresses of the buffers of all calls of all launches.
    table: Vec<*mut u8>,
}

/// Progress of the request in a slot.
pub(crate) struct Progress {
    /// Number of the request.
    pub(crate) id: u64,
    pub(crate) current: Option<ActiveRequest>,
    /// By step: number of dependences that are not yet satisfied.
    pub(crate) pending_dependences: Vec<u32>,
    /// By step: event of a transfer that was started before its step runs.
    pub(crate) started_transfers: Vec<Option<Event>>,
    pub(crate) steps_left: usize,
    /// Ranks that have not reported the completion of their parts of the request.
    pub(crate) waiting_for: BTreeSet<usize>,
    /// True if [`Progress::ends`] has returned true.
    pub(crate) has_ended: bool,
}

impl Progress {
    /// Returns true once, after all parts of the request are complete.
    pub(crate) fn ends(&mut self) -> bool {
        let is_complete = self.steps_left == 0 && self.waiting_for.is_empty() && self.current.is_some();
        is_complete && !std::mem::replace(&mut self.has_ended, true)
    }
}

/// Request that occupies a slot.
pub(crate) struct ActiveRequest {
    pub(crate) request: Arc<Request>,
    pub(crate) outputs: Outputs,
    /// Failure that is reported. The remaining steps are skipped if it is set.
    pub(crate) failure: Option<Failure>,
}

/// Failure of a step.
pub(crate) struct Failure {
    /// Index of the step in the whole bundle.
    pub(crate) step: usize,
    pub(crate) error: Error,
    /// True if it is a consequence of a failure on another rank.
    pub(crate) is_consequence: bool,
}

impl Failure {
    /// Describes the failure of a step. `step` is its index in the whole bundle.
    pub(crate) fn of(step: usize, error: Error) -> Self {
        Self { step, is_consequence: matches!(error, Error::Withheld { .. }), error }
    }
}

impl ActiveRequest {
    /// Notes a failure. That of the first step in the order of the plan is kept, so that it does not depend on timing.
    pub(crate) fn fail(&mut self, failure: Failure) {
        let key = |failure: &Failure| (failure.is_consequence, failure.step);
        if self.failure.as_ref().is_none_or(|known| key(&failure) < key(known)) {
            self.failure = Some(failure);
        }
    }
}

// SAFETY: pointers change only before a request's first step (`bind`). Each value is written by one step before its readers
// run, and steps pass from thread to thread under locks.
unsafe impl Send for Slot {}
// SAFETY: as above.
unsafe impl Sync for Slot {}

impl Slot {
    pub(crate) fn new(index: usize, program: &Program, arenas: &[Box<dyn Allocation>]) -> Result<Self> {
        let Program { bundle, memory, .. } = program;
        let block = |(device, &bytes): (usize, &u64)| program.values(device, bytes);
        let blocks: Vec<Box<dyn Allocation>> = memory.bytes.iter().enumerate().map(block).collect::<Result<_>>()?;
        let address = |(index, value): (usize, &crate::bundle::Value)| match value.constant {
            Some(constant) => program.constant_value(value.device, constant),
            None => Ok(blocks[value.device].address().wrapping_add(memory.offsets[index] as usize)),
        };
        let values: Vec<*mut u8> = bundle.values.iter().enumerate().map(address).collect::<Result<_>>()?;
        let mut table = Vec::with_capacity(program.table_length());
        for step in &bundle.steps {
            let Action::Launch { stage, inputs, outputs } = &step.action else { continue };
            let stage = &bundle.stages[*stage];
            let buffers = stage.calls.iter().flat_map(|call| &call.buffers);
            table.extend(buffers.map(|buffer| match buffer {
                Buffer::Input(index) => values[inputs[*index]],
                Buffer::Output(index) => values[outputs[*index]],
                Buffer::Arena(offset) => arenas[stage.device].address().wrapping_add(*offset as usize),
                Buffer::Constant(index) => program.constant_on(stage.device, *index),
            }));
        }
        let (pending_dependences, started_transfers) = (vec![0; bundle.steps.len()], vec![None; bundle.steps.len()]);
        let progress = Mutex::new(Progress {
            id: 0,
            current: None,
            pending_dependences,
            started_transfers,
            steps_left: 0,
            waiting_for: BTreeSet::new(),
            has_ended: false,
        });
        let (inputs, outputs) = (Staging::new(program, &bundle.inputs)?, Staging::new(program, &bundle.outputs)?);
        Ok(Self { index, blocks, inputs, outputs, pointers: UnsafeCell::new(Pointers { values, table }), progress })
    }

    /// Returns the address of a value.
    pub(crate) fn value(&self, value: usize) -> *mut u8 {
        // SAFETY: pointers do not change while the steps of a request run.
        unsafe { (&(*self.pointers.get()).values)[value] }
    }

    /// Returns the addresses of all values.
    pub(crate) fn values(&self) -> &[*mut u8] {
        // SAFETY: as above.
        unsafe { &(*self.pointers.get()).values }
    }

    /// Returns a range of the buffer table: the buffers of a launch's calls.
    pub(crate) fn table(&self, part: Range<usize>) -> &[*mut u8] {
        // SAFETY: as above.
        unsafe { &(&(*self.pointers.get()).table)[part] }
    }

    /// Sets the address of an input or output: the caller's memory if `lent`, otherwise the slot's own.
    ///
    /// # Safety
    /// The calling thread owns the slot, and no step of its request is ready yet.
    pub(crate) unsafe fn bind(&self, program: &Program, value: usize, lent: Option<*mut u8>) {
        let device = program.bundle.values[value].device;
        let own = self.blocks[device].address().wrapping_add(program.memory.offsets[value] as usize);
        let address = lent.unwrap_or(own);
        // SAFETY: guaranteed by the caller.
        let Pointers { values, table } = unsafe { &mut *self.pointers.get() };
        if std::mem::replace(&mut values[value], address) == address {
            return;
        }
        let mut entry = 0;
        for step in &program.bundle.steps {
            let Action::Launch { stage, inputs, .. } = &step.action else { continue };
            for buffer in program.bundle.stages[*stage].calls.iter().flat_map(|call| &call.buffers) {
                if matches!(buffer, Buffer::Input(index) if inputs[*index] == value) {
                    table[entry] = address;
                }
                entry += 1;
            }
        }
    }
}
