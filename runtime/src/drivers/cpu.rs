//! CPU driver: kernels in shared objects, run by a thread pool per device.
//!
//! A kernel is an `extern "C" fn(buffers: *const *mut u8, begin: i64, end: i64) -> i32`. It runs the iterations `begin..end`
//! of its outermost loop and returns a [`Status`].

mod code;
mod copy;

use crate::{
    bundle::{self, Buffer, Bundle, Call, Status},
    cpu,
    error::{Error, Result},
    hal::{
        Allocation, Device, DeviceInfo, Driver, Executable, Execution, Launch, LoadRequest, MemorySpace,
        PrepareRequest, Properties, Queue, TaskTime,
    },
    memory::AlignedBuffer,
};
use code::{Code, PlannedCall};
use divi_threads::{KernelLaunch, ThreadPool, core_count, sync::Mutex};
use serde::{Deserialize, Serialize};
use std::{
    collections::{BTreeMap, HashMap, btree_map::Entry},
    ptr,
    sync::Arc,
    time::Duration,
};

/// Format of executables: shared objects for Linux on x86-64.
pub const FORMAT: &str = "elf-x86-64";
/// Symbol of a shared object: the signatures of its calls as NUL-terminated text, one per line.
pub const SIGNATURES: &str = "divi_signatures";

/// Target of an executable: the processor that it was compiled for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Target {
    /// Name for users: `x86-64-v3`, `x86-64-v4`, or an LLVM processor.
    pub cpu: String,
    /// Features that the processor must have (flags of `/proc/cpuinfo`).
    pub features: Vec<String>,
}

impl Target {
    /// Describes a shared object for this target.
    pub fn executable(&self, file: String) -> bundle::Executable {
        let target = serde_json::to_value(self).expect("keys are strings");
        bundle::Executable { format: FORMAT.into(), file, target }
    }

    fn of(executable: &bundle::Executable) -> std::result::Result<Self, String> {
        let invalid = |error| format!("the target of '{}' is not a processor: {error}", executable.file);
        Self::deserialize(&executable.target).map_err(invalid)
    }
}

/// Returns the signature of a call, as stored in the shared object.
pub fn signature(call: &Call) -> String {
    call.signature(&call.kernel, call.extent)
}

pub(crate) struct CpuDriver;

impl Driver for CpuDriver {
    fn kind(&self) -> &str {
        "cpu"
    }

    fn formats(&self) -> &[&str] {
        &[FORMAT]
    }

    fn properties(&self) -> Properties {
        Properties { memory: MemorySpace::Host, execution: Execution::Inline }
    }

    fn devices(&self) -> std::result::Result<Vec<DeviceInfo>, String> {
        Ok(vec![DeviceInfo { name: cpu::name(), arch: std::env::consts::ARCH.to_owned() }])
    }

    fn validate(&self, bundle: &Bundle, device: usize) -> std::result::Result<(), String> {
        for (_, stage) in bundle.stages_of(device) {
            let wrong = |reason| format!("stage '{}': {reason}", stage.name);
            Target::of(&bundle.executables[stage.executable]).map_err(wrong)?;
            if !stage.payload.is_null() {
                return Err(wrong("it has a payload, and CPUs use none".into()));
            }
            validate_calls(&stage.calls).map_err(wrong)?;
        }
        Ok(())
    }

    fn open(&self, bundle: &Bundle, device: usize, _: usize) -> Result<Arc<dyn Device>> {
        for (_, stage) in bundle.stages_of(device) {
            check_processor(&bundle.executables[stage.executable])?;
        }
        Ok(Arc::new(CpuDevice))
    }

    fn validate_prepare(&self, bundle: &Bundle, executable: usize) -> std::result::Result<(), String> {
        Target::of(&bundle.executables[executable])?;
        validate_calls(&bundle.prepare)
    }

    fn prepare(&self, request: &PrepareRequest<'_>) -> Result<()> {
        let &PrepareRequest { folder, bundle, executable, .. } = request;
        let executable = &bundle.executables[executable];
        check_processor(executable)?;
        let code = Code::load(folder, executable)?;
        let mut pool = ThreadPool::new("prepare", core_count(), &[], Duration::ZERO).map_err(Error::Thread)?;
        for (call, planned) in bundle.prepare.iter().zip(code.plan(&bundle.prepare, bundle.has_extents())?) {
            // In a valid bundle, all buffers of `prepare` are constants.
            let address = |buffer: &Buffer| match buffer {
                Buffer::Constant(index) => request.constant(*index),
                Buffer::Input(_) | Buffer::Output(_) | Buffer::Arena(_) => ptr::null_mut(),
            };
            let buffers: Vec<*mut u8> = call.buffers.iter().map(address).collect();
            let PlannedCall { kernel, extent, grain, .. } = planned;
            let work = KernelLaunch { kernel, buffers: buffers.as_ptr(), extent, grain };
            // SAFETY: the buffers are constants, which nothing else accesses yet.
            let status = unsafe { pool.run(work) };
            if let Some(problem) = Status::problem(status) {
                let (stage, task) = ("prepare".to_owned(), call.kernel.clone());
                return Err(Error::Failed { stage, task, problem: problem.to_owned() });
            }
        }
        Ok(())
    }
}

fn validate_calls(calls: &[Call]) -> std::result::Result<(), String> {
    match calls.iter().find(|call| !call.payload.is_null()) {
        Some(call) => Err(format!("kernel '{}': it has a payload, and CPUs use none", call.kernel)),
        None => Ok(()),
    }
}

/// Rejects code that this processor cannot run.
fn check_processor(executable: &bundle::Executable) -> Result<()> {
    let target =
        Target::of(executable).map_err(|reason| Error::Code { path: executable.file.clone().into(), reason })?;
    let missing = cpu::missing(&target.features);
    let refused = target.features.iter().filter(|_| missing.is_empty()).filter(|feature| !cpu::is_permitted(feature));
    let missing: Vec<String> = missing.iter().chain(refused).cloned().collect();
    if missing.is_empty() { Ok(()) } else { Err(Error::OtherProcessor { cpu: target.cpu, missing }) }
}

struct CpuDevice;

impl Device for CpuDevice {
    fn name(&self) -> String {
        cpu::name()
    }

    fn allocate(&self, bytes: u64, what: &str) -> Result<Box<dyn Allocation>> {
        Ok(Box::new(AlignedBuffer::zeroed(bytes, what)?))
    }

    fn allocate_host(&self, bytes: u64, what: &str) -> Result<Box<dyn Allocation>> {
        self.allocate(bytes, what)
    }

    fn is_pinned(&self, _: *const u8) -> bool {
        false
    }

    fn load(&self, request: &LoadRequest<'_>) -> Result<Box<dyn Executable>> {
        let &LoadRequest { bundle, device, threads, .. } = request;
        let mut codes = BTreeMap::new();
        let mut stages = HashMap::new();
        for (index, stage) in bundle.stages_of(device) {
            if let Entry::Vacant(entry) = codes.entry(stage.executable) {
                entry.insert(Code::load(request.folder, &bundle.executables[stage.executable])?);
            }
            let calls = codes[&stage.executable].plan(&stage.calls, bundle.has_extents())?;
            let tasks = stage.tasks.iter().map(|task| task.name.clone()).collect();
            stages.insert(index, Stage { name: stage.name.clone(), tasks, calls });
        }
        let constants = request.constants.constants.iter().map(|memory| Address(memory.pointer())).collect();
        let pool = ThreadPool::new(&threads.name, threads.count, &threads.cores, threads.spin_timeout);
        let pool = Mutex::new(pool.map_err(Error::Thread)?);
        Ok(Box::new(CpuExecutable { stages, constants, pool, _codes: codes }))
    }
}

impl Allocation for AlignedBuffer {
    fn address(&self) -> *mut u8 {
        self.pointer()
    }
}

struct CpuExecutable {
    /// Stages of the device, by index in the bundle.
    stages: HashMap<usize, Stage>,
    constants: Vec<Address>,
    pool: Mutex<ThreadPool>,
    /// Shared objects with the kernels, by index of the executable.
    _codes: BTreeMap<usize, Code>,
}

struct Stage {
    name: String,
    /// Names of tasks.
    tasks: Vec<String>,
    calls: Vec<PlannedCall>,
}

/// Address of a constant.
struct Address(*mut u8);

// SAFETY: constants do not change while requests run.
unsafe impl Send for Address {}
// SAFETY: as above.
unsafe impl Sync for Address {}

impl Executable for CpuExecutable {
    fn constant(&self, index: usize) -> Option<*mut u8> {
        self.constants.get(index).map(|address| address.0)
    }

    unsafe fn launch(&self, launch: &Launch<'_>) -> Result<Vec<TaskTime>> {
        let Some(stage) = self.stages.get(&launch.stage) else { return Ok(vec![]) };
        let mut pool = self.pool.lock();
        let mut times: Vec<TaskTime> = vec![];
        for call in &stage.calls {
            if (launch.is_cancelled)() {
                return Err(Error::Cancelled);
            }
            if let Some(clock) = launch.clock
                && times.last().is_none_or(|time| time.task != call.task)
            {
                let now = clock();
                times.last_mut().into_iter().for_each(|time| time.end_ns = now);
                times.push(TaskTime { task: call.task, begin_ns: now, end_ns: now });
            }
            let buffers = launch.buffers[call.buffers.clone()].as_ptr();
            let work = KernelLaunch { kernel: call.kernel, buffers, extent: call.extent, grain: call.grain };
            // SAFETY: the kernel was compiled for buffers of these sizes; the rest is guaranteed by the caller.
            let status = unsafe { pool.run(work) };
            if let Some(problem) = Status::problem(status) {
                let task = stage.tasks.get(call.task).cloned().unwrap_or_default();
                return Err(Error::Failed { stage: stage.name.clone(), task, problem: problem.to_owned() });
            }
        }
        if let (Some(clock), Some(last)) = (launch.clock, times.last_mut()) {
            last.end_ns = clock();
        }
        Ok(times)
    }

    fn queue(&self) -> &dyn Queue {
        self
    }
}
