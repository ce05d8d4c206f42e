//! Hardware abstraction layer: the interface between the engine and the drivers of devices.
//!
//! A [`Driver`] opens the devices of one kind. A [`Device`] allocates memory and loads its part of a bundle as an
//! [`Executable`], which launches stages. Copies go through its [`Queue`]. The engine accesses devices only through these
//! traits; [`Drivers`](crate::Drivers) is the registry of drivers.

use crate::{
    bundle::{self, Bundle},
    constants::Constants,
    error::{Error, Result},
    span::Spans,
};
use std::{path::Path, sync::Arc, time::Duration};

/// Driver of one device kind.
pub trait Driver: Send + Sync {
    /// Returns the name of the kind in machine descriptions and bundles: `cpu`, `cuda`.
    fn kind(&self) -> &str;

    /// Returns the formats of executables that it loads ([`bundle::Executable::format`]).
    fn formats(&self) -> &[&str];

    /// Returns the properties of its devices.
    fn properties(&self) -> Properties;

    /// Returns the devices of this machine in the order in which bundles use them, or the reason why there are none.
    fn devices(&self) -> std::result::Result<Vec<DeviceInfo>, String>;

    /// Checks the driver-specific parts of a description, for a device by index and the stages that run there: targets of
    /// executables and payloads. The rest has been validated, and executables are in supported formats.
    fn validate(&self, bundle: &Bundle, device: usize) -> std::result::Result<(), String>;

    /// Checks the same parts of `prepare` and its executable. Only for drivers with [`MemorySpace::Host`].
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

    /// Opens the device of this machine for a device of a bundle. `ordinal` is its number among the bundle's devices of this
    /// kind.
    fn open(&self, bundle: &Bundle, device: usize, ordinal: usize) -> Result<Arc<dyn Device>>;
}

/// Properties common to all devices of a kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Properties {
    /// Memory of the devices.
    pub memory: MemorySpace,
    /// Execution model of launches.
    pub execution: Execution,
}

/// Memory of a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MemorySpace {
    /// Memory of this process: addresses are pointers.
    Host,
    /// Memory that the host cannot access: addresses are meaningful only to the device.
    Device,
}

/// Relation between the calling thread and the work of a launch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Execution {
    /// Synchronous: the calling thread computes, with the threads of [`LoadRequest::threads`].
    Inline,
    /// Asynchronous: a launch enqueues work on the device. A launch that may fail is synchronized before it returns.
    Queued,
}

/// Description of a device of this machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeviceInfo {
    /// Name of the product.
    pub name: String,
    /// Architecture that code is compiled for, as in machine descriptions: `sm_90`.
    pub arch: String,
}

/// Open device.
pub trait Device: Send + Sync {
    /// Returns the name of the product.
    fn name(&self) -> String;

    /// Allocates zeroed device memory, aligned to [`bundle::ALIGNMENT`]. `what` is its description in errors.
    fn allocate(&self, bytes: u64, what: &str) -> Result<Box<dyn Allocation>>;

    /// Allocates zeroed host memory for copies from and to the device (pinned memory), with the same alignment.
    fn allocate_host(&self, bytes: u64, what: &str) -> Result<Box<dyn Allocation>>;

    /// Returns true if the device copies from and to this host memory without a staging buffer.
    fn is_pinned(&self, pointer: *const u8) -> bool;

    /// Loads the device's code and constants of a bundle.
    fn load(&self, request: &LoadRequest<'_>) -> Result<Box<dyn Executable>>;
}

/// Allocates device memory. Kernels rely on its alignment, so it is an error if the driver does not align it.
pub(crate) fn allocate(device: &dyn Device, bytes: u64, what: &str) -> Result<Box<dyn Allocation>> {
    check_alignment(device, device.allocate(bytes, what)?, what)
}

/// Allocates pinned host memory with the same check.
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

/// Owned memory, freed on drop.
pub trait Allocation: Send + Sync {
    /// Returns the first address; a valid pointer if the host can access the memory.
    fn address(&self) -> *mut u8;
}

/// Inputs of [`Device::load`].
pub struct LoadRequest<'a> {
    /// Folder of the bundle.
    pub folder: &'a Path,
    /// Description of the bundle.
    pub bundle: &'a Bundle,
    /// Index of the device in the bundle.
    pub device: usize,
    /// Options of the user.
    pub options: LoadOptions<'a>,
    /// Host threads of the device.
    pub threads: &'a Threads,
    pub(crate) constants: &'a Constants,
}

/// User options that concern drivers.
#[derive(Clone, Copy, Debug, Default)]
pub struct LoadOptions<'a> {
    /// Mode of copying constants in the first request; `None` to copy them at load.
    pub cold: Option<ColdStartMode>,
    /// File with the fastest library algorithm or kernel of each call. Missing entries are measured and added. If `None`, all
    /// of them are measured at load.
    pub choices: Option<&'a Path>,
}

impl LoadRequest<'_> {
    /// Returns the bundle's description of the device.
    pub fn description(&self) -> &bundle::Device {
        &self.bundle.devices[self.device]
    }

    /// Returns the bytes of a constant in host memory. For [`MemorySpace::Host`] they outlive the executable; otherwise they
    /// are valid during the load only.
    pub fn constant(&self, index: usize) -> &[u8] {
        self.constants.constants[index].bytes()
    }
}

/// Inputs of [`Driver::prepare`].
pub struct PrepareRequest<'a> {
    /// Folder of the bundle.
    pub folder: &'a Path,
    /// Description of the bundle.
    pub bundle: &'a Bundle,
    /// Index of the executable with the code.
    pub executable: usize,
    pub(crate) constants: &'a Constants,
}

impl PrepareRequest<'_> {
    /// Returns the address of a constant. Only constants with [`bundle::Source::Computed`] may be written.
    pub fn constant(&self, index: usize) -> *mut u8 {
        self.constants.constants[index].pointer()
    }
}

/// Host threads of a device with [`Execution::Inline`].
#[derive(Clone, Debug)]
pub struct Threads {
    /// Name of the first thread, which calls [`Executable::launch`].
    pub name: String,
    /// Number of threads.
    pub count: usize,
    /// Cores to pin them to; empty if they are not pinned.
    pub cores: Vec<usize>,
    /// Time that a thread polls for work before it sleeps.
    pub spin_timeout: Duration,
}

/// Code and constants of a bundle on a device.
pub trait Executable: Send + Sync {
    /// Returns the address of a constant on the device; `None` if the device does not hold it.
    fn constant(&self, index: usize) -> Option<*mut u8>;

    /// Returns true if launches of the stage are synchronized because its kernels may fail.
    fn can_fail(&self, stage: usize) -> bool {
        let _ = stage;
        false
    }

    /// Runs or enqueues a stage. Returns the times of its tasks if the launch has a clock.
    ///
    /// # Safety
    /// The inputs have been written, or the steps that write them have been enqueued on this device. Nothing else accesses the
    /// outputs or the arena of the device.
    unsafe fn launch(&self, launch: &Launch<'_>) -> Result<Vec<TaskTime>>;

    /// Prepares a launch that precedes the arrival of the constants on the device ([`ColdStartMode`]).
    fn prepare_cold(&self, launch: &Launch<'_>) -> Result<()> {
        let _ = launch;
        Ok(())
    }

    /// Returns the queue for copies from, to and on the device.
    fn queue(&self) -> &dyn Queue;
}

/// Launch of a stage.
#[derive(Clone, Copy)]
pub struct Launch<'a> {
    /// Index of the stage in the bundle.
    pub stage: usize,
    /// Slot and step of the launch.
    pub owner: Owner,
    /// Inputs of the stage.
    pub inputs: Arguments<'a>,
    /// Outputs of the stage.
    pub outputs: Arguments<'a>,
    /// Addresses of the buffers of all calls of the stage, concatenated. For [`Execution::Queued`] they depend only on the step
    /// and the slot, so that a launch can be captured once and replayed.
    pub buffers: &'a [*mut u8],
    /// Returns true if the request was cancelled.
    pub is_cancelled: &'a dyn Fn() -> bool,
    /// Clock in nanoseconds; `Some` if the times of tasks are recorded.
    pub clock: Option<&'a dyn Fn() -> u64>,
}

/// Addresses of the inputs or outputs of a launch.
#[derive(Clone, Copy)]
pub struct Arguments<'a> {
    pub(crate) values: &'a [*mut u8],
    pub(crate) indices: &'a [usize],
}

impl Arguments<'_> {
    /// Returns the number of arguments.
    pub fn len(&self) -> usize {
        self.indices.len()
    }

    /// Returns true if there are no arguments.
    pub fn is_empty(&self) -> bool {
        self.indices.is_empty()
    }

    /// Returns the address of an argument.
    pub fn address(&self, index: usize) -> *mut u8 {
        self.values[self.indices[index]]
    }
}

/// Slot and step that a launch or copy belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Owner {
    /// Index of the slot of the request, below the maximum number of requests in flight.
    pub slot: usize,
    /// Index of the step in the bundle; `None` for copies of the model's inputs and outputs.
    pub step: Option<usize>,
    /// Number of the request if the device is to record the time of the step.
    pub recorded: Option<u64>,
    /// True if the step overwrites values of the slot that enqueued work may still read: copies to a device wait for it.
    pub overwrites: bool,
}

/// Time of a task of a launch, by the launch's clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TaskTime {
    /// Index of the task in the stage.
    pub task: usize,
    /// Start in nanoseconds.
    pub begin_ns: u64,
    /// End in nanoseconds.
    pub end_ns: u64,
}

/// Copy of a range of bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Copy {
    /// Target address.
    pub to: *mut u8,
    /// Source address.
    pub from: *const u8,
    /// Number of bytes.
    pub bytes: u64,
}

/// Completion event of a download ([`Queue::download`]).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Event {
    /// Slot of the download.
    pub slot: usize,
    /// Step of the download; `None` for the model's outputs.
    pub step: Option<usize>,
}

/// Queue for copies from, to and on a device. Copies are ordered after the launches and copies that they depend on.
///
/// # Safety
/// The source bytes have been written, or the step that writes them has been enqueued on this device. Nothing else accesses the
/// target. Host memory is neither changed nor freed until the event has occurred or the slot has been synchronized.
#[allow(clippy::missing_safety_doc, reason = "one for all functions")]
pub trait Queue: Send + Sync {
    /// Copies on the device or to a peer device. If `synchronized`, waits for the copies: their readers are not on this device.
    unsafe fn copy(&self, owner: Owner, copies: &mut dyn Iterator<Item = Copy>, synchronized: bool) -> QueueResult;

    /// Copies from the host to the device.
    unsafe fn upload(&self, owner: Owner, copies: &mut dyn Iterator<Item = Copy>) -> QueueResult;

    /// Copies from the device to the host; complete after [`Queue::wait`].
    unsafe fn download(
        &self,
        owner: Owner,
        copies: &mut dyn Iterator<Item = Copy>,
    ) -> std::result::Result<Event, String>;

    /// Waits for a download.
    fn wait(&self, event: Event) -> QueueResult;

    /// Waits for all work enqueued for a slot.
    fn synchronize(&self, slot: usize) -> QueueResult;

    /// Waits for all enqueued work.
    fn synchronize_all(&self);

    /// Calibrates the device's clock against the host's clock `now`, in nanoseconds.
    fn set_clock(&self, now: &dyn Fn() -> u64) -> QueueResult {
        let _ = now;
        Ok(())
    }

    /// Reads the events of a slot's steps, all of which have completed, and stores their times.
    fn collect_times(&self, slot: usize) {
        let _ = slot;
    }

    /// Returns the stored times and clears them.
    fn take_times(&self) -> StepTimes {
        StepTimes::default()
    }
}

/// Success or an error message.
pub type QueueResult = std::result::Result<(), String>;

/// Step times measured by a device.
#[derive(Default)]
pub struct StepTimes(pub(crate) Spans);

/// Mode of a cold start: constants are copied to the device by the first request instead of at load.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ColdStartMode {
    /// In the order of their first use, overlapped with the calls whose constants have arrived.
    Overlap,
    /// All of them before the first call.
    CopyFirst,
}
