//! Launches of a plan and their data dependences: one launch per task for one input, one per batch for a queue and for a
//! request of a pipeline of batches.

use std::collections::BTreeMap;

use crate::turns::{Request, TurnStages};
use divi_planner::error::{Error, Finding};
use divi_planner::instance::Instance;
use divi_planner::plan::{Batch, LaunchRule, Objective, Plan, Schedule, Transfer};
use divi_planner::problem::{Node, Problem};
use divi_planner::units::{Bytes, Micros};

/// A task on its planned device for a batch of inputs. [`crate::line::Line`] has the device after merging.
pub(crate) struct Launch {
    pub(crate) node: usize,
    pub(crate) device: usize,
    /// Sorted.
    pub(crate) inputs: Vec<u32>,
    /// Planned start.
    pub(crate) planned: Micros,
}

/// Data dependence on another launch, for the inputs common to both.
#[derive(Clone, Copy)]
pub(crate) struct Handed {
    pub(crate) launch: usize,
    pub(crate) tensor: usize,
    pub(crate) count: u32,
}

/// Dependences of all launches in CSR form; schedules are timed very often.
pub(crate) struct Handovers {
    first: Vec<usize>,
    all: Vec<Handed>,
}

impl Handovers {
    fn new(of_launch: Vec<Vec<Handed>>) -> Self {
        let ends = of_launch.iter().scan(0, |end, own| {
            *end += own.len();
            Some(*end)
        });
        Self { first: std::iter::once(0).chain(ends).collect(), all: of_launch.into_iter().flatten().collect() }
    }
}

impl std::ops::Index<usize> for Handovers {
    type Output = [Handed];

    fn index(&self, launch: usize) -> &[Handed] {
        &self.all[self.first[launch]..self.first[launch + 1]]
    }
}

/// Role of a launch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    Task,
    /// Provides a model input.
    Input,
    /// Consumes a model output.
    Output,
}

pub(crate) struct Launches {
    pub(crate) instance: Instance,
    pub(crate) all: Vec<Launch>,
    pub(crate) role: Vec<Role>,
    pub(crate) reads: Handovers,
    pub(crate) read_by: Handovers,
    /// By launch and device; infinite if the device does not support the task.
    times: Vec<Micros>,
    /// Launches of each node.
    pub(crate) of_node: Vec<Vec<usize>>,
    /// Transfer times of the plan by tensor, producing launch and destination. Empty if tensors are transferred as soon as
    /// available.
    pub(crate) listed: BTreeMap<(usize, usize, usize), (Micros, Micros)>,
}

/// Returns the error of a pipeline whose blocks have no devices.
pub(crate) fn no_devices() -> Error {
    let message =
        "a pipeline on equal devices (mtpp) does not assign its blocks to devices; it has no stages to launch";
    Error::Unsupported(message.to_owned())
}

impl Launches {
    /// Collects the launches of a request of a pipeline of batches.
    pub(crate) fn of_request(problem: &Problem, stages: &TurnStages, ports: Option<&[usize]>) -> Result<Self, Error> {
        let Request { problem, batches } = Request::of(problem, stages)?;
        let instance = Instance::under(&problem, Objective::Batch, LaunchRule::Many)?;
        let all = check(&problem, &instance, batches, problem.inputs)?;
        Ok(Self::link(&problem, instance, all, ports))
    }

    /// Collects the launches of a plan that is not a pipeline of batches. Its starts may be out of date; of all other
    /// constraints, only those are checked without which the launches cannot run at all.
    pub(crate) fn of(problem: &Problem, plan: &Plan, ports: Option<&[usize]>) -> Result<Self, Error> {
        let (batches, queued) = match &plan.schedule {
            Schedule::Latency { device, start, .. } => {
                let launch = |(node, (device, start)): (usize, (&usize, &Micros))| one(node, *device, *start);
                (device.iter().zip(start).enumerate().map(launch).collect(), 1)
            }
            Schedule::Batch { batches, .. } => (batches.clone(), plan.inputs.unwrap_or(problem.inputs)),
            Schedule::Pipeline { block, stages, .. } => {
                let on = stages.as_ref().and_then(|stages| stages.block_device.as_ref()).ok_or_else(no_devices)?;
                let launch =
                    |(node, of): (usize, &usize)| one(node, on.get(*of).copied().unwrap_or(usize::MAX), Micros::ZERO);
                (block.iter().enumerate().map(launch).collect(), 1)
            }
            Schedule::BatchedPipeline { .. } => {
                return Err(Error::Bug("the launches of a pipeline of batches are those of a request".to_owned()));
            }
            Schedule::Edge { .. } => {
                return Err(Error::Unsupported("plans of edge networks have no stages".to_owned()));
            }
        };
        let objective = if plan.objective == Objective::Batch { Objective::Batch } else { Objective::Latency };
        let instance = match plan.inputs {
            Some(inputs) if objective == Objective::Batch => {
                let mut queued = problem.clone();
                queued.inputs = inputs;
                Instance::under(&queued, objective, plan.launches)?
            }
            _ => Instance::under(problem, objective, plan.launches)?,
        };
        let all = check(problem, &instance, batches, queued)?;
        let mut launches = Self::link(problem, instance, all, ports);
        plan.transfers.iter().for_each(|transfer| launches.list(transfer));
        launches.read_directly(problem, plan);
        Ok(launches)
    }

    /// Adds the times of a listed transfer, for the launch that it comes from. Without inputs it is that of all launches
    /// on its source: a valid plan has only one.
    fn list(&mut self, transfer: &Transfer) {
        let Some(tensor) = self.instance.tensors().get(transfer.tensor) else { return };
        let is_source = |launch: &&usize| {
            let Launch { device, inputs, .. } = &self.all[**launch];
            let has_inputs = |all: &Vec<u32>| all.iter().any(|input| inputs.binary_search(input).is_ok());
            *device == transfer.from && transfer.inputs.as_ref().is_none_or(has_inputs)
        };
        let sources = self.of_node[tensor.producer].iter().filter(is_source);
        let time = |launch: &usize| ((transfer.tensor, *launch, transfer.to), (transfer.start, transfer.end));
        self.listed.extend(sources.map(time));
    }

    fn link(problem: &Problem, instance: Instance, all: Vec<Launch>, ports: Option<&[usize]>) -> Self {
        let queued = instance.inputs() as usize;
        let mut launch_of = vec![0; instance.tasks() * queued];
        let mut of_node = vec![Vec::new(); instance.tasks()];
        for (index, launch) in all.iter().enumerate() {
            of_node[launch.node].push(index);
            launch.inputs.iter().for_each(|input| launch_of[launch.node * queued + *input as usize] = index);
        }
        let mut reads: Vec<Vec<Handed>> = vec![Vec::new(); all.len()];
        let mut read_by: Vec<Vec<Handed>> = vec![Vec::new(); all.len()];
        for (index, launch) in all.iter().enumerate() {
            for arc in instance.predecessors(launch.node) {
                let mut from: Vec<usize> =
                    launch.inputs.iter().map(|input| launch_of[arc.task * queued + *input as usize]).collect();
                from.sort_unstable();
                for same in from.chunk_by(|a, b| a == b) {
                    let count = same.len() as u32;
                    reads[index].push(Handed { launch: same[0], tensor: arc.tensor, count });
                    read_by[same[0]].push(Handed { launch: index, tensor: arc.tensor, count });
                }
            }
        }
        let is_port = |node: usize| match ports {
            Some(ports) => ports.contains(&node),
            None => looks_like_port(&problem.nodes[node], &instance),
        };
        let role_of_node: Vec<Role> = (0..instance.tasks())
            .map(|node| match (is_port(node), instance.predecessors(node).is_empty()) {
                (false, _) => Role::Task,
                (true, true) => Role::Input,
                (true, false) => Role::Output,
            })
            .collect();
        let role = all.iter().map(|launch| role_of_node[launch.node]).collect();
        let times = all.iter().flat_map(|launch| {
            let time = |device| instance.time_at(launch.node, device, launch.inputs.len() as u32);
            (0..instance.devices()).map(move |device| time(device).unwrap_or(Micros::INFINITY)).collect::<Vec<_>>()
        });
        let (times, reads, read_by) = (times.collect(), Handovers::new(reads), Handovers::new(read_by));
        Self { instance, all, role, reads, read_by, times, of_node, listed: BTreeMap::new() }
    }

    /// Returns the start and end of the transfer of some inputs of a launch's tensor, which is on `from`; without a listed
    /// time, it starts at `done`.
    pub(crate) fn moved(&self, read: Handed, from: usize, to: usize, done: Micros) -> (Micros, Micros) {
        let Handed { launch, tensor, count } = read;
        let at_once = || (done, done + self.instance.transfer_of(tensor, from, to, count));
        self.listed.get(&(tensor, launch, to)).copied().unwrap_or_else(at_once)
    }

    /// Replaces the time of launches that read their parameters from host memory instead of a copy.
    fn read_directly(&mut self, problem: &Problem, plan: &Plan) {
        let Some(cold) = &problem.cold else { return };
        for (index, launch) in self.all.iter().enumerate() {
            let is_copied = plan.copies.iter().any(|copy| (copy.node, copy.to) == (launch.node, launch.device));
            let has_none = problem.nodes[launch.node].weight == Bytes::ZERO;
            if !has_none && !is_copied && !cold.is_there(launch.node, launch.device) {
                let time = cold.direct_time(launch.node, launch.device).unwrap_or(Micros::INFINITY);
                self.times[index * self.instance.devices() + launch.device] = time;
            }
        }
    }

    /// Returns the time of a launch on a device; infinite if the device does not support it.
    pub(crate) fn time(&self, launch: usize, device: usize) -> Micros {
        self.times[launch * self.instance.devices() + device]
    }

    /// Returns the common inputs of two launches.
    pub(crate) fn shared_inputs(&self, one: usize, other: usize) -> Vec<u32> {
        let others = &self.all[other].inputs;
        self.all[one].inputs.iter().copied().filter(|input| others.binary_search(input).is_ok()).collect()
    }

    /// Returns a topological order of the launches by planned start, then planned end. For a valid schedule this is the order
    /// of its starts; of launches with equal starts, those that take no time come first.
    pub(crate) fn by_start(&self) -> Vec<usize> {
        let key = |launch: usize| {
            let Launch { device, planned, .. } = &self.all[launch];
            Key { start: *planned, end: *planned + self.time(launch, *device), launch }
        };
        let mut waiting_for: Vec<usize> = (0..self.all.len()).map(|launch| self.reads[launch].len()).collect();
        let ready = |launch: &usize| waiting_for[*launch] == 0;
        let mut open: std::collections::BTreeSet<Key> = (0..self.all.len()).filter(ready).map(key).collect();
        let mut order = Vec::with_capacity(self.all.len());
        while let Some(Key { launch, .. }) = open.pop_first() {
            order.push(launch);
            for handed in &self.read_by[launch] {
                waiting_for[handed.launch] -= 1;
                if waiting_for[handed.launch] == 0 {
                    open.insert(key(handed.launch));
                }
            }
        }
        order
    }

    /// Replaces the starts of a schedule by the positions in [`Self::by_start`].
    pub(crate) fn numbered(&self, schedule: &Schedule) -> Schedule {
        let mut schedule = schedule.clone();
        for (number, launch) in self.by_start().into_iter().enumerate() {
            match &mut schedule {
                Schedule::Latency { start, .. } => start[self.all[launch].node] = Micros(number as f64),
                // Batches and launches have the same numbers.
                Schedule::Batch { batches, .. } => batches[launch].start = Micros(number as f64),
                Schedule::Pipeline { .. } | Schedule::BatchedPipeline { .. } | Schedule::Edge { .. } => {}
            }
        }
        schedule
    }
}

/// Sort key: start, then end, then number.
struct Key {
    start: Micros,
    end: Micros,
    launch: usize,
}

impl Ord for Key {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        let by_end = || self.end.total_cmp(&other.end);
        self.start.total_cmp(&other.start).then_with(by_end).then_with(|| self.launch.cmp(&other.launch))
    }
}

impl PartialOrd for Key {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Key {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Key {}

fn one(node: usize, device: usize, start: Micros) -> Batch {
    Batch { node, device, inputs: vec![0], start }
}

/// Checks that each task runs each input exactly once, on a device that supports it.
fn check(problem: &Problem, instance: &Instance, batches: Vec<Batch>, queued: u32) -> Result<Vec<Launch>, Error> {
    let mut findings = Vec::new();
    let mut runs = vec![0_u32; instance.tasks() * queued as usize];
    let mut all = Vec::with_capacity(batches.len());
    for Batch { node, device, mut inputs, start } in batches {
        inputs.sort_unstable();
        let known = node < instance.tasks() && inputs.iter().all(|input| *input < queued);
        let size = u32::try_from(inputs.len()).unwrap_or(u32::MAX);
        if !known || device >= instance.devices() || instance.time_at(node, device, size).is_none() {
            let message = format!("cannot run on {} in a batch of {size}", problem.device_label(device));
            findings.push(Finding::new(problem.node_label(node), message));
            continue;
        }
        inputs.iter().for_each(|input| runs[node * queued as usize + *input as usize] += 1);
        all.push(Launch { node, device, inputs, planned: start });
    }
    if findings.is_empty()
        && let Some(place) = runs.iter().position(|count| *count != 1)
    {
        let (node, input) = (place / queued as usize, place % queued as usize);
        let message = format!("runs {} times for input {input}; expected once", runs[place]);
        findings.push(Finding::new(problem.node_label(node), message));
    }
    if findings.is_empty() { Ok(all) } else { Err(Error::Plan(findings)) }
}

/// Returns true if a node takes no time, is pinned, and has no predecessors or no successors.
fn looks_like_port(node: &Node, instance: &Instance) -> bool {
    let is_end = instance.predecessors(node.id).is_empty() || instance.successors(node.id).is_empty();
    node.pin.is_some() && is_end && node.time.values().flatten().flatten().all(|time| *time == Micros::ZERO)
}
