//! Dense form of a checked problem, which solvers work on.

mod launches;
mod memory;

use crate::model::error::Error;
use crate::model::plan::{LaunchRule, Objective};
use crate::model::problem::{Domains, MemoryModel, Problem};
use crate::model::units::{Bytes, BytesPerMicro, Micros};

pub(crate) use memory::{Event, peak};

/// Value that one task computes and others read; it is transferred at most once to each device.
#[derive(Clone, Debug, PartialEq)]
pub struct Tensor {
    /// Task that computes it.
    pub producer: usize,
    /// Size for one input.
    pub bytes: Bytes,
    /// Tasks that read it, each once.
    pub consumers: Vec<usize>,
}

/// Edge of the task graph as seen from one end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arc {
    /// Task at the other end.
    pub task: usize,
    /// Index of the tensor on the edge.
    pub tensor: usize,
}

/// Checked problem as dense arrays.
#[derive(Clone, Debug)]
pub struct Instance {
    tasks: usize,
    devices: usize,
    inputs: u32,
    launches: LaunchRule,
    /// All batch sizes of all devices, ascending.
    sizes: Vec<u32>,
    /// Batch sizes of each device, ascending.
    batch_sizes: Vec<Vec<u32>>,
    /// By size, task and device; infinite where a task cannot run for any reason.
    times_us: Vec<Micros>,
    /// Allowed devices of each task, ascending, after pins, support, co-location and missing links.
    allowed: Vec<Vec<usize>>,
    tensors: Vec<Tensor>,
    predecessors: Vec<Vec<Arc>>,
    successors: Vec<Vec<Arc>>,
    order: Vec<usize>,
    /// By pair of devices; zero without a link, infinite if not given.
    bandwidth: Vec<BytesPerMicro>,
    link_latency_us: Vec<Micros>,
    groups: Vec<Vec<usize>>,
    group_of: Vec<usize>,
    memory_model: MemoryModel,
    capacity: Vec<Bytes>,
    weight: Vec<Bytes>,
    input: Vec<Bytes>,
    output: Vec<Bytes>,
    scratch: Vec<Bytes>,
    device_names: Vec<String>,
    machines: Vec<Vec<usize>>,
}

impl Instance {
    /// Checks the problem and builds its dense form; fails if the objective has no plan.
    ///
    /// Objective latency has one input in a batch of one, whatever the problem queues; batch has all queued inputs.
    /// A queue has at most one launch of each task on a device.
    pub fn new(problem: &Problem, objective: Objective) -> Result<Self, Error> {
        Self::under(problem, objective, LaunchRule::One)
    }

    /// Builds the dense form under a rule for launches; bounds depend on it. One input has one launch anyway.
    pub fn under(problem: &Problem, objective: Objective, launches: LaunchRule) -> Result<Self, Error> {
        if objective == Objective::Pipeline {
            return Err(Error::Unsupported(
                "objective pipeline has no schedule: there is no instance of it".to_owned(),
            ));
        }
        problem.check_form()?;
        problem.check_under(objective, launches)?;
        let domains = Domains::new(problem, objective);
        let order = problem.topological_order().map_err(|finding| Error::Problem(vec![finding]))?;
        Ok(Self::build(problem, objective, launches, &domains, order))
    }

    fn build(
        problem: &Problem,
        objective: Objective,
        launches: LaunchRule,
        domains: &Domains,
        order: Vec<usize>,
    ) -> Self {
        let (tasks, devices) = (problem.nodes.len(), problem.devices.len());
        let inputs = if objective == Objective::Batch { problem.inputs } else { 1 };
        let batch_sizes = batch_sizes(problem, objective);
        let mut sizes: Vec<u32> = batch_sizes.iter().flatten().copied().collect();
        sizes.sort_unstable();
        sizes.dedup();

        let mut times_us = vec![Micros::INFINITY; sizes.len() * tasks * devices];
        for (index, size) in sizes.iter().enumerate() {
            for (task, node) in problem.nodes.iter().enumerate() {
                for &device in &domains.allowed[task] {
                    let time = node.time.get(size).and_then(|times| times[device]);
                    if let (Some(time), true) = (time, batch_sizes[device].contains(size)) {
                        times_us[(index * tasks + task) * devices + device] = time;
                    }
                }
            }
        }

        let tensors: Vec<Tensor> = problem
            .all_tensors()
            .into_iter()
            .map(|tensor| Tensor { producer: tensor.from, bytes: tensor.bytes, consumers: tensor.to })
            .collect();
        let mut predecessors = vec![Vec::new(); tasks];
        let mut successors = vec![Vec::new(); tasks];
        for (index, tensor) in tensors.iter().enumerate() {
            for &consumer in &tensor.consumers {
                predecessors[consumer].push(Arc { task: tensor.producer, tensor: index });
                successors[tensor.producer].push(Arc { task: consumer, tensor: index });
            }
        }

        let pairs = || (0..devices * devices).map(|pair| (pair / devices, pair % devices));
        let bandwidth =
            pairs().map(|(from, to)| problem.bandwidth[from][to].unwrap_or(BytesPerMicro::INFINITY)).collect();
        let link_latency_us = pairs().map(|(from, to)| link_latency_us(problem, from, to)).collect();
        let groups = domains.groups.clone();
        let mut group_of = vec![0; tasks];
        for (index, group) in groups.iter().enumerate() {
            for &task in group {
                group_of[task] = index;
            }
        }
        let each = |figure: fn(&crate::model::problem::Node) -> Bytes| problem.nodes.iter().map(figure).collect();
        Self {
            tasks,
            devices,
            inputs,
            launches: if inputs == 1 { LaunchRule::One } else { launches },
            sizes,
            batch_sizes,
            times_us,
            allowed: domains.allowed.clone(),
            tensors,
            predecessors,
            successors,
            order,
            bandwidth,
            link_latency_us,
            groups,
            group_of,
            memory_model: problem.memory_model,
            capacity: problem.devices.iter().map(|device| device.memory.unwrap_or(Bytes::INFINITY)).collect(),
            weight: each(|node| node.weight),
            input: each(|node| node.input),
            output: problem.output_bytes(),
            scratch: each(|node| node.scratch),
            device_names: problem.devices.iter().map(|device| device.name.clone()).collect(),
            machines: problem.machines.clone().unwrap_or_default(),
        }
    }

    /// Returns the number of tasks; they are numbered from zero.
    pub fn tasks(&self) -> usize {
        self.tasks
    }

    /// Returns the number of devices; they are numbered from zero.
    pub fn devices(&self) -> usize {
        self.devices
    }

    /// Returns the number of inputs: one for latency.
    pub fn inputs(&self) -> u32 {
        self.inputs
    }

    /// Returns the number of launches of a task that each device may run.
    pub fn launches(&self) -> LaunchRule {
        self.launches
    }

    /// Returns the time of one input, if the device may run the task: see [`Instance::allowed`].
    pub fn time(&self, task: usize, device: usize) -> Option<Micros> {
        self.time_at(task, device, 1)
    }

    /// Returns the time of a batch, if the device may run the task and supports batches of that size.
    pub fn time_at(&self, task: usize, device: usize, size: u32) -> Option<Micros> {
        let index = self.sizes.binary_search(&size).ok()?;
        Some(self.times_us[(index * self.tasks + task) * self.devices + device]).filter(|time| time.is_finite())
    }

    /// Returns the batch sizes of a device, ascending.
    pub fn batch_sizes(&self, device: usize) -> &[u32] {
        &self.batch_sizes[device]
    }

    /// Returns the devices that may run a task: supported, as pinned, allowed for its co-location group, and linked to
    /// devices of its neighbors. Never empty. Arc-consistent only: each device is possible for each neighbor alone, not
    /// for all together.
    pub fn allowed(&self, task: usize) -> &[usize] {
        &self.allowed[task]
    }

    /// Returns the incoming edges of a task.
    pub fn predecessors(&self, task: usize) -> &[Arc] {
        &self.predecessors[task]
    }

    /// Returns the outgoing edges of a task.
    pub fn successors(&self, task: usize) -> &[Arc] {
        &self.successors[task]
    }

    /// Returns the tensors. In problems with edges, tensor `i` is the result of task `i`.
    pub fn tensors(&self) -> &[Tensor] {
        &self.tensors
    }

    /// Returns the duration of a transfer of one input's tensor: zero on the same device, infinite without a link.
    pub fn transfer(&self, tensor: usize, from: usize, to: usize) -> Micros {
        self.transfer_of(tensor, from, to, 1)
    }

    /// Returns the duration of one transfer of the tensors of several inputs.
    pub fn transfer_of(&self, tensor: usize, from: usize, to: usize, count: u32) -> Micros {
        if from == to {
            return Micros::ZERO;
        }
        let pair = from * self.devices + to;
        let bandwidth = self.bandwidth[pair];
        if bandwidth == BytesPerMicro::ZERO {
            return Micros::INFINITY;
        }
        f64::from(count) * self.tensors[tensor].bytes / bandwidth + self.link_latency_us[pair]
    }

    /// Returns the bandwidth of a link: zero without one, `None` if it is not limited.
    pub(crate) fn bandwidth(&self, from: usize, to: usize) -> Option<BytesPerMicro> {
        Some(self.bandwidth[from * self.devices + to]).filter(|bandwidth| *bandwidth != BytesPerMicro::INFINITY)
    }

    /// Returns the latency of a link.
    pub(crate) fn link_latency(&self, from: usize, to: usize) -> Micros {
        self.link_latency_us[from * self.devices + to]
    }

    /// Returns true if there is a link from one device to the other; always true for the same device.
    pub fn linked(&self, from: usize, to: usize) -> bool {
        from == to || self.bandwidth[from * self.devices + to] > BytesPerMicro::ZERO
    }

    /// Returns a topological order of the tasks; of several ready ones the lowest number first.
    pub fn order(&self) -> &[usize] {
        &self.order
    }

    /// Returns the co-location groups, each ascending; a task that is co-located with no other is a group of its own.
    pub fn groups(&self) -> &[Vec<usize>] {
        &self.groups
    }

    /// Returns the co-location group of a task.
    pub fn group_of(&self, task: usize) -> usize {
        self.group_of[task]
    }

    /// Returns the name of a device.
    pub fn device_name(&self, device: usize) -> &str {
        &self.device_names[device]
    }

    /// Returns the devices of each host of a cluster; empty if not given.
    pub fn machines(&self) -> &[Vec<usize>] {
        &self.machines
    }
}

/// Returns the batch sizes of each device, ascending: only one for latency.
fn batch_sizes(problem: &Problem, objective: Objective) -> Vec<Vec<u32>> {
    let most = if objective == Objective::Batch { problem.inputs } else { 1 };
    let sizes = |sizes: &Vec<u32>| {
        let mut sizes: Vec<u32> = sizes.iter().copied().filter(|size| *size <= most).collect();
        sizes.sort_unstable();
        sizes
    };
    problem.devices.iter().map(|device| sizes(&device.batch_sizes)).collect()
}

fn link_latency_us(problem: &Problem, from: usize, to: usize) -> Micros {
    problem.link_latency.as_ref().and_then(|latency| latency[from][to]).unwrap_or_default()
}
