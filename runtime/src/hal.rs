//! Hardware abstraction layer: the interface between the engine and the drivers of devices.
//!
//! A [`Driver`] opens the devices of one kind. A [`Device`] allocates memory and loads its part of a bundle as an [`Executable`],
//! which launches stages. Copies go through its [`Queue`]. The engine knows devices by these traits alone; which drivers there are
//! is decided in [`Drivers`](crate::Drivers).

use crate::{
    bundle::{self, Bundle},
    constants::Constants,
    error::{Error, Result},
    span::Spans,
};
use std::{path::Path, sync::Arc, time::Duration};

/// Devices of one kind.
pub trait Driver: Send + Sync {
    /// Name of the kind in machine descriptions and bundles: `cpu`, `cuda`.
    fn kind(&self) -> &str;

    /// Formats of the executables that it loads ([`bundle::Executable::format`]).
    fn formats(&self) -> &[&str];

    fn properties(&self) -> Properties;

    /// Devices of this machine in the order in which bundles take them, or the reason why there are none.
    fn devices(&self) -> std::result::Result<Vec<DeviceInfo>, String>;

    /// Checks the parts of a description that it alone knows, for one of its devices by index and the stages that run there: targets of
    /// executables and payloads. All else is valid, and executables are in formats that it loads.
    fn validate(&self, bundle: &Bundle, device: usize) -> std::result::Result<(), String>;

    /// Checks the same of `prepare` and its executable, which is in a format that it loads. Only for drivers with [`MemorySpace::Host`].
    fn validate_prepare(&self, bundle: &Bundle, executable: usize) -> std::result::Result<(), String> {
        let _ = (bundle, executable);
        Err(format!("driver '{}' computes no constants", self.kind()))
    }

    /// Runs the `prepare` calls of a bundle, which compute constants. Only for drivers with [`MemorySpace::Host`].
    fn prepare(&self, request: &PrepareRequest<'_>) -> Result<()> {
        let reason = format!("driver '{}' computes no constants", self.kind());
        let file = &request.bundle.executables[request.executable].file;
        Err(Error::Code { path: request.folder.join(file), reason })
    }

    /// Opens the device of this machine that takes the place of a device of a bundle. `ordinal` counts devices of this kind.
    fn open(&self, bundle: &Bundle, device: usize, ordinal: usize) -> Result<Arc<dyn Device>>;
}

/// Properties that all devices of a kind share.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Properties {
    pub memory: MemorySpace,
    pub execution: Execution,
}

/// Memory of a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MemorySpace {
    /// Memory of this process: addresses are pointers.
    Host,
    /// Memory that the host cannot access: addresses mean something to the device alone.
    Device,
}

/// Relation between the calling thread and the work of a launch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Execution {
    /// The calling thread computes, with the threads that [`LoadRequest::threads`] gives the device.
    Inline,
    /// The device computes later, by itself. A launch that may fail is synchronized before it returns.
    Queued,
}

/// A device of this machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeviceInfo {
    /// Name of the product.
    pub name: String,
    /// Instruction set that code is compiled for, as in machine descriptions: `sm_90`.
    pub arch: String,
}

/// An open device.
pub trait Device: Send + Sync {
    /// Name of the product.
    fn name(&self) -> String;

    /// Allocates zeroed memory of the device, aligned to [`bundle::ALIGNMENT`]. `what` names it in errors.
    fn allocate(&self, bytes: u64, what: &str) -> Result<Box<dyn Allocation>>;

    /// Allocates zeroed memory of the host that the device copies from and to fastest (pinned memory), aligned in the same way.
    fn allocate_host(&self, bytes: u64, what: &str) -> Result<Box<dyn Allocation>>;

    /// True if the device copies from and to this memory of the host without a staging buffer.
    fn is_pinned(&self, pointer: *const u8) -> bool;

    /// Loads code and constants of a bundle.
    fn load(&self, request: &LoadRequest<'_>) -> Result<Box<dyn Executable>>;
}

/// Allocates memory of a device. Kernels rely on its alignment, so drivers that do not align it are refused.
pub(crate) fn allocate(device: &dyn Device, bytes: u64, what: &str) -> Result<Box<dyn Allocation>> {
    check_alignment(device, device.allocate(bytes, what)?, what)
}

/// Allocates memory of the host by a device, in the same way.
pub(crate) fn allocate_host(device: &dyn Device, bytes: u64, what: &str) -> Result<Box<dyn Allocation>> {
    check_alignment(device, device.allocate_host(bytes, what)?, what)
}

fn check_alignment(device: &dyn Device, memory: Box<dyn Allocation>, what: &str) -> Result<Box<dyn Allocation>> {
    if (memory.address().addr() as u64).is_multiple_of(bundle::ALIGNMENT) {
        return Ok(memory);
    }
    let problem = format!("its driver did not align the memory for {what} to {} bytes", bundle::ALIGNMENT);
    Err(Error::Device { what: format!("device '{}'", device.name()), problem })
}

/// Memory, which is freed when this is dropped.
pub trait Allocation: Send + Sync {
    /// First address: a pointer where the host can access the memory.
    fn address(&self) -> *mut u8;
}

/// Inputs of [`Device::load`].
pub struct LoadRequest<'a> {
    /// Folder of the bundle.
    pub folder: &'a Path,
    pub bundle: &'a Bundle,
    /// Index of the device in the bundle.
    pub device: usize,
    pub options: LoadOptions<'a>,
    pub threads: &'a Threads,
    pub(crate) constants: &'a Constants,
}

/// Options of a user that drivers follow.
#[derive(Clone, Copy, Debug, Default)]
pub struct LoadOptions<'a> {
    /// When constants are copied to a device with memory of its own; at load if `None`.
    pub cold: Option<Cold>,
    /// File of the fastest algorithms of libraries and kernels. What it lacks is measured and added. If `None`, all are measured at load.
    pub choices: Option<&'a Path>,
}

impl LoadRequest<'_> {
    /// The device as the bundle describes it.
    pub fn description(&self) -> &bundle::Device {
        &self.bundle.devices[self.device]
    }

    /// Bytes of a constant of the bundle, in memory of the host that lives at least as long as the executable if its memory is
    /// [`MemorySpace::Host`], and as long as the load else.
    pub fn constant(&self, index: usize) -> &[u8] {
        self.constants.constants[index].bytes()
    }
}

/// Inputs of [`Driver::prepare`].
pub struct PrepareRequest<'a> {
    /// Folder of the bundle.
    pub folder: &'a Path,
    pub bundle: &'a Bundle,
    /// Index of the executable with the code.
    pub executable: usize,
    pub(crate) constants: &'a Constants,
}

impl PrepareRequest<'_> {
    /// Address of a constant of the bundle. Only constants that are computed may be written.
    pub fn constant(&self, index: usize) -> *mut u8 {
        self.constants.constants[index].pointer()
    }
}

/// Threads of the host that a device with [`Execution::Inline`] computes with.
#[derive(Clone, Debug)]
pub struct Threads {
    /// Name of the first thread, which calls [`Executable::launch`].
    pub name: String,
    pub count: usize,
    /// Cores to pin them to; empty if they are not pinned.
    pub cores: Vec<usize>,
    /// Time that a thread polls for work before it sleeps.
    pub spin_timeout: Duration,
}

/// Code and constants of a bundle on a device.
pub trait Executable: Send + Sync {
    /// Address of a constant; `None` if the device does not have it.
    fn constant(&self, index: usize) -> Option<*mut u8>;

    /// True if a launch of the stage is synchronized because it may fail.
    fn can_fail(&self, stage: usize) -> bool {
        let _ = stage;
        false
    }

    /// Runs a stage, or enqueues it, and returns the times of its tasks if there is a clock.
    ///
    /// # Safety
    /// Inputs are written, or what writes them is enqueued on this device. Nothing else uses the outputs, or the arena of the device.
    unsafe fn launch(&self, launch: &Launch<'_>) -> Result<Vec<TaskTime>>;

    /// Prepares a launch that comes before the constants are on the device ([`Cold`]).
    fn prepare_cold(&self, launch: &Launch<'_>) -> Result<()> {
        let _ = launch;
        Ok(())
    }

    fn queue(&self) -> &dyn Queue;
}

/// A launch of a stage.
#[derive(Clone, Copy)]
pub struct Launch<'a> {
    /// Index of the stage in the bundle.
    pub stage: usize,
    pub owner: Owner,
    pub inputs: Arguments<'a>,
    pub outputs: Arguments<'a>,
    /// Addresses of the buffers of all calls of the stage, one call after the other. Those of devices with [`Execution::Queued`] are
    /// always the same for a step and a slot.
    pub buffers: &'a [*mut u8],
    /// Returns true if the result is not needed any more.
    pub is_cancelled: &'a dyn Fn() -> bool,
    /// Nanoseconds; there if the times of tasks are wanted.
    pub clock: Option<&'a dyn Fn() -> u64>,
}

/// Addresses of the inputs or outputs of a launch.
#[derive(Clone, Copy)]
pub struct Arguments<'a> {
    pub(crate) values: &'a [*mut u8],
    pub(crate) indices: &'a [usize],
}

impl Arguments<'_> {
    pub fn len(&self) -> usize {
        self.indices.len()
    }

    pub fn is_empty(&self) -> bool {
        self.indices.is_empty()
    }

    pub fn address(&self, index: usize) -> *mut u8 {
        self.values[self.indices[index]]
    }
}

/// The step that a launch or copy belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Owner {
    /// One of a fixed number of requests that are in flight.
    pub slot: usize,
    /// Index of the step in the bundle; `None` for the inputs and outputs of the whole model.
    pub step: Option<usize>,
    /// Number of the request if the time of the step is wanted.
    pub recorded: Option<u64>,
}

/// Time of a task of a launch, in nanoseconds of the launch's clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TaskTime {
    pub task: usize,
    pub begin_ns: u64,
    pub end_ns: u64,
}

/// A copy of bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Copy {
    pub to: *mut u8,
    pub from: *const u8,
    pub bytes: u64,
}

/// Completion of a download ([`Queue::download`]).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Event {
    pub slot: usize,
    pub step: Option<usize>,
}

/// Copies from, to and on a device, in the order of the launches and copies that they depend on. The errors say what is wrong.
///
/// # Safety
/// The bytes that are copied are written, or the step that writes them is enqueued on this device. Nothing else uses the target. Memory of
/// the host stays as it is until the event has happened, or the slot was synchronized.
#[allow(clippy::missing_safety_doc, reason = "one for all functions")]
pub trait Queue: Send + Sync {
    /// Copies on the device, or to another one that it can write to by itself. What else than this device reads is `synchronized`.
    unsafe fn copy(&self, owner: Owner, copies: &mut dyn Iterator<Item = Copy>, synchronized: bool) -> Attempt;

    /// Copies from the host to the device.
    unsafe fn upload(&self, owner: Owner, copies: &mut dyn Iterator<Item = Copy>) -> Attempt;

    /// Copies from the device to the host; the bytes are there after [`Queue::wait`].
    unsafe fn download(
        &self,
        owner: Owner,
        copies: &mut dyn Iterator<Item = Copy>,
    ) -> std::result::Result<Event, String>;

    fn wait(&self, event: Event) -> Attempt;

    /// Waits for everything that was enqueued for a slot.
    fn synchronize(&self, slot: usize) -> Attempt;

    /// Waits for everything that was enqueued.
    fn synchronize_all(&self);

    /// Relates the device's clock to the host's, which shows nanoseconds.
    fn set_clock(&self, now: &dyn Fn() -> u64) -> Attempt {
        let _ = now;
        Ok(())
    }

    /// Keeps the times of the steps of a slot, all of which are done.
    fn keep_times(&self, slot: usize) {
        let _ = slot;
    }

    fn take_times(&self) -> StepTimes {
        StepTimes::default()
    }
}

/// Success, or what is wrong.
pub type Attempt = std::result::Result<(), String>;

/// Times of steps that a device has measured.
#[derive(Default)]
pub struct StepTimes(pub(crate) Spans);

/// When the constants of a device are copied to it, if not at load.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cold {
    /// At the first request, in the order of their first use, while calls that have theirs run.
    Overlap,
    /// At the first request, before the first call.
    CopyFirst,
}
