//! Timeline of a plan: when each device runs which task, when each tensor is transferred, and the resulting usage.
//!
//! Everything is recomputed from the problem and the plan's decisions. Validity is checked by the planner's verifier only.

mod launches;
mod lives;
mod memory;
mod rows;
mod stages;
mod steady;
mod transfers;

use divi_planner::plan::{Plan, Schedule};
use divi_planner::problem::{Node, Problem};
use divi_planner::units::{Bytes, BytesPerMicro, Micros};
use divi_planner::{Error, Finding};
use rustc_hash::FxHashSet;

/// Timeline of a plan. Lanes are the devices, followed by the links.
#[derive(Clone, Debug, PartialEq)]
pub struct Timeline {
    /// Usage of each device.
    pub devices: Vec<DeviceUse>,
    /// Usage of the links that carry at least one transfer.
    pub links: Vec<LinkUse>,
    /// Launches, sorted by start, device and task.
    pub launches: Vec<Launch>,
    /// Transfers, sorted by start, sender, receiver and tensor.
    pub transfers: Vec<Transfer>,
    /// Transfer times of pipeline stages, sorted by device, row and start; empty for other plans.
    pub handovers: Vec<Handover>,
    /// End of the last event.
    pub end: Micros,
    /// Cost model of a pipeline; `None` for other plans.
    pub cost: Option<StageCost>,
}

/// Cost model of a pipeline stage in steady state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StageCost {
    /// Sum of receiving, computing and sending.
    Serial,
    /// Maximum of computing and transfers.
    Overlap,
}

impl StageCost {
    /// Returns the name as in plans.
    pub fn name(self) -> &'static str {
        match self {
            Self::Serial => "serial",
            Self::Overlap => "overlap",
        }
    }
}

/// Usage of a device, or of a homogeneous device of a pipeline.
#[derive(Clone, Debug, PartialEq)]
pub struct DeviceUse {
    /// Name of the device.
    pub name: String,
    /// Number of tasks, without model inputs and outputs.
    pub tasks: usize,
    /// Share of all task executions, counted once for each input.
    pub share: f64,
    /// Time spent on tasks, and in a serial pipeline on transfers.
    pub busy: Micros,
    /// Remaining time until the end.
    pub idle: Micros,
    /// Memory usage.
    pub memory: Memory,
    /// Pipeline stages on the device, in the pipeline's order.
    pub stages: Vec<usize>,
    /// True if nothing in the pipeline takes longer.
    pub bottleneck: bool,
    /// Number of rows of the device's lane.
    pub rows: usize,
}

/// Memory usage of a device.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Memory {
    /// Bytes of the weights.
    pub weights: Bytes,
    /// Weights plus the maximum of live tensors; in a pipeline, all tensors that its tasks access.
    pub peak: Bytes,
    /// Bytes that the problem's memory model counts against the capacity.
    pub counted: Bytes,
    /// Capacity; `None` if unlimited.
    pub capacity: Option<Bytes>,
    /// Bytes in use from each time on, including weights; empty for pipelines.
    pub profile: Vec<(Micros, Bytes)>,
}

/// Usage of a bus, or of a pair of devices if buses have no names.
#[derive(Clone, Debug, PartialEq)]
pub struct LinkUse {
    /// Name of the bus or of the pair of devices.
    pub name: String,
    /// Number of transfers.
    pub transfers: usize,
    /// Bytes of all transfers.
    pub bytes: Bytes,
    /// Time during which at least one transfer is active.
    pub busy: Micros,
    /// Maximum number of simultaneous transfers.
    pub rows: usize,
    /// True if nothing in the pipeline takes longer.
    pub bottleneck: bool,
}

/// Launch of a task on a device for a batch of inputs.
#[derive(Clone, Debug, PartialEq)]
pub struct Launch {
    /// Index of the task.
    pub task: usize,
    /// Index of the device.
    pub device: usize,
    /// Queued inputs of the batch, sorted.
    pub inputs: Vec<u32>,
    /// Start time.
    pub start: Micros,
    /// End time.
    pub end: Micros,
}

/// Transfer of a tensor to another device, for the inputs that are consumed there.
#[derive(Clone, Debug, PartialEq)]
pub struct Transfer {
    /// Index of the problem's tensor; `None` for a copy of a task's weights.
    pub tensor: Option<usize>,
    /// The task that produces the tensor or owns the weights.
    pub task: usize,
    /// Index of the launch whose result is transferred; `None` for a copy of weights and in a pipeline.
    pub launch: Option<usize>,
    /// Index of the sending device.
    pub from: usize,
    /// Index of the receiving device.
    pub to: usize,
    /// Index of the link; `None` between homogeneous devices of a pipeline.
    pub link: Option<usize>,
    /// Row in the link's lane.
    pub row: usize,
    /// Inputs that are transferred, sorted; none for a copy of weights.
    pub inputs: Vec<u32>,
    /// Bytes of all these inputs.
    pub bytes: Bytes,
    /// Start time.
    pub start: Micros,
    /// End time.
    pub end: Micros,
}

/// Time that a pipeline stage spends on a transfer or on memory overflow.
#[derive(Clone, Debug, PartialEq)]
pub struct Handover {
    /// Direction of the transfer, or overflow.
    pub way: Way,
    /// The task whose result is transferred.
    pub task: usize,
    /// Index of the device.
    pub device: usize,
    /// Row in the device's lane.
    pub row: usize,
    /// Bytes transferred.
    pub bytes: Bytes,
    /// Start time.
    pub start: Micros,
    /// End time.
    pub end: Micros,
}

/// Direction of a [`Handover`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// Received by the stage.
    In,
    /// Sent by the stage.
    Out,
    /// Bytes that exceed the stage's memory.
    Spill,
}

impl Timeline {
    /// Computes the timeline of a plan. Returns an error if the plan does not match the problem.
    pub fn of(problem: &Problem, plan: &Plan) -> Result<Self, Error> {
        // An empty problem is not well-formed, but has an empty timeline.
        if !problem.nodes.is_empty() {
            problem.check_form()?;
        }
        for (key, time) in [("value", plan.value.0), ("bound", plan.bound.0), ("gap", plan.gap)] {
            if !time.is_finite() {
                return Err(wrong(key, format!("{time} is not a finite number")));
            }
        }
        match &plan.schedule {
            Schedule::Latency { .. } | Schedule::Batch { .. } => {
                let launches = launches::of(problem, plan)?;
                let mut transfers = transfers::of(problem, plan, &launches)?;
                let ends = launches.iter().map(|launch| launch.end);
                let end = ends.chain(transfers.iter().map(|transfer| transfer.end)).fold(Micros::ZERO, Micros::max);
                let links = rows::links(problem, &mut transfers);
                let memory = memory::of(problem, &launches, &transfers);
                let mut devices: Vec<DeviceUse> = problem.devices.iter().map(|device| idle(&device.name)).collect();
                for (device, memory) in devices.iter_mut().zip(memory) {
                    device.memory = memory;
                }
                count(problem, &launches, &mut devices);
                for device in &mut devices {
                    device.idle = (end - device.busy).max(Micros::ZERO);
                }
                Ok(Self { devices, links, launches, transfers, handovers: Vec::new(), end, cost: None })
            }
            Schedule::Pipeline { .. } | Schedule::BatchedPipeline { .. } | Schedule::Edge { .. } => {
                stages::timeline(problem, plan)
            }
        }
    }

    /// Bytes of all transfers.
    pub fn transferred(&self) -> Bytes {
        // `sum` of an empty iterator is -0.
        self.transfers.iter().fold(Bytes::ZERO, |all, transfer| all + transfer.bytes)
    }
}

/// Returns the usage of an idle device.
fn idle(name: &str) -> DeviceUse {
    DeviceUse {
        name: name.to_owned(),
        tasks: 0,
        share: 0.0,
        busy: Micros::ZERO,
        idle: Micros::ZERO,
        memory: Memory::default(),
        stages: Vec::new(),
        bottleneck: false,
        rows: 1,
    }
}

/// Accumulates the tasks and busy time of each device.
fn count(problem: &Problem, launches: &[Launch], devices: &mut [DeviceUse]) {
    let ports = ports(problem);
    let mut done = vec![0_usize; devices.len()];
    let mut is_counted = FxHashSet::default();
    for launch in launches {
        let device = &mut devices[launch.device];
        device.busy += launch.end - launch.start;
        if !ports[launch.task] {
            device.tasks += usize::from(is_counted.insert((launch.task, launch.device)));
            done[launch.device] += launch.inputs.len();
        }
    }
    let all: usize = done.iter().sum();
    for (device, done) in devices.iter_mut().zip(done) {
        device.share = if all > 0 { done as f64 / all as f64 } else { 0.0 };
    }
}

/// Returns for each node whether it is a model input or output: it takes no time and has no predecessor or no successor.
pub(crate) fn ports(problem: &Problem) -> Vec<bool> {
    let mut makes = vec![false; problem.nodes.len()];
    let mut reads = vec![false; problem.nodes.len()];
    for tensor in problem.all_tensors() {
        makes[tensor.from] |= !tensor.to.is_empty();
        tensor.to.iter().for_each(|to| reads[*to] = true);
    }
    let free = |node: &Node| node.time.values().flatten().flatten().all(|time| *time == Micros::ZERO);
    problem.nodes.iter().map(|node| free(node) && !(makes[node.id] && reads[node.id])).collect()
}

/// Returns the time of a transfer between devices; `None` without a link.
fn moving(problem: &Problem, from: usize, to: usize, bytes: Bytes) -> Option<Micros> {
    let latency = problem.link_latency.as_ref().and_then(|latency| latency[from][to]).unwrap_or_default();
    match problem.bandwidth[from][to] {
        None => Some(latency),
        Some(BytesPerMicro::ZERO) => None,
        Some(bandwidth) => Some(latency + bytes / bandwidth),
    }
}

fn no_link(problem: &Problem, task: usize, from: usize, to: usize) -> Error {
    let (from, to) = (problem.device_label(from), problem.device_label(to));
    wrong(problem.node_label(task), format!("its value is read on {to}, but no link leads there from {from}"))
}

/// Error for a plan that does not match the problem.
fn wrong(place: impl Into<String>, message: impl Into<String>) -> Error {
    Error::Plan(vec![Finding::new(place, message)])
}
