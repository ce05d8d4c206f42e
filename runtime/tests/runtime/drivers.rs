//! A driver from outside the crate: devices whose memory the host cannot access, with executables in a format of their own.

use crate::kit::{Maker, SIZE, call, full, numbers};
use divi_runtime::{
    Drivers, Error, Options, Recording, Runtime,
    bundle::{self, Buffer, Bundle, File, Mode},
    hal::{
        Allocation, Attempt, Copy, Device, DeviceInfo, Driver, Event, Executable, Execution, Launch, LoadRequest,
        MemorySpace, Owner, Properties, Queue, TaskTime,
    },
};
use serde_json::json;
use std::{
    fs, ptr,
    sync::{Arc, Mutex},
};

/// File with the factors of stages, which have no calls: little-endian `f32`s.
const CODE: &str = "factors.bin";
/// Format of such files. The payload of a stage is the index of its factor.
const FORMAT: &str = "toy-factors";
/// Addresses begin here. The host has no memory there.
const BASE: usize = 0x40;

/// Devices that multiply by a factor.
struct Toy {
    execution: Execution,
    memory: Memory,
    /// Whether memory of the host is aligned.
    is_aligned: bool,
}

/// Memory of all toy devices.
type Memory = Arc<Mutex<Vec<u8>>>;

impl Driver for Toy {
    fn kind(&self) -> &str {
        "toy"
    }

    fn formats(&self) -> &[&str] {
        &[FORMAT]
    }

    fn properties(&self) -> Properties {
        Properties { memory: MemorySpace::Device, execution: self.execution }
    }

    fn devices(&self) -> Result<Vec<DeviceInfo>, String> {
        Ok(vec![DeviceInfo { name: "toy".into(), arch: String::new() }])
    }

    fn validate(&self, bundle: &Bundle, device: usize) -> Result<(), String> {
        match bundle.stages_of(device).find(|(_, stage)| !stage.payload.is_u64()) {
            Some((_, stage)) => Err(format!("stage '{}': its payload is not an index", stage.name)),
            None => Ok(()),
        }
    }

    fn open(&self, _: &Bundle, _: usize, _: usize) -> Result<Arc<dyn Device>, Error> {
        Ok(Arc::new(ToyDevice { memory: self.memory.clone(), is_aligned: self.is_aligned }))
    }
}

struct ToyDevice {
    memory: Memory,
    is_aligned: bool,
}

struct ToyBlock(usize);

/// Memory of the host that is aligned as that of devices is, unless the driver is to be refused.
struct HostBlock {
    memory: Box<[u8]>,
    first: usize,
}

impl HostBlock {
    fn new(bytes: u64, is_aligned: bool) -> Self {
        let memory: Box<[u8]> = vec![0; bytes as usize + 128].into();
        let first = memory.as_ptr().align_offset(64) + if is_aligned { 0 } else { 8 };
        Self { memory, first }
    }
}

impl Allocation for ToyBlock {
    fn address(&self) -> *mut u8 {
        ptr::without_provenance_mut(self.0)
    }
}

impl Allocation for HostBlock {
    fn address(&self) -> *mut u8 {
        self.memory[self.first..].as_ptr().cast_mut()
    }
}

impl Device for ToyDevice {
    fn name(&self) -> String {
        "toy".into()
    }

    fn allocate(&self, bytes: u64, _: &str) -> Result<Box<dyn Allocation>, Error> {
        let mut memory = self.memory.lock().unwrap();
        let begin = memory.len().next_multiple_of(64);
        memory.resize(begin + bytes as usize, 0);
        Ok(Box::new(ToyBlock(BASE + begin)))
    }

    fn allocate_host(&self, bytes: u64, _: &str) -> Result<Box<dyn Allocation>, Error> {
        Ok(Box::new(HostBlock::new(bytes, self.is_aligned)))
    }

    fn is_pinned(&self, _: *const u8) -> bool {
        false
    }

    fn load(&self, request: &LoadRequest<'_>) -> Result<Box<dyn Executable>, Error> {
        let mut factors = vec![None; request.bundle.stages.len()];
        for (index, stage) in request.bundle.stages_of(request.device) {
            let path = request.folder.join(&request.bundle.executables[stage.executable].file);
            let bytes = fs::read(&path).unwrap();
            let number = stage.payload.as_u64().unwrap() as usize;
            let Some(&factor) = bytes.as_chunks().0.get(number) else {
                return Err(Error::Code { path, reason: format!("it has no factor {number}") });
            };
            factors[index] = Some(f32::from_le_bytes(factor));
        }
        Ok(Box::new(ToyExecutable { factors, memory: self.memory.clone() }))
    }
}

struct ToyExecutable {
    /// By stage.
    factors: Vec<Option<f32>>,
    memory: Memory,
}

impl ToyExecutable {
    fn at(address: *const u8, bytes: usize) -> std::ops::Range<usize> {
        address.addr() - BASE..address.addr() - BASE + bytes
    }
}

impl Executable for ToyExecutable {
    fn constant(&self, _: usize) -> Option<*mut u8> {
        None
    }

    unsafe fn launch(&self, launch: &Launch<'_>) -> Result<Vec<TaskTime>, Error> {
        let now = || launch.clock.map(|clock| clock());
        let (begin, bytes) = (now(), SIZE as usize * 4);
        let mut memory = self.memory.lock().unwrap();
        let numbers: Vec<f32> = memory[Self::at(launch.inputs.address(0), bytes)]
            .as_chunks()
            .0
            .iter()
            .map(|&bytes| f32::from_le_bytes(bytes) * self.factors[launch.stage].unwrap())
            .collect();
        let result: Vec<u8> = numbers.iter().flat_map(|number| number.to_le_bytes()).collect();
        memory[Self::at(launch.outputs.address(0), bytes)].copy_from_slice(&result);
        let time = begin.zip(now()).map(|(begin_ns, end_ns)| TaskTime { task: 0, begin_ns, end_ns });
        Ok(time.into_iter().collect())
    }

    fn queue(&self) -> &dyn Queue {
        self
    }
}

impl Queue for ToyExecutable {
    unsafe fn copy(&self, _: Owner, copies: &mut dyn Iterator<Item = Copy>, _: bool) -> Attempt {
        let mut memory = self.memory.lock().unwrap();
        for Copy { to, from, bytes } in copies {
            memory.copy_within(Self::at(from, bytes as usize), to.addr() - BASE);
        }
        Ok(())
    }

    unsafe fn upload(&self, _: Owner, copies: &mut dyn Iterator<Item = Copy>) -> Attempt {
        let mut memory = self.memory.lock().unwrap();
        for Copy { to, from, bytes } in copies {
            // SAFETY: the caller's.
            let source = unsafe { std::slice::from_raw_parts(from, bytes as usize) };
            memory[Self::at(to, bytes as usize)].copy_from_slice(source);
        }
        Ok(())
    }

    unsafe fn download(&self, owner: Owner, copies: &mut dyn Iterator<Item = Copy>) -> Result<Event, String> {
        let memory = self.memory.lock().unwrap();
        for Copy { to, from, bytes } in copies {
            // SAFETY: the caller's.
            let target = unsafe { std::slice::from_raw_parts_mut(to, bytes as usize) };
            target.copy_from_slice(&memory[Self::at(from, bytes as usize)]);
        }
        Ok(Event { slot: owner.slot, step: owner.step })
    }

    fn wait(&self, _: Event) -> Attempt {
        Ok(())
    }

    fn synchronize(&self, _: usize) -> Attempt {
        Ok(())
    }

    fn synchronize_all(&self) {}
}

fn options(execution: Execution) -> Options {
    let toy = Toy { execution, memory: Memory::default(), is_aligned: true };
    Options { drivers: Drivers::default().with(Arc::new(toy)), ..crate::kit::options() }
}

/// `y = x * 5 + x * 5`, the product on a toy, and `z`, the product by itself.
fn product_on_toy(factors: &[f32]) -> (Maker, crate::kit::Folder) {
    let mut maker = Maker::new(Mode::Latency, 2);
    maker.bundle.devices[1].kind = "toy".into();
    let (x, product, y) = (maker.input("x", 0), maker.value("product", 1), maker.value("y", 0));
    let there = maker.transfer(x, 1);
    maker.launch("times", vec![], &[there], &[product]);
    maker.bundle.executables.push(bundle::Executable { format: FORMAT.into(), file: CODE.into(), target: json!(null) });
    (maker.bundle.stages[0].executable, maker.bundle.stages[0].payload) = (1, json!(1));
    let back = maker.transfer(product, 0);
    maker.launch("twice", vec![call("add", &[Buffer::Output(0), Buffer::Input(0), Buffer::Input(0)])], &[back], &[y]);
    maker.output("y", y);
    maker.output("z", product);
    let folder = crate::kit::Folder::new();
    fs::write(folder.join(CODE), factors.iter().flat_map(|factor| factor.to_le_bytes()).collect::<Vec<u8>>()).unwrap();
    maker.bundle.files.push(File::of(folder.path(), CODE).unwrap());
    (maker, folder)
}

#[test]
fn devices_of_another_crate_run_stages() {
    let (maker, folder) = product_on_toy(&[3.0, 5.0]);
    let folder = maker.write_into(folder);
    for execution in [Execution::Inline, Execution::Queued] {
        for recording in [Recording::Off, Recording::Tasks] {
            let runtime = Runtime::load(folder.path(), options(execution)).unwrap();
            runtime.record(recording);
            for number in [1.0, 2.0, 3.0] {
                let outputs = runtime.run(&[("x", full(number).view())]).unwrap();
                assert_eq!(numbers(&outputs, "y"), [10.0 * number; SIZE as usize]);
                assert_eq!(numbers(&outputs, "z"), [5.0 * number; SIZE as usize]);
            }
            let tasks = runtime.take_spans().0.iter().filter(|span| span.task.is_some()).count();
            assert_eq!(tasks, if recording == Recording::Tasks { 6 } else { 0 });
            assert_eq!(runtime.processor("toy"), "toy");
        }
    }
}

#[test]
fn drivers_refuse_what_they_cannot_load() {
    let (maker, folder) = product_on_toy(&[3.0]);
    let folder = maker.write_into(folder);
    let refusal = |options| Runtime::load(folder.path(), options).err().unwrap().to_string();
    assert!(refusal(options(Execution::Inline)).ends_with("cannot be loaded: it has no factor 1"));
    let expected = "device 'cpu1' is of the unknown kind 'toy'; expected one of cpu, cuda";
    assert_eq!(refusal(crate::kit::options()), expected);

    let toy = Toy { execution: Execution::Queued, memory: Memory::default(), is_aligned: false };
    let misaligned = Options { drivers: Drivers::default().with(Arc::new(toy)), ..crate::kit::options() };
    let (maker, other) = product_on_toy(&[3.0, 5.0]);
    let error = Runtime::load(maker.write_into(other).path(), misaligned).err().unwrap().to_string();
    assert!(error.starts_with("device 'toy': its driver did not align the memory for "), "{error}");

    // A value that is a constant needs an address, which this driver does not have.
    let (mut maker, other) = product_on_toy(&[3.0, 5.0]);
    let constant = maker.packed(1.0);
    let value = maker.value_of("one", 1, crate::kit::floats(&[1]));
    maker.bundle.values[value].constant = Some(constant);
    maker.output("one", value);
    let error = Runtime::load(maker.write_into(other).path(), options(Execution::Inline)).err().unwrap().to_string();
    let expected = "device 'cpu1': its driver has no address for constant 0, which is a value of the bundle";
    assert_eq!(error, expected);

    // The driver of another crate is not there when the bundle is written.
    let refusal = |change: &dyn Fn(&mut Bundle)| {
        let (mut maker, folder) = product_on_toy(&[3.0, 5.0]);
        change(&mut maker.bundle);
        let folder = maker.write_into(folder);
        Runtime::load(folder.path(), options(Execution::Queued)).err().unwrap().to_string()
    };
    let error = refusal(&|bundle| bundle.stages[0].payload = json!("times"));
    assert!(error.ends_with("stage 'times': its payload is not an index"), "{error}");
    let error = refusal(&|bundle| bundle.stages[0].executable = 0);
    let expected = "stage 'times' on device 'cpu1' has code in format 'elf-x86-64'; driver 'toy' loads toy-factors";
    assert!(error.ends_with(expected), "{error}");

    let (maker, folder) = product_on_toy(&[3.0, 5.0]);
    let folder = maker.write_into(folder);
    fs::write(folder.join(CODE), [0; 8]).unwrap();
    let error = Runtime::load(folder.path(), options(Execution::Queued)).err().unwrap().to_string();
    assert!(error.contains("factors.bin' is not as it was written: its contents do not have the hash"), "{error}");
}
