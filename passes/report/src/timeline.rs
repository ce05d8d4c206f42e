//! When each device runs what, and when each tensor moves: a plan laid out in time, with what follows from it.
//!
//! Everything is recomputed from the problem and the plan's decisions; whether a plan holds is the verifier's to say.

mod launches;
mod lives;
mod memory;
mod rows;
mod stages;
mod steady;
mod transfers;

use divi_planner::plan::{Plan, Schedule};
use divi_planner::problem::{Node, Problem};
use divi_planner::units::{Bytes, Micros};
use divi_planner::{Error, Finding};

/// A plan in time. Lanes are the devices, one after the other, and behind them the links.
#[derive(Clone, Debug, PartialEq)]
pub struct Timeline {
    pub devices: Vec<DeviceUse>,
    /// Those that carry something.
    pub links: Vec<LinkUse>,
    /// By start, device and task.
    pub launches: Vec<Launch>,
    /// By start, sender, receiver and tensor.
    pub transfers: Vec<Transfer>,
    /// What stages of a pipeline spend on transfers, by device and start. No other plan has these.
    pub handovers: Vec<Handover>,
    /// Where the last of all these ends.
    pub end: Micros,
    /// What a stage of a pipeline takes; none for other plans.
    pub cost: Option<StageCost>,
}

/// What a stage takes in the steady state of a pipeline.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StageCost {
    /// What comes in, its work, what goes out, one after the other.
    Serial,
    /// The longer of work and transfers.
    Overlap,
}

impl StageCost {
    pub fn name(self) -> &'static str {
        match self {
            Self::Serial => "serial",
            Self::Overlap => "overlap",
        }
    }
}

/// A device, or one of a pipeline's equal devices.
#[derive(Clone, Debug, PartialEq)]
pub struct DeviceUse {
    pub name: String,
    /// Those that it runs, but for a model's inputs and outputs.
    pub tasks: usize,
    /// Its part of all that is to be done, each task counted once for each input.
    pub share: f64,
    /// How long it runs tasks, and in a serial pipeline moves tensors.
    pub busy: Micros,
    /// What is left of the whole time.
    pub idle: Micros,
    pub memory: Memory,
    /// Which stages of a pipeline it has, in the pipeline's order.
    pub stages: Vec<usize>,
    /// Nothing in the pipeline takes longer.
    pub bottleneck: bool,
    /// How many things it does at the same time, as drawn.
    pub rows: usize,
}

/// What a device holds.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Memory {
    pub weights: Bytes,
    /// Weights and the most that is alive at the same time; in a pipeline, all that its tasks touch.
    pub peak: Bytes,
    /// What the problem's memory model holds against the capacity.
    pub counted: Bytes,
    /// None is unlimited.
    pub capacity: Option<Bytes>,
    /// What is held from when on, weights included; empty for pipelines.
    pub profile: Vec<(Micros, Bytes)>,
}

/// A bus, or a pair of devices where buses have no names.
#[derive(Clone, Debug, PartialEq)]
pub struct LinkUse {
    pub name: String,
    pub transfers: usize,
    pub bytes: Bytes,
    /// How long at least one transfer is under way.
    pub busy: Micros,
    /// How many transfers are under way at the same time.
    pub rows: usize,
    /// Nothing in the pipeline takes longer.
    pub bottleneck: bool,
}

/// A task on a device, for some inputs.
#[derive(Clone, Debug, PartialEq)]
pub struct Launch {
    pub task: usize,
    pub device: usize,
    /// Which of the queued inputs, ascending.
    pub inputs: Vec<u32>,
    pub start: Micros,
    pub end: Micros,
}

/// A tensor on its way to another device, for as many inputs as are read there.
#[derive(Clone, Debug, PartialEq)]
pub struct Transfer {
    /// Counts the problem's tensors; none where a task's weights move.
    pub tensor: Option<usize>,
    /// The task that computes it, or whose weights move.
    pub task: usize,
    pub from: usize,
    pub to: usize,
    /// Counts the links; none between a pipeline's equal devices.
    pub link: Option<usize>,
    /// Which of the link's rows is free for it.
    pub row: usize,
    pub inputs: usize,
    /// Of all those inputs.
    pub bytes: Bytes,
    pub start: Micros,
    pub end: Micros,
}

/// Time that a stage spends on what it does not compute.
#[derive(Clone, Debug, PartialEq)]
pub struct Handover {
    pub way: Way,
    pub task: usize,
    pub device: usize,
    pub row: usize,
    pub bytes: Bytes,
    pub start: Micros,
    pub end: Micros,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    In,
    Out,
    /// What does not fit into a stage's memory.
    Spill,
}

impl Timeline {
    /// The plan in time; or what keeps it from being for this problem.
    pub fn of(problem: &Problem, plan: &Plan) -> Result<Self, Error> {
        // A problem without tasks is not one to solve, but it has an empty timeline.
        if !problem.nodes.is_empty() {
            problem.check_form()?;
        }
        for (key, time) in [("value", plan.value), ("bound", plan.bound), ("gap", plan.gap)] {
            if !time.is_finite() {
                return Err(wrong(key, format!("{time} is not a finite number")));
            }
        }
        match &plan.schedule {
            Schedule::Latency { .. } | Schedule::Batch { .. } => {
                let launches = launches::of(problem, plan)?;
                let mut transfers = transfers::of(problem, plan, &launches)?;
                let ends = launches.iter().map(|launch| launch.end);
                let end = ends.chain(transfers.iter().map(|transfer| transfer.end)).fold(0.0, f64::max);
                let links = rows::links(problem, &mut transfers);
                let memory = memory::of(problem, &launches, &transfers);
                let mut devices: Vec<DeviceUse> = problem.devices.iter().map(|device| idle(&device.name)).collect();
                for (device, memory) in devices.iter_mut().zip(memory) {
                    device.memory = memory;
                }
                count(problem, &launches, &mut devices);
                for device in &mut devices {
                    device.idle = (end - device.busy).max(0.0);
                }
                Ok(Self { devices, links, launches, transfers, handovers: Vec::new(), end, cost: None })
            }
            Schedule::Pipeline { .. } | Schedule::Edge { .. } => stages::timeline(problem, plan),
        }
    }

    /// Bytes of all transfers.
    pub fn transferred(&self) -> Bytes {
        // A sum of nothing would be -0.
        self.transfers.iter().fold(0.0, |all, transfer| all + transfer.bytes)
    }
}

/// A device that does nothing yet.
fn idle(name: &str) -> DeviceUse {
    DeviceUse {
        name: name.to_owned(),
        tasks: 0,
        share: 0.0,
        busy: 0.0,
        idle: 0.0,
        memory: Memory::default(),
        stages: Vec::new(),
        bottleneck: false,
        rows: 1,
    }
}

/// Tasks and time of each device, from its launches.
fn count(problem: &Problem, launches: &[Launch], devices: &mut [DeviceUse]) {
    let ports = ports(problem);
    let mut done = vec![0_usize; devices.len()];
    for launch in launches {
        let device = &mut devices[launch.device];
        device.busy += launch.end - launch.start;
        if !ports[launch.task] {
            device.tasks += 1;
            done[launch.device] += launch.inputs.len();
        }
    }
    let all: usize = done.iter().sum();
    for (device, done) in devices.iter_mut().zip(done) {
        device.share = if all > 0 { done as f64 / all as f64 } else { 0.0 };
    }
}

/// Which nodes only bring inputs or take outputs: they take no time, and nothing is before them or nothing behind.
pub(crate) fn ports(problem: &Problem) -> Vec<bool> {
    let mut makes = vec![false; problem.nodes.len()];
    let mut reads = vec![false; problem.nodes.len()];
    for tensor in problem.all_tensors() {
        makes[tensor.from] |= !tensor.to.is_empty();
        tensor.to.iter().for_each(|to| reads[*to] = true);
    }
    let free = |node: &Node| node.time.values().flatten().flatten().all(|time| *time == 0.0);
    problem.nodes.iter().map(|node| free(node) && !(makes[node.id] && reads[node.id])).collect()
}

/// How long bytes take from device to device; none without a link.
fn moving(problem: &Problem, from: usize, to: usize, bytes: Bytes) -> Option<Micros> {
    let latency = problem.link_latency.as_ref().and_then(|latency| latency[from][to]).unwrap_or(0.0);
    match problem.bandwidth[from][to] {
        None => Some(latency),
        Some(0.0) => None,
        Some(bandwidth) => Some(latency + bytes / bandwidth),
    }
}

fn no_link(problem: &Problem, task: usize, from: usize, to: usize) -> Error {
    let (from, to) = (problem.device_label(from), problem.device_label(to));
    wrong(problem.node_label(task), format!("its value is read on {to}, but no link leads there from {from}"))
}

/// The plan is not for this problem.
fn wrong(place: impl Into<String>, message: impl Into<String>) -> Error {
    Error::Plan(vec![Finding::new(place, message)])
}
