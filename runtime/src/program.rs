//! Loaded program: devices with their kernels and constants, and the steps with their dependences and priorities.

use crate::{
    agreement::{self, Agreement, CoreShare},
    bundle::{Action, Bundle, Call, DESCRIPTION, HostPart, Lanes, Message, Stage},
    constants::Constants,
    error::{Error, Result},
    files::Roots,
    footprint,
    hal::{self, Allocation, Device, LoadOptions, LoadRequest, MemorySpace, PrepareRequest, Properties},
    layout::MemoryPlan,
    limits,
    loaded_device::LoadedDevice,
    options::Options,
    process::Peer,
    transport::{Transport, transport},
    workers::Workers,
};
use std::{collections::HashMap, ops::Range, path::Path, ptr, sync::Arc};

/// Bundle, or the part of it that this host runs, with its devices, constants and transports.
pub(crate) struct Program {
    pub(crate) bundle: Bundle,
    /// The whole bundle, if `bundle` is a part of it.
    whole: Option<Bundle>,
    /// By step: its index in the whole bundle.
    pub(crate) whole_steps: Vec<usize>,
    /// Messages between all hosts.
    pub(crate) messages: Vec<Message>,
    /// By rank: its host and stages, for error messages; empty if this process runs all parts.
    pub(crate) peers: Vec<String>,
    /// By rank: the rank as seen by this one.
    pub(crate) processes: Vec<Peer>,
    pub(crate) steps: Vec<PlannedStep>,
    pub(crate) lanes: Lanes,
    pub(crate) in_flight: usize,
    /// Memory of the values of a request.
    pub(crate) memory: MemoryPlan,
    /// Kept alive because executables of devices in host memory contain pointers to them.
    _constants: Constants,
    pub(crate) devices: Vec<LoadedDevice>,
    /// One per link.
    transports: Vec<Arc<dyn Transport>>,
    pub(crate) workers: Workers,
}

/// Step with its dependences and priority.
pub(crate) struct PlannedStep {
    /// Lane of the step: the index of a device, or the number of devices + the index of a link.
    pub(crate) lane: usize,
    /// True if a device with a queue takes part in the step.
    pub(crate) is_queued: bool,
    /// True if the step completes when the device has executed it, false if it completes when it is enqueued.
    pub(crate) is_synchronized: bool,
    /// True if a device with a queue copies a value to the host.
    pub(crate) is_download: bool,
    /// True if it overwrites a value that earlier steps have read, which may only be enqueued.
    pub(crate) overwrites: bool,
    /// True if a later step overwrites the value that this transfer to a device with a queue reads.
    pub(crate) is_overwritten: bool,
    /// True if it sends or receives a value of another host.
    pub(crate) is_message: bool,
    /// True if it computes with threads of the host.
    pub(crate) is_computing: bool,
    /// True if it moves parts of values on a device without stages, so that it delays no computation.
    pub(crate) is_on_idle_device: bool,
    /// Priority; of the ready steps of a request, the one with the lowest rank runs first.
    pub(crate) rank: u32,
    /// Steps that it waits for: those that write its operands, and those that use bytes that it overwrites.
    pub(crate) dependencies: Vec<usize>,
    /// Steps that wait for it.
    pub(crate) dependents: Vec<usize>,
    /// Range of its calls' buffers in the buffer table of a slot.
    pub(crate) table: Range<usize>,
}

impl Program {
    pub(crate) fn load(folder: &Path, options: &Options) -> Result<Self> {
        let communicator = options.communicator.as_deref();
        let read = match options.lost_node {
            Some(node) => Bundle::read_without(folder, node, &options.drivers),
            None => Bundle::read_for(folder, &options.drivers),
        };
        let Agreement { bundle: whole, share, hosts, peers: processes } = agreement::compare(options, read)?;
        let original = |rank| communicator.map_or(rank, |communicator| communicator.original_rank(rank));
        let peer = |(rank, host): (usize, &String)| describe_peer(&whole, (rank, original(rank)), host);
        let peers = hosts.iter().enumerate().map(peer).collect();
        let usual = footprint::default_in_flight(&whole);
        let in_flight = options.in_flight.unwrap_or(usual).max(1);
        let opened = open(folder, whole, options, (in_flight, usual));
        let opened = agreement::all_succeeded(communicator, opened)?;
        let loaded = Self::load_opened(folder, opened, options, in_flight, &share);
        Ok(Self { peers, processes, ..agreement::all_succeeded(communicator, loaded)? })
    }

    /// Loads code and constants onto open devices.
    fn load_opened(
        folder: &Path,
        Opened { whole, part, devices, properties }: Opened,
        options: &Options,
        in_flight: usize,
        share: &CoreShare,
    ) -> Result<Self> {
        let HostPart { bundle, steps: whole_steps, messages, ranges } = part;
        let drivers = &options.drivers;
        let roots = Roots::new(folder, bundle.known_model_folder(), &options.allowed_paths)?;
        let mut constants = Constants::load(&roots, &bundle, &ranges, options.map_weights)?;
        if let Some(executable) = bundle.prepare_executable.filter(|_| !bundle.prepare.is_empty())
            && let Some(driver) = drivers.of_host(&bundle.executables[executable].format)
        {
            driver.prepare(&PrepareRequest { folder, bundle: &bundle, executable, constants: &constants })?;
        }
        let lanes = bundle.lanes();
        let workers = Workers::new(&bundle, &lanes, &properties, options, share);
        let mut loaded = Vec::with_capacity(devices.len());
        for (index, (device, properties)) in devices.into_iter().zip(properties).enumerate() {
            let executable = device.load(&LoadRequest {
                folder,
                bundle: &bundle,
                device: index,
                options: LoadOptions { cold: options.cold, choices: options.choices.as_deref() },
                threads: &workers.of_devices[index],
                constants: &constants,
            })?;
            loaded.push(LoadedDevice { properties, executable: executable.into(), device });
        }
        if options.cold.is_none() {
            // Constants that only devices with their own memory read have been copied there.
            constants.retain(&host_constants(&bundle, &loaded));
        }
        let memory = footprint::memory_plan(&bundle, in_flight);
        let steps = plan_steps(&bundle, &lanes, &loaded, &memory);
        let transports = lanes.links.iter().map(|&link| transport(&loaded, link, &options.transport)).collect();
        Ok(Self {
            bundle,
            whole,
            whole_steps,
            messages,
            peers: vec![],
            processes: vec![],
            steps,
            lanes,
            in_flight,
            memory,
            _constants: constants,
            devices: loaded,
            transports,
            workers,
        })
    }

    /// Returns the whole bundle.
    pub(crate) fn plan(&self) -> &Bundle {
        self.whole.as_ref().unwrap_or(&self.bundle)
    }

    /// Allocates memory for the values of a device. Host memory is pinned if a link connects it to a device with its own
    /// memory.
    pub(crate) fn values(&self, device: usize, bytes: u64) -> Result<Box<dyn Allocation>> {
        let what = format!("the values on device '{}'", self.bundle.devices[device].id);
        let peer = |&(from, to): &(usize, usize)| match device {
            _ if device == from => Some(&self.devices[to]),
            _ if device == to => Some(&self.devices[from]),
            _ => None,
        };
        match self.lanes.links.iter().filter_map(peer).find(|peer| !peer.is_on_host()) {
            Some(peer) if self.devices[device].is_on_host() => hal::allocate_host(&*peer.device, bytes, &what),
            _ => hal::allocate(&*self.devices[device].device, bytes, &what),
        }
    }

    /// Returns the address of a constant on a device; null if the driver does not expose it.
    pub(crate) fn constant_on(&self, device: usize, constant: usize) -> *mut u8 {
        self.devices[device].executable.constant(constant).unwrap_or(ptr::null_mut())
    }

    /// Returns the address of a constant on a device that is a value of the bundle, so that steps other than launches read it.
    pub(crate) fn constant_value(&self, device: usize, constant: usize) -> Result<*mut u8> {
        self.devices[device].executable.constant(constant).ok_or_else(|| Error::Device {
            what: format!("device '{}'", self.bundle.devices[device].id),
            problem: format!("its driver has no address for constant {constant}, which is a value of the bundle"),
        })
    }

    /// Returns the device whose memory contains a value.
    pub(crate) fn device_of(&self, value: usize) -> &LoadedDevice {
        &self.devices[self.bundle.values[value].device]
    }

    /// Returns true if a value is in host memory.
    pub(crate) fn is_on_host(&self, value: usize) -> bool {
        self.device_of(value).is_on_host()
    }

    /// Returns true if kernels may read an input in the caller's memory: it is in host memory, and no step copies it to a
    /// device, which could still read it asynchronously.
    pub(crate) fn may_read_in_place(&self, value: usize) -> bool {
        let leaves = |action: &Action| matches!(action, Action::Transfer { input, output } if *input == value && !self.is_on_host(*output));
        self.is_on_host(value) && !self.bundle.steps.iter().any(|step| leaves(&step.action))
    }

    /// Returns true if an output is transferred from a device to host memory, so that the device can copy it to the caller's
    /// memory.
    pub(crate) fn may_write_in_place(&self, value: usize) -> bool {
        let arrives = |action: &Action| matches!(action, Action::Transfer { input, output } if *output == value && !self.is_on_host(*input));
        self.is_on_host(value) && self.bundle.steps.iter().any(|step| arrives(&step.action))
    }

    /// Returns true if outputs are in device memory.
    pub(crate) fn has_device_outputs(&self) -> bool {
        self.bundle.outputs.iter().any(|port| !self.is_on_host(port.value))
    }

    /// Returns true if an output is copied from a device with its own memory.
    pub(crate) fn is_downloaded(&self, value: usize) -> bool {
        !self.is_on_host(value) || self.may_write_in_place(value)
    }

    /// Returns the transport of a transfer step; `None` for other steps.
    pub(crate) fn transport(&self, step: usize) -> Option<&dyn Transport> {
        let link = self.steps[step].lane.checked_sub(self.devices.len())?;
        Some(&*self.transports[link])
    }

    /// Returns the length of the buffer table.
    pub(crate) fn table_length(&self) -> usize {
        self.steps.last().map_or(0, |step| step.table.end)
    }
}

/// Maximum number of stages that the description of a rank names.
const NAMED_STAGES: usize = 3;

/// Describes a rank in error messages: its host, the stages that it runs, and its number at the start of the job if it was
/// another one.
fn describe_peer(whole: &Bundle, (rank, original): (usize, usize), host: &str) -> String {
    let is_there = |stage: &&Stage| whole.devices[stage.device].node.unwrap_or(0) == rank;
    let names: Vec<String> = whole.stages.iter().filter(is_there).map(|stage| format!("'{}'", stage.name)).collect();
    let more = match names.len().saturating_sub(NAMED_STAGES) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    let stages = match &names[..] {
        [] => "no stages".to_owned(),
        [one] => format!("stage {one}"),
        names => format!("stages {}{more}", names[..names.len().min(NAMED_STAGES)].join(", ")),
    };
    let number = if original == rank { String::new() } else { format!(", rank {original} at first") };
    format!(" (host '{host}', {stages}{number})")
}

/// Open devices for the part of a bundle that this host runs.
struct Opened {
    /// The whole bundle, if `part` is not all of it.
    whole: Option<Bundle>,
    part: HostPart,
    devices: Vec<Arc<dyn Device>>,
    properties: Vec<Properties>,
}

/// Opens the devices of this host's part of a bundle, after checks of memory and code. `in_flight` and `usual` are the actual
/// and the default number of requests in flight.
fn open(folder: &Path, whole: Bundle, options: &Options, (in_flight, usual): (usize, usize)) -> Result<Opened> {
    let drivers = &options.drivers;
    let properties_of = |bundle: &Bundle| -> Result<Vec<Properties>> {
        Ok(drivers.of(bundle)?.iter().map(|driver| driver.properties()).collect())
    };
    let (part, whole) = match options.communicator.as_deref() {
        Some(communicator) => {
            whole.check_ports().map_err(|reason| Error::malformed(&folder.join(DESCRIPTION), reason))?;
            let properties = properties_of(&whole)?;
            let is_on_host: Vec<bool> = properties.iter().map(|device| device.memory == MemorySpace::Host).collect();
            (whole.part(communicator.rank(), &is_on_host), Some(whole))
        }
        None => {
            let (steps, ranges) = ((0..whole.steps.len()).collect(), whole.ranges());
            (HostPart { steps, messages: vec![], ranges, bundle: whole }, None)
        }
    };
    let bundle = &part.bundle;
    let properties = properties_of(bundle)?;
    limits::check(bundle, &properties, in_flight, usual, options.map_weights)?;
    for file in &bundle.files {
        // Executables are small, and running a corrupted one is undefined behavior, so their hash is always checked.
        let is_code = bundle.executables.iter().any(|executable| executable.file == file.path);
        if is_code { file.check(folder)? } else { file.check_size(folder)? }
    }
    let mut ordinals: HashMap<&str, usize> = HashMap::new();
    let of_devices = drivers.of(bundle)?;
    let mut devices: Vec<Arc<dyn Device>> = Vec::with_capacity(of_devices.len());
    for (index, driver) in of_devices.iter().enumerate() {
        let ordinal = ordinals.entry(driver.kind()).or_default();
        devices.push(driver.open(bundle, index, *ordinal)?);
        *ordinal += 1;
    }
    Ok(Opened { whole, part, devices, properties })
}

/// Returns for each constant whether a device in host memory reads it.
fn host_constants(bundle: &Bundle, devices: &[LoadedDevice]) -> Vec<bool> {
    let mut needed = vec![false; bundle.constants.len()];
    let stages = bundle.stages.iter().filter(|stage| devices[stage.device].is_on_host());
    let of_stages =
        stages.flat_map(|stage| stage.calls.iter().flat_map(Call::constants).chain(stage.constants.iter().copied()));
    let values = bundle.values.iter().filter(|value| devices[value.device].is_on_host());
    of_stages.chain(values.filter_map(|value| value.constant)).for_each(|constant| needed[constant] = true);
    needed
}

/// Computes lanes, dependences, buffer ranges and priorities of all steps.
fn plan_steps(bundle: &Bundle, lanes: &Lanes, devices: &[LoadedDevice], memory: &MemoryPlan) -> Vec<PlannedStep> {
    let mut steps: Vec<PlannedStep> = Vec::with_capacity(bundle.steps.len());
    let each = bundle.steps.iter().zip(&lanes.of_step).zip(bundle.dependencies());
    for (index, ((step, &lane), mut dependencies)) in each.enumerate() {
        let overwrites = !memory.after[index].is_empty();
        for &earlier in &memory.after[index] {
            let PlannedStep { is_overwritten, is_synchronized, .. } = &mut steps[earlier];
            let is_upload = matches!(&bundle.steps[earlier].action, Action::Transfer { input, output }
                if devices[bundle.values[*output].device].is_queued() && devices[bundle.values[*input].device].is_on_host());
            (*is_overwritten, *is_synchronized) = (*is_overwritten || is_upload, *is_synchronized || is_upload);
        }
        dependencies.extend(&memory.after[index]);
        dependencies.iter().for_each(|&other| steps[other].dependents.push(index));
        let device = |value: usize| &devices[bundle.values[value].device];
        let is_queued = match &step.action {
            Action::Launch { stage, .. } => devices[bundle.stages[*stage].device].is_queued(),
            other => other.reads().iter().chain(other.writes()).any(|&value| device(value).is_queued()),
        };
        let is_synchronized = match &step.action {
            Action::Launch { stage, .. } => devices[bundle.stages[*stage].device].executable.can_fail(*stage),
            Action::Transfer { input, .. } => device(*input).is_queued(),
            Action::Slice { .. } | Action::Gather { .. } | Action::Send { .. } | Action::Receive { .. } => false,
        };
        let is_on_idle_device = step.action.is_part() && !bundle.has_stages(lane);
        let is_download =
            matches!(&step.action, Action::Transfer { output, .. } if is_synchronized && device(*output).is_on_host());
        let calls = step.action.stage().map_or(&[][..], |stage| &bundle.stages[stage].calls);
        let first = steps.last().map_or(0, |step| step.table.end);
        let table = first..first + calls.iter().map(|call| call.buffers.len()).sum::<usize>();
        let dependents = vec![];
        steps.push(PlannedStep {
            lane,
            is_queued,
            is_synchronized,
            is_download,
            overwrites,
            is_overwritten: false,
            is_message: step.action.is_message(),
            is_computing: step.action.stage().is_some() && !is_queued,
            is_on_idle_device,
            rank: 0,
            dependencies,
            dependents,
            table,
        });
    }
    for (rank, &step) in order(bundle).iter().enumerate() {
        steps[step].rank = rank as u32;
    }
    steps
}

/// Returns the steps sorted by their planned start; in their listed order if the plan has no start times.
fn order(bundle: &Bundle) -> Vec<usize> {
    let mut order: Vec<usize> = (0..bundle.steps.len()).collect();
    if bundle.steps.iter().all(|step| step.start_us.is_some()) {
        let start = |step: usize| bundle.steps[step].start_us.unwrap_or(0.0);
        order.sort_by(|&a, &b| start(a).total_cmp(&start(b)).then(a.cmp(&b)));
    }
    order
}
