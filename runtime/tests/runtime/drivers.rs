//! Driver defined outside of the crate: devices with memory that the host cannot access, and a custom format of executables.

use crate::{
    hosts::launch,
    kit::{BundleBuilder, SIZE, call, full, numbers},
    loopback::Loopback,
};
use divi_runtime::{
    Drivers, Error, Options, Recording, Runtime,
    bundle::{self, Buffer, Bundle, File, Mode},
    hal::{
        Allocation, Copy, Device, DeviceInfo, Driver, Event, Executable, Execution, Launch, LoadRequest, MemorySpace,
        Owner, Properties, Queue, QueueResult, TaskTime,
    },
};
use serde_json::json;
use std::{
    fs, ptr,
    sync::{Arc, Mutex},
};

/// Executable: the factors of stages, which have no calls, as little-endian `f32`s.
const CODE: &str = "factors.bin";
/// Format of the executable. The payload of a stage is the index of its factor.
const FORMAT: &str = "toy-factors";
/// First address of the device memory, which is invalid on the host.
const BASE: usize = 0x40;

/// Driver of devices that multiply by a factor.
struct Toy {
    execution: Execution,
    memory: Memory,
    /// False to violate the required alignment of host memory.
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

/// Host memory, misaligned if the driver is to be rejected.
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
    unsafe fn copy(&self, _: Owner, copies: &mut dyn Iterator<Item = Copy>, _: bool) -> QueueResult {
        let mut memory = self.memory.lock().unwrap();
        for Copy { to, from, bytes } in copies {
            memory.copy_within(Self::at(from, bytes as usize), to.addr() - BASE);
        }
        Ok(())
    }

    unsafe fn upload(&self, _: Owner, copies: &mut dyn Iterator<Item = Copy>) -> QueueResult {
        let mut memory = self.memory.lock().unwrap();
        for Copy { to, from, bytes } in copies {
            // SAFETY: guaranteed by the caller.
            let source = unsafe { std::slice::from_raw_parts(from, bytes as usize) };
            memory[Self::at(to, bytes as usize)].copy_from_slice(source);
        }
        Ok(())
    }

    unsafe fn download(&self, owner: Owner, copies: &mut dyn Iterator<Item = Copy>) -> Result<Event, String> {
        let memory = self.memory.lock().unwrap();
        for Copy { to, from, bytes } in copies {
            // SAFETY: guaranteed by the caller.
            let target = unsafe { std::slice::from_raw_parts_mut(to, bytes as usize) };
            target.copy_from_slice(&memory[Self::at(from, bytes as usize)]);
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

fn options(execution: Execution) -> Options {
    let toy = Toy { execution, memory: Memory::default(), is_aligned: true };
    Options { drivers: Drivers::default().with(Arc::new(toy)), ..crate::kit::options() }
}

/// Builds `y = x * 5 + x * 5` with the product on a toy device, and `z`, the product itself.
fn product_on_toy(factors: &[f32]) -> (BundleBuilder, crate::kit::Folder) {
    let mut builder = BundleBuilder::new(Mode::Latency, 2);
    builder.bundle.devices[1].kind = "toy".into();
    let (x, product, y) = (builder.input("x", 0), builder.value("product", 1), builder.value("y", 0));
    let moved = builder.transfer(x, 1);
    builder.launch("times", vec![], &[moved], &[product]);
    builder.bundle.executables.push(bundle::Executable {
        format: FORMAT.into(),
        file: CODE.into(),
        target: json!(null),
    });
    (builder.bundle.stages[0].executable, builder.bundle.stages[0].payload) = (1, json!(1));
    let back = builder.transfer(product, 0);
    builder.launch("twice", vec![call("add", &[Buffer::Output(0), Buffer::Input(0), Buffer::Input(0)])], &[back], &[y]);
    builder.output("y", y);
    builder.output("z", product);
    let folder = crate::kit::Folder::new();
    fs::write(folder.join(CODE), factors.iter().flat_map(|factor| factor.to_le_bytes()).collect::<Vec<u8>>()).unwrap();
    builder.bundle.files.push(File::of(folder.path(), CODE).unwrap());
    (builder, folder)
}

#[test]
fn drivers_of_other_crates_run_stages() {
    let (builder, folder) = product_on_toy(&[3.0, 5.0]);
    let folder = builder.write_into(folder);
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
fn values_in_device_memory_pass_between_hosts() {
    // The host of the toy device has no device in host memory: one is added, through which values pass.
    let (mut builder, folder) = product_on_toy(&[3.0, 5.0]);
    builder.bundle.outputs.retain(|output| output.name == "y");
    for (node, device) in builder.bundle.devices.iter_mut().enumerate() {
        device.node = Some(node);
    }
    let folder = builder.write_into(folder);
    for execution in [Execution::Inline, Execution::Queued] {
        let ranks = Loopback::job(2, true);
        let results = launch(
            &folder,
            &ranks,
            |_| options(execution),
            |runtime| {
                for number in [1.0, 2.0, 3.0] {
                    let outputs = runtime.run(&[("x", full(number).view())]).map_err(|error| error.to_string())?;
                    assert_eq!(numbers(&outputs, "y"), [10.0 * number; SIZE as usize]);
                }
                Ok(())
            },
        );
        assert_eq!(results, [Ok(()), Ok(())]);
    }
}

#[test]
fn drivers_reject_invalid_bundles() {
    let (builder, folder) = product_on_toy(&[3.0]);
    let folder = builder.write_into(folder);
    let load_error = |options| Runtime::load(folder.path(), options).err().unwrap().to_string();
    assert!(load_error(options(Execution::Inline)).ends_with("cannot be loaded: it has no factor 1"));
    let expected = "device 'cpu1' is of the unknown kind 'toy'; expected one of cpu, cuda";
    assert_eq!(load_error(crate::kit::options()), expected);

    let toy = Toy { execution: Execution::Queued, memory: Memory::default(), is_aligned: false };
    let misaligned = Options { drivers: Drivers::default().with(Arc::new(toy)), ..crate::kit::options() };
    let (builder, other) = product_on_toy(&[3.0, 5.0]);
    let error = Runtime::load(builder.write_into(other).path(), misaligned).err().unwrap().to_string();
    assert!(error.starts_with("device 'toy': its driver did not align the memory for "), "{error}");

    // A value that is a constant needs an address, which this driver does not provide.
    let (mut builder, other) = product_on_toy(&[3.0, 5.0]);
    let constant = builder.packed(1.0);
    let value = builder.value_of("one", 1, crate::kit::floats(&[1]));
    builder.bundle.values[value].constant = Some(constant);
    builder.output("one", value);
    let error = Runtime::load(builder.write_into(other).path(), options(Execution::Inline)).err().unwrap().to_string();
    let expected = "device 'cpu1': its driver has no address for constant 0, which is a value of the bundle";
    assert_eq!(error, expected);

    // Drivers of other crates do not validate a bundle when it is written.
    let load_error = |change: &dyn Fn(&mut Bundle)| {
        let (mut builder, folder) = product_on_toy(&[3.0, 5.0]);
        change(&mut builder.bundle);
        let folder = builder.write_into(folder);
        Runtime::load(folder.path(), options(Execution::Queued)).err().unwrap().to_string()
    };
    let error = load_error(&|bundle| bundle.stages[0].payload = json!("times"));
    assert!(error.ends_with("stage 'times': its payload is not an index"), "{error}");
    let error = load_error(&|bundle| bundle.stages[0].executable = 0);
    let expected = "stage 'times' on device 'cpu1' has code in format 'elf-x86-64'; driver 'toy' loads toy-factors";
    assert!(error.ends_with(expected), "{error}");

    let (builder, folder) = product_on_toy(&[3.0, 5.0]);
    let folder = builder.write_into(folder);
    fs::write(folder.join(CODE), [0; 8]).unwrap();
    let error = Runtime::load(folder.path(), options(Execution::Queued)).err().unwrap().to_string();
    assert!(error.contains("factors.bin' was modified or damaged: its SHA-256 does not match the bundle"), "{error}");
}
