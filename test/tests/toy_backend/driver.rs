//! Runtime driver of toys, an interpreter. The host cannot access the memory of toys.

use crate::backend::{FORMAT, Instruction, Program};
use divi_runtime::{
    AlignedBuffer, Error,
    bundle::Bundle,
    hal::{
        Allocation, Copy, Device, DeviceInfo, Driver, Event, Executable, Execution, Launch, LoadRequest, MemorySpace,
        Owner, Properties, Queue, QueueResult, TaskTime,
    },
};
use std::{
    fs,
    ops::Range,
    ptr,
    sync::{Arc, Mutex},
};

/// First address of toy memory; no host memory is mapped there.
const BASE: usize = 0x40;

/// Memory of all toys.
type Memory = Arc<Mutex<Vec<u8>>>;

#[derive(Default)]
pub(crate) struct ToyDriver {
    memory: Memory,
}

impl Driver for ToyDriver {
    fn kind(&self) -> &str {
        "toy"
    }

    fn formats(&self) -> &[&str] {
        &[FORMAT]
    }

    fn properties(&self) -> Properties {
        Properties { memory: MemorySpace::Device, execution: Execution::Queued }
    }

    fn devices(&self) -> Result<Vec<DeviceInfo>, String> {
        Ok(vec![DeviceInfo { name: "toy".into(), arch: "toy1".into() }])
    }

    fn validate(&self, bundle: &Bundle, device: usize) -> Result<(), String> {
        match bundle.stages_of(device).find(|(_, stage)| !stage.payload.is_u64()) {
            Some((_, stage)) => Err(format!("stage '{}': its payload is not an index", stage.name)),
            None => Ok(()),
        }
    }

    fn open(&self, _: &Bundle, _: usize, _: usize) -> Result<Arc<dyn Device>, Error> {
        Ok(Arc::new(ToyDevice(self.memory.clone())))
    }
}

struct ToyDevice(Memory);

struct ToyBlock(usize);

impl Allocation for ToyBlock {
    fn address(&self) -> *mut u8 {
        ptr::without_provenance_mut(self.0)
    }
}

impl Device for ToyDevice {
    fn name(&self) -> String {
        "toy".into()
    }

    fn allocate(&self, bytes: u64, _: &str) -> Result<Box<dyn Allocation>, Error> {
        let mut memory = self.0.lock().unwrap();
        let begin = memory.len().next_multiple_of(64);
        memory.resize(begin + bytes as usize, 0);
        Ok(Box::new(ToyBlock(BASE + begin)))
    }

    fn allocate_host(&self, bytes: u64, what: &str) -> Result<Box<dyn Allocation>, Error> {
        Ok(Box::new(AlignedBuffer::zeroed(bytes, what)?))
    }

    fn is_pinned(&self, _: *const u8) -> bool {
        false
    }

    fn load(&self, request: &LoadRequest<'_>) -> Result<Box<dyn Executable>, Error> {
        let mut stages = vec![None; request.bundle.stages.len()];
        for (index, stage) in request.bundle.stages_of(request.device) {
            let path = request.folder.join(&request.bundle.executables[stage.executable].file);
            let wrong = |reason: String| Error::Code { path: path.clone(), reason };
            let bytes = fs::read(&path).map_err(|error| wrong(error.to_string()))?;
            let programs: Vec<Program> = serde_json::from_slice(&bytes).map_err(|error| wrong(error.to_string()))?;
            let number = stage.payload.as_u64().unwrap_or_default() as usize;
            let program = programs.into_iter().nth(number).ok_or_else(|| wrong(format!("no program {number}")))?;
            let constants = program.constants.iter().map(|&(_, constant)| floats(request.constant(constant))).collect();
            stages[index] = Some(Stage { program, constants });
        }
        Ok(Box::new(ToyExecutable { stages, memory: self.0.clone() }))
    }
}

#[derive(Clone)]
struct Stage {
    program: Program,
    /// Elements of the constants, in the order of the program.
    constants: Vec<Vec<f32>>,
}

struct ToyExecutable {
    stages: Vec<Option<Stage>>,
    memory: Memory,
}

fn floats(bytes: &[u8]) -> Vec<f32> {
    bytes.as_chunks().0.iter().map(|&bytes| f32::from_le_bytes(bytes)).collect()
}

fn at(address: *const u8, bytes: usize) -> Range<usize> {
    address.addr() - BASE..address.addr() - BASE + bytes
}

impl Instruction {
    fn run(&self, values: &[Vec<f32>], count: usize) -> Vec<f32> {
        let element = |operand: usize, i: usize| values[self.from[operand]][i % values[self.from[operand]].len()];
        let compute = |i: usize| match self.op.as_str() {
            "Add" => element(0, i) + element(1, i),
            "Mul" => element(0, i) * element(1, i),
            _ => element(0, i).max(0.0),
        };
        (0..count).map(compute).collect()
    }
}

impl Executable for ToyExecutable {
    fn constant(&self, _: usize) -> Option<*mut u8> {
        None
    }

    unsafe fn launch(&self, launch: &Launch<'_>) -> Result<Vec<TaskTime>, Error> {
        let Stage { program, constants } = self.stages[launch.stage].as_ref().expect("stages of toys were loaded");
        let mut memory = self.memory.lock().unwrap();
        let mut values = vec![vec![]; program.counts.len()];
        for (&(value, _), numbers) in program.constants.iter().zip(constants) {
            values[value] = numbers.clone();
        }
        for (i, &value) in program.inputs.iter().enumerate() {
            values[value] = floats(&memory[at(launch.inputs.address(i), program.counts[value] * 4)]);
        }
        for instruction in &program.instructions {
            values[instruction.to] = instruction.run(&values, program.counts[instruction.to]);
        }
        for (i, &value) in program.outputs.iter().enumerate() {
            let bytes: Vec<u8> = values[value].iter().flat_map(|number| number.to_le_bytes()).collect();
            memory[at(launch.outputs.address(i), bytes.len())].copy_from_slice(&bytes);
        }
        Ok(vec![])
    }

    fn queue(&self) -> &dyn Queue {
        self
    }
}

impl Queue for ToyExecutable {
    unsafe fn copy(&self, _: Owner, copies: &mut dyn Iterator<Item = Copy>, _: bool) -> QueueResult {
        let mut memory = self.memory.lock().unwrap();
        for Copy { to, from, bytes } in copies {
            memory.copy_within(at(from, bytes as usize), to.addr() - BASE);
        }
        Ok(())
    }

    unsafe fn upload(&self, _: Owner, copies: &mut dyn Iterator<Item = Copy>) -> QueueResult {
        let mut memory = self.memory.lock().unwrap();
        for Copy { to, from, bytes } in copies {
            // SAFETY: guaranteed by the caller.
            let source = unsafe { std::slice::from_raw_parts(from, bytes as usize) };
            memory[at(to, bytes as usize)].copy_from_slice(source);
        }
        Ok(())
    }

    unsafe fn download(&self, owner: Owner, copies: &mut dyn Iterator<Item = Copy>) -> Result<Event, String> {
        let memory = self.memory.lock().unwrap();
        for Copy { to, from, bytes } in copies {
            // SAFETY: guaranteed by the caller.
            let target = unsafe { std::slice::from_raw_parts_mut(to, bytes as usize) };
            target.copy_from_slice(&memory[at(from, bytes as usize)]);
        }
        Ok(Event { slot: owner.slot, step: owner.step })
    }

    fn wait(&self, _: Event) -> QueueResult {
        Ok(())
    }

    fn synchronize(&self, _: usize) -> QueueResult {
        Ok(())
    }

    fn synchronize_all(&self) {}
}
