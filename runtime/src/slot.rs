//! What a request in flight has for itself: memory for its values, and how far it is. There are as many as may be in
//! flight, made once.

use crate::{
    bundle::{Action, Buffer, Port},
    error::{Error, Result},
    hal::{self, Allocation, Event},
    layout::Layout,
    loaded_device::LoadedDevice,
    program::Program,
    request::{Outputs, Request},
};
use divi_threads::sync::Mutex;
use std::{cell::UnsafeCell, ops::Range, sync::Arc};

pub(crate) struct Slot {
    pub(crate) index: usize,
    /// Memory for the values of each device.
    blocks: Vec<Box<dyn Allocation>>,
    /// Staging buffers for inputs and outputs in other memory than the host's.
    pub(crate) inputs: Staging,
    pub(crate) outputs: Staging,
    pointers: UnsafeCell<Pointers>,
    pub(crate) progress: Mutex<Progress>,
}

/// Pinned memory for the values of ports in other memory than the host's.
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

    /// The place of a port.
    pub(crate) fn place(&self, port: usize) -> *mut u8 {
        let begin = self.memory.as_ref().map_or(std::ptr::null_mut(), |memory| memory.address());
        begin.wrapping_add(self.offsets[port] as usize)
    }
}

struct Pointers {
    /// Where each value is.
    values: Vec<*mut u8>,
    /// The buffers of all calls of all launches.
    table: Vec<*mut u8>,
}

pub(crate) struct Progress {
    pub(crate) current: Option<Current>,
    /// How many steps each step still waits for.
    pub(crate) waits: Vec<u32>,
    /// By step: a transfer that was begun before the step is run.
    pub(crate) begun: Vec<Option<Event>>,
    pub(crate) steps_left: usize,
}

/// The request that has the slot.
pub(crate) struct Current {
    pub(crate) request: Arc<Request>,
    pub(crate) outputs: Outputs,
    /// Why it will end without outputs. Steps that are left do nothing then.
    pub(crate) failure: Option<Error>,
}

// SAFETY: pointers change only before a request's first step (`place`); the values that they lead to are written by one
// step, before those that read them, and steps are handed from thread to thread under locks.
unsafe impl Send for Slot {}
// SAFETY: as above.
unsafe impl Sync for Slot {}

impl Slot {
    pub(crate) fn new(
        index: usize,
        program: &Program,
        layout: &Layout,
        arenas: &[Box<dyn Allocation>],
    ) -> Result<Self> {
        let bundle = &program.bundle;
        let block = |(device, &bytes): (usize, &u64)| program.values(device, bytes);
        let blocks: Vec<Box<dyn Allocation>> = layout.bytes.iter().enumerate().map(block).collect::<Result<_>>()?;
        let place = |(index, value): (usize, &crate::bundle::Value)| match value.constant {
            Some(constant) => program.constant_value(value.device, constant),
            None => Ok(blocks[value.device].address().wrapping_add(layout.offsets[index] as usize)),
        };
        let values: Vec<*mut u8> = bundle.values.iter().enumerate().map(place).collect::<Result<_>>()?;
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
        let (waits, begun) = (vec![0; bundle.steps.len()], vec![None; bundle.steps.len()]);
        let progress = Mutex::new(Progress { current: None, waits, begun, steps_left: 0 });
        let (inputs, outputs) = (Staging::new(program, &bundle.inputs)?, Staging::new(program, &bundle.outputs)?);
        Ok(Self { index, blocks, inputs, outputs, pointers: UnsafeCell::new(Pointers { values, table }), progress })
    }

    /// Where a value is.
    pub(crate) fn value(&self, value: usize) -> *mut u8 {
        // SAFETY: pointers do not change while a request has the slot.
        unsafe { (&(*self.pointers.get()).values)[value] }
    }

    /// Addresses of all values.
    pub(crate) fn values(&self) -> &[*mut u8] {
        // SAFETY: as above.
        unsafe { &(*self.pointers.get()).values }
    }

    /// A part of the table: the buffers of a launch's calls.
    pub(crate) fn table(&self, part: Range<usize>) -> &[*mut u8] {
        // SAFETY: as above.
        unsafe { &(&(*self.pointers.get()).table)[part] }
    }

    /// Says where an input or output is: in the slot, or where a caller has it who waits for the request.
    ///
    /// # Safety
    /// The slot is the calling thread's, and no step of its request is ready yet.
    pub(crate) unsafe fn place(&self, program: &Program, layout: &Layout, value: usize, lent: Option<*mut u8>) {
        let device = program.bundle.values[value].device;
        let own = self.blocks[device].address().wrapping_add(layout.offsets[value] as usize);
        let place = lent.unwrap_or(own);
        // SAFETY: the caller's.
        let Pointers { values, table } = unsafe { &mut *self.pointers.get() };
        if std::mem::replace(&mut values[value], place) == place {
            return;
        }
        let mut first = 0;
        for step in &program.bundle.steps {
            let Action::Launch { stage, inputs, .. } = &step.action else { continue };
            for buffer in program.bundle.stages[*stage].calls.iter().flat_map(|call| &call.buffers) {
                if matches!(buffer, Buffer::Input(index) if inputs[*index] == value) {
                    table[first] = place;
                }
                first += 1;
            }
        }
    }
}
