//! Pipelines on different devices: each stage runs on a device, with that device's times and links.
//!
//! A tensor moves once to each device that reads it. An incoming tensor costs the time of its transfer; an outgoing one
//! is charged once, with its longest transfer, as eq. (3) counts it once regardless of the number of readers; with
//! equal devices this is MTPP's cost. If compute and transfers overlap, the bottleneck is a device's work or a link's
//! transfers. Several inputs are in flight at the same time, so a device holds everything that its tasks touch
//! (DiviML's eq. 6), regardless of the problem's memory model.
//!
//! With contention, transfers on a bus add up, whether they are serialized or share bandwidth: no period is shorter
//! than the sum. Bounds that ignore buses remain valid, since contention only adds load.
//!
//! A device has one stage, unless devices are shared: then it runs all its stages for each input, and takes their sum.
//! Ports do not count as stages: they are the places of a model's inputs and outputs.

mod anneal;
mod batches;
mod bound;
mod loads;
mod orders;
mod pipe;
mod plan;
mod program;
mod proof;
mod scaling;
mod sequence;
mod slice;
mod start;

use super::merge::merge_nodes;
use super::model::{Model, Tensor as Moved};
use crate::model::error::{Error, Finding};
use crate::model::options::Options;
use crate::model::options::PipelineCost;
use crate::model::plan::{Bound, Objective};
use crate::model::problem::{Domains, Problem};
use crate::model::units::{Bytes, Micros, MicrosPerByte};
use crate::solvers::Solution;

use loads::Loads;
use pipe::Pipe;
use plan::Plans;
pub(super) use plan::{annealed, exact, slicegraph};
use scaling::Scaling;

/// Tolerance for sums of bytes in a different order.
const ROUNDED: f64 = 1.0 + 1e-12;

/// Portfolio for devices: batches and replicas if they are asked for, or if there are no times for one input.
pub(crate) fn auto(problem: &Problem, options: &Options) -> Result<Solution, Error> {
    if batches::is_asked(problem, options) { batches::auto(problem, options) } else { plan::auto(problem, options) }
}

/// Returns every bound by name, weakest first.
pub(crate) fn all_bounds(problem: &Problem, options: &Options) -> Result<Vec<Bound>, Error> {
    if batches::is_asked(problem, options) {
        return batches::all_bounds(problem, options);
    }
    plan::all_bounds(problem, options)
}

/// Returns true if some pipeline is found.
pub(super) fn has_plan(problem: &Problem, options: &Options) -> bool {
    if batches::is_asked(problem, options) {
        return batches::has_plan(problem, options);
    }
    plan::has_plan(problem, options)
}

/// Tensor between tasks.
struct Tensor {
    producer: u32,
    readers: Vec<u32>,
    bytes: Bytes,
}

/// Tasks and devices, numbered. Working tasks come first, in topological order, then ports.
struct Fleet {
    devices: usize,
    /// Maximum number of stages.
    k: usize,
    /// True if a device may have several stages.
    shared: bool,
    cost: PipelineCost,
    nodes: Vec<Vec<usize>>,
    /// Number of tasks that are not ports.
    working: usize,
    /// By task and device; infinite if it cannot run there.
    time: Vec<Micros>,
    /// Memory that each task needs on each device, and capacity of each device.
    held: Vec<Bytes>,
    capacity: Vec<Bytes>,
    tensors: Vec<Tensor>,
    /// Tensors that each task produces, and reads.
    makes: Vec<Vec<u32>>,
    reads: Vec<Vec<u32>>,
    /// Tasks that are co-located with a task, but not necessarily in its stage.
    colocated: Vec<Vec<u32>>,
    /// Predecessors and successors, without ports.
    before: Vec<Vec<u32>>,
    after: Vec<Vec<u32>>,
    /// By pair of devices: microseconds per byte, infinite without a link; and the latency.
    slowness: Vec<MicrosPerByte>,
    latency: Vec<Micros>,
    /// By pair of devices: the bus whose transfers add up; `None` without contention.
    bus: Vec<Option<usize>>,
    buses: usize,
    /// Batch sizes of the devices, and shares of transfers; all one for devices that take one input at a time.
    scaling: Scaling,
}

impl Fleet {
    /// Builds the model of a problem whose form has been checked. Tasks that must share a stage are merged, including
    /// those on paths between them.
    fn new(problem: &Problem, options: &Options) -> Result<Self, Error> {
        Self::scaled(problem, options, Scaling::none(problem.devices.len()), &ports(problem))
    }

    /// Builds the model of a problem whose devices stand for several, or for batches: its times and latencies are those of
    /// one input, its memory is that of a batch.
    fn scaled(problem: &Problem, options: &Options, scaling: Scaling, ports: &[bool]) -> Result<Self, Error> {
        let devices = problem.devices.len();
        let domains = Domains::new(problem, Objective::Pipeline);
        if let Some(finding) = domains.contradiction() {
            return Err(Error::Infeasible(vec![finding]));
        }
        let shared = options.shared_devices;
        let most = if shared { usize::MAX } else { devices };
        let mut nodes = merge_nodes(problem, &one_stage(problem, &domains, ports, shared))?;
        let (others, last): (Vec<_>, Vec<_>) = nodes.into_iter().partition(|nodes| !ports[nodes[0]]);
        let working = others.len();
        nodes = others.into_iter().chain(last).collect();
        let k = options.stages.map_or(devices, |k| k as usize).min(most).min(working.max(1));
        if k == 0 {
            return Err(Error::Unsupported("a pipeline has at least one stage, not 0".to_owned()));
        }
        let time_of = |node: usize, device: usize| {
            let time = problem.nodes[node].time.get(&1).and_then(|times| times[device]);
            time.filter(|_| domains.allowed[node].contains(&device)).unwrap_or(Micros::INFINITY)
        };
        let results = problem.output_bytes();
        let held_by = |node: usize, size: f64| {
            problem.nodes[node].weight + problem.nodes[node].input * size + results[node] * size
        };
        let (bus, buses) = problem.buses();
        let mut fleet = Self {
            devices,
            k,
            shared,
            cost: options.pipeline_cost.unwrap_or_default(),
            working,
            time: nodes
                .iter()
                .flat_map(|nodes| (0..devices).map(|device| nodes.iter().map(|node| time_of(*node, device)).sum()))
                .collect(),
            held: nodes
                .iter()
                .flat_map(|nodes| scaling.size.iter().map(|size| nodes.iter().map(|node| held_by(*node, *size)).sum()))
                .collect(),
            capacity: problem.devices.iter().map(|device| device.memory.unwrap_or(Bytes::INFINITY) * ROUNDED).collect(),
            tensors: Vec::new(),
            makes: vec![Vec::new(); nodes.len()],
            reads: vec![Vec::new(); nodes.len()],
            colocated: vec![Vec::new(); nodes.len()],
            before: vec![Vec::new(); working],
            after: vec![Vec::new(); working],
            slowness: pairs(devices, |from, to| {
                problem.bandwidth[from][to].map_or(MicrosPerByte::ZERO, |bandwidth| 1.0 / bandwidth)
            }),
            latency: pairs(devices, |from, to| {
                problem.link_latency.as_ref().and_then(|latency| latency[from][to]).unwrap_or_default()
            }),
            nodes,
            bus,
            buses,
            scaling,
        };
        fleet.check_times(problem)?;
        let mut task_of = vec![0_u32; problem.nodes.len()];
        for (task, nodes) in fleet.nodes.iter().enumerate() {
            nodes.iter().for_each(|node| task_of[*node] = task as u32);
        }
        fleet.add_tensors(problem, &task_of);
        fleet.add_colocated(&domains, &task_of);
        Ok(fleet)
    }

    fn check_times(&self, problem: &Problem) -> Result<(), Error> {
        let stuck = (0..self.tasks()).find(|task| self.times(*task).iter().all(|time| time.is_infinite()));
        let Some(task) = stuck else { return Ok(()) };
        let names: Vec<String> = self.nodes[task].iter().map(|node| problem.node_label(*node)).collect();
        let message = "must be one stage, as some of them share a device and the others are between these, but no device \
                       runs them all; --allow-shared-devices gives a device several stages";
        Err(Error::Infeasible(vec![Finding::new(names.join(", "), message)]))
    }

    /// Adds groups that are not merged into one task.
    fn add_colocated(&mut self, domains: &Domains, task_of: &[u32]) {
        for group in &domains.groups {
            let mut tasks: Vec<u32> = group.iter().map(|node| task_of[*node]).collect();
            tasks.sort_unstable();
            tasks.dedup();
            for &task in &tasks {
                self.colocated[task as usize].extend(tasks.iter().filter(|other| **other != task));
            }
        }
    }

    fn add_tensors(&mut self, problem: &Problem, task_of: &[u32]) {
        for tensor in problem.all_tensors() {
            let producer = task_of[tensor.from];
            let mut readers: Vec<u32> = tensor.to.iter().map(|to| task_of[*to]).collect();
            readers.retain(|reader| *reader != producer);
            readers.sort_unstable();
            readers.dedup();
            if readers.is_empty() {
                continue;
            }
            let index = self.tensors.len() as u32;
            self.makes[producer as usize].push(index);
            for &reader in &readers {
                self.reads[reader as usize].push(index);
                if !self.is_port(producer as usize) && !self.is_port(reader as usize) {
                    self.after[producer as usize].push(reader);
                    self.before[reader as usize].push(producer);
                }
            }
            self.tensors.push(Tensor { producer, readers, bytes: tensor.bytes });
        }
    }

    fn tasks(&self) -> usize {
        self.nodes.len()
    }

    fn is_port(&self, task: usize) -> bool {
        task >= self.working
    }

    /// Returns a task's time on each device.
    fn times(&self, task: usize) -> &[Micros] {
        &self.time[task * self.devices..(task + 1) * self.devices]
    }

    /// Returns the memory that a task needs on a device.
    fn held(&self, task: usize, device: usize) -> Bytes {
        self.held[task * self.devices + device]
    }

    /// Returns the duration of a transfer; infinite without a link.
    fn move_time(&self, bytes: Bytes, from: usize, to: usize) -> Micros {
        let pair = from * self.devices + to;
        // Even zero bytes cannot move without a link.
        if self.slowness[pair].is_infinite() {
            return Micros::INFINITY;
        }
        bytes * self.slowness[pair] + self.latency[pair]
    }

    /// Returns the time of a pipeline's slowest device or link.
    fn value(&self, pipe: &Pipe) -> Micros {
        Loads::new(self, pipe.devices()).value()
    }

    /// Returns the links from and to a device.
    fn ways(&self, device: usize) -> impl Iterator<Item = (usize, usize)> {
        let others = (0..self.devices).filter(move |other| *other != device);
        others.flat_map(move |other| [(device, other), (other, device)])
    }

    /// Returns the model of the same tasks without ports, on equal devices.
    fn on_equals(&self, work: impl Fn(usize) -> Micros, time: impl Fn(Bytes) -> Micros) -> Model {
        let work = (0..self.working).map(work).collect();
        let mut model = Model::plain(self.k, self.cost, work, self.nodes[..self.working].to_vec());
        for tensor in self.tensors.iter().filter(|tensor| !self.is_port(tensor.producer as usize)) {
            let readers = tensor.readers.iter().copied().filter(|reader| !self.is_port(*reader as usize)).collect();
            let (producer, bytes) = (tensor.producer, tensor.bytes);
            model.add(Moved { producer, readers, time: time(bytes), bytes });
        }
        model.tidy();
        model
    }

    /// Returns the relaxation in which each task runs on its fastest device, with the fastest link. Its bounds are
    /// valid here, unless devices are shared, which allows cycles between stages.
    fn at_best(&self) -> Model {
        let way = |bytes: Bytes| {
            let all = (0..self.devices).flat_map(|device| self.ways(device));
            all.map(|(from, to)| self.least_load(bytes, from, to)).fold(Micros::INFINITY, Micros::min)
        };
        // With one device nothing moves.
        self.on_equals(|task| self.quickest(task), |bytes| if self.devices < 2 { Micros::ZERO } else { way(bytes) })
    }

    /// Returns true if devices are equal except for ports: then the model of equal devices is this one without them.
    /// Not with overlap: here each link counts, there each stage's transfers.
    fn is_even(&self) -> bool {
        let link = |(from, to): (usize, usize)| {
            (self.slowness[from * self.devices + to], self.latency[from * self.devices + to])
        };
        let links: Vec<(MicrosPerByte, Micros)> =
            (0..self.devices).flat_map(|device| self.ways(device)).map(link).collect();
        !self.shared
            && self.scaling.is_none()
            && self.cost == PipelineCost::Serial
            && links.windows(2).all(|two| two[0] == two[1])
            && links.iter().all(|(slowness, _)| slowness.is_finite())
            && (0..self.working).all(|task| self.times(task).windows(2).all(|two| two[0] == two[1]))
    }
}

/// Returns the ports: nodes that only provide a model's inputs or take its outputs. They take no time and have no
/// predecessors or no successors.
fn ports(problem: &Problem) -> Vec<bool> {
    let takes_none = |node: usize| {
        problem.nodes[node].time.get(&1).is_some_and(|times| times.iter().flatten().all(|time| *time == Micros::ZERO))
    };
    ports_among(problem, takes_none)
}

/// Returns the nodes without predecessors or without successors, of those that take no time.
fn ports_among(problem: &Problem, takes_none: impl Fn(usize) -> bool) -> Vec<bool> {
    let (mut reads, mut is_read) = (vec![false; problem.nodes.len()], vec![false; problem.nodes.len()]);
    for tensor in problem.all_tensors() {
        is_read[tensor.from] |= !tensor.to.is_empty();
        tensor.to.iter().for_each(|to| reads[*to] = true);
    }
    (0..problem.nodes.len()).map(|node| takes_none(node) && !(reads[node] && is_read[node])).collect()
}

/// Returns groups of nodes that must share a stage, as no device has two: co-located ones, and those that only one
/// device runs.
fn one_stage(problem: &Problem, domains: &Domains, ports: &[bool], shared: bool) -> Vec<Vec<usize>> {
    if shared {
        return Vec::new();
    }
    let bound_to = |device: usize| (0..problem.nodes.len()).filter(move |node| domains.allowed[*node] == [device]);
    let mut groups: Vec<Vec<usize>> = domains.groups.clone();
    groups.extend((0..problem.devices.len()).map(|device| bound_to(device).collect()));
    groups.iter_mut().for_each(|group| group.retain(|node| !ports[*node]));
    groups
}

fn pairs<T>(devices: usize, of: impl Fn(usize, usize) -> T) -> Vec<T> {
    (0..devices * devices).map(|pair| of(pair / devices, pair % devices)).collect()
}
