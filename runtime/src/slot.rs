//! What a request in flight has for itself: memory for its values, and how far it is. There are as many as may be in
//! flight, made once.

use crate::{
    block::Block,
    bundle::{Action, Buffer, Port},
    cuda::Pinned,
    error::{Error, Result},
    layout::Layout,
    program::Program,
    request::{Outputs, Request},
    sync::Mutex,
};
use std::{cell::UnsafeCell, sync::Arc};

pub(crate) struct Slot {
    pub(crate) index: usize,
    /// A block for each device.
    blocks: Vec<Block>,
    /// Where inputs and outputs that are on GPUs come by.
    pub(crate) inputs: Staging,
    pub(crate) outputs: Staging,
    pointers: UnsafeCell<Pointers>,
    pub(crate) progress: Mutex<Progress>,
}

/// Memory of the host for the values of ports that are on GPUs, which copy from and to it by themselves.
pub(crate) struct Staging {
    memory: Option<Pinned>,
    /// By port.
    offsets: Vec<u64>,
}

impl Staging {
    fn new(program: &Program, ports: &[Port]) -> Result<Self> {
        let mut total = 0;
        let mut gpu = None;
        let mut offsets = Vec::with_capacity(ports.len());
        for port in ports {
            offsets.push(total);
            if let Some(its) = program.gpu_of(port.value) {
                gpu = Some(its);
                total += program.bundle.values[port.value].tensor.bytes.next_multiple_of(crate::bundle::ALIGNMENT);
            }
        }
        let memory = gpu.map(|gpu| Pinned::new(&gpu.gpu, total, "inputs and outputs of GPUs")).transpose()?;
        Ok(Self { memory, offsets })
    }

    /// The place of a port whose value is on a GPU.
    pub(crate) fn place(&self, port: usize) -> *mut u8 {
        let begin = self.memory.as_ref().map_or(std::ptr::null_mut(), Pinned::pointer);
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
    /// Which steps a GPU was told of before they were run.
    pub(crate) are_told: Vec<bool>,
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
    pub(crate) fn new(index: usize, program: &Program, layout: &Layout, arenas: &[Block]) -> Result<Self> {
        let bundle = &program.bundle;
        let block = |(device, &bytes): (usize, &u64)| program.values(device, bytes);
        let blocks: Vec<Block> = layout.bytes.iter().enumerate().map(block).collect::<Result<_>>()?;
        let place = |(index, value): (usize, &crate::bundle::Value)| match value.constant {
            Some(constant) => program.constant_on(value.device, constant),
            None => blocks[value.device].pointer().wrapping_add(layout.offsets[index] as usize),
        };
        let values: Vec<*mut u8> = bundle.values.iter().enumerate().map(place).collect();
        let mut table = Vec::with_capacity(program.table_length());
        for step in &bundle.steps {
            let Action::Launch { stage, inputs, outputs } = &step.action else { continue };
            let stage = &bundle.stages[*stage];
            let buffers = stage.calls.iter().flat_map(|call| &call.buffers);
            table.extend(buffers.map(|buffer| match buffer {
                Buffer::Input(index) => values[inputs[*index]],
                Buffer::Output(index) => values[outputs[*index]],
                Buffer::Arena(offset) => arenas[stage.device].pointer().wrapping_add(*offset as usize),
                Buffer::Constant(index) => program.constant_on(stage.device, *index),
            }));
        }
        let (waits, are_told) = (vec![0; bundle.steps.len()], vec![false; bundle.steps.len()]);
        let progress = Mutex::new(Progress { current: None, waits, are_told, steps_left: 0 });
        let (inputs, outputs) = (Staging::new(program, &bundle.inputs)?, Staging::new(program, &bundle.outputs)?);
        Ok(Self { index, blocks, inputs, outputs, pointers: UnsafeCell::new(Pointers { values, table }), progress })
    }

    /// Where a value is.
    pub(crate) fn value(&self, value: usize) -> *mut u8 {
        // SAFETY: pointers do not change while a request has the slot.
        unsafe { (&(*self.pointers.get()).values)[value] }
    }

    /// The buffers of a launch's calls, which begin here in the table, and those behind them.
    pub(crate) fn table(&self, first: usize) -> &[*mut u8] {
        // SAFETY: as above.
        unsafe { &(&(*self.pointers.get()).table)[first..] }
    }

    /// Says where an input or output is: in the slot, or where a caller has it who waits for the request.
    ///
    /// # Safety
    /// The slot is the calling thread's, and no step of its request is ready yet.
    pub(crate) unsafe fn place(&self, program: &Program, layout: &Layout, value: usize, lent: Option<*mut u8>) {
        let device = program.bundle.values[value].device;
        let own = self.blocks[device].pointer().wrapping_add(layout.offsets[value] as usize);
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
