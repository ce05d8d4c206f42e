//! CPU driver: a bundle's kernels in a shared object, run by a thread pool for each device.

use crate::{
    bundle::{Bundle, Status},
    code::{Code, PlannedCall},
    cpu,
    error::{Error, Result},
    hal::{
        Allocation, Attempt, Copy, Device, DeviceInfo, Driver, Event, Executable, Execution, Launch, LoadRequest,
        MemorySpace, Owner, Properties, Queue, TaskTime,
    },
    memory::Aligned,
};
use divi_threads::{ThreadPool, Work, sync::Mutex};
use std::{collections::HashMap, ptr, sync::Arc};

pub(crate) struct CpuDriver;

impl Driver for CpuDriver {
    fn kind(&self) -> &str {
        "cpu"
    }

    fn properties(&self) -> Properties {
        Properties { memory: MemorySpace::Host, execution: Execution::Inline }
    }

    fn devices(&self) -> std::result::Result<Vec<DeviceInfo>, String> {
        Ok(vec![DeviceInfo { name: cpu::name(), arch: std::env::consts::ARCH.to_owned() }])
    }

    fn validate(&self, bundle: &Bundle, device: usize) -> std::result::Result<(), String> {
        for stage in bundle.stages.iter().filter(|stage| stage.device == device) {
            if let Some(call) = stage.calls.iter().find(|call| call.launch.is_some()) {
                let reason = "it has a grid, which CPUs do not launch";
                return Err(format!("stage '{}': kernel '{}': {reason}", stage.name, call.kernel));
            }
        }
        self.code_files(bundle, device).into_iter().try_for_each(|path| bundle.validate_code(path))
    }

    fn code_files<'a>(&self, bundle: &'a Bundle, device: usize) -> Vec<&'a str> {
        if has_calls(bundle, device) { vec![&bundle.target.code] } else { vec![] }
    }

    fn open(&self, _: &Bundle, _: usize, _: usize) -> Result<Arc<dyn Device>> {
        Ok(Arc::new(CpuDevice))
    }
}

/// True if a device of a bundle runs kernels.
fn has_calls(bundle: &Bundle, device: usize) -> bool {
    bundle.stages.iter().any(|stage| stage.device == device && !stage.calls.is_empty())
}

struct CpuDevice;

impl Device for CpuDevice {
    fn name(&self) -> String {
        cpu::name()
    }

    fn allocate(&self, bytes: u64, what: &str) -> Result<Box<dyn Allocation>> {
        Ok(Box::new(Aligned::zeroed(bytes, what)?))
    }

    fn allocate_host(&self, bytes: u64, what: &str) -> Result<Box<dyn Allocation>> {
        self.allocate(bytes, what)
    }

    fn is_pinned(&self, _: *const u8) -> bool {
        false
    }

    fn load(&self, request: &LoadRequest<'_>) -> Result<Box<dyn Executable>> {
        let &LoadRequest { bundle, device, threads, .. } = request;
        let code = has_calls(bundle, device).then(|| Code::load(request.folder, &bundle.target)).transpose()?;
        let mut stages = HashMap::new();
        for (index, stage) in bundle.stages.iter().enumerate().filter(|(_, stage)| stage.device == device) {
            let calls = code.as_ref().map_or(Ok(vec![]), |code| code.plan(&stage.calls, bundle.has_extents()))?;
            let tasks = stage.tasks.iter().map(|task| task.name.clone()).collect();
            stages.insert(index, Stage { name: stage.name.clone(), tasks, calls });
        }
        let constants = request.constants.constants.iter().map(|memory| Address(memory.pointer())).collect();
        let pool = ThreadPool::new(&threads.name, threads.count, &threads.cores, threads.spin_timeout);
        let pool = Mutex::new(pool.map_err(Error::Thread)?);
        Ok(Box::new(CpuExecutable { stages, constants, pool, _code: code }))
    }
}

impl Allocation for Aligned {
    fn address(&self) -> *mut u8 {
        self.pointer()
    }
}

struct CpuExecutable {
    /// By index in the bundle.
    stages: HashMap<usize, Stage>,
    constants: Vec<Address>,
    pool: Mutex<ThreadPool>,
    /// Contains the kernels.
    _code: Option<Code>,
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
            let work = Work { kernel: call.kernel, buffers, extent: call.extent, grain: call.grain };
            // SAFETY: the compiler wrote the kernel for buffers of these sizes; the rest is the caller's.
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
        &HostQueue
    }
}

/// Copies at once, on the calling thread.
struct HostQueue;

impl HostQueue {
    /// # Safety
    /// As for [`Queue`].
    unsafe fn copy_all(copies: &mut dyn Iterator<Item = Copy>) -> Attempt {
        for Copy { to, from, bytes } in copies {
            // SAFETY: the caller's.
            unsafe { ptr::copy_nonoverlapping(from, to, bytes as usize) };
        }
        Ok(())
    }
}

impl Queue for HostQueue {
    unsafe fn copy(&self, _: Owner, copies: &mut dyn Iterator<Item = Copy>, _: bool) -> Attempt {
        // SAFETY: the caller's.
        unsafe { Self::copy_all(copies) }
    }

    unsafe fn upload(&self, _: Owner, copies: &mut dyn Iterator<Item = Copy>) -> Attempt {
        // SAFETY: the caller's.
        unsafe { Self::copy_all(copies) }
    }

    unsafe fn download(
        &self,
        owner: Owner,
        copies: &mut dyn Iterator<Item = Copy>,
    ) -> std::result::Result<Event, String> {
        // SAFETY: the caller's.
        unsafe { Self::copy_all(copies) }?;
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
