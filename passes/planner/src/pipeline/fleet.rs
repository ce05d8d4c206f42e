//! Pipelines on devices of their own: each block runs on a device, with that device's times and links.
//!
//! A device does all its blocks for each input, so it takes their sum. A tensor moves once to each device that reads it. One
//! that comes in costs what its way takes; one that goes out is handed on once, for as long as its longest way takes, as
//! eq. (3) counts it once however many read it; equal devices with a block each are MTPP's. Where compute and transfers
//! overlap, the slowest is a device's work or a link's transfers. Several inputs are under way at the same time, so a device
//! holds all that its tasks ever touch (DiviML's eq. 6), whatever the problem's memory model.

mod anneal;
mod bound;
mod start;

use super::PipelineCost;
use super::together::together;
use crate::error::Error;
use crate::plan::{Objective, Schedule, Stages};
use crate::problem::{Domains, Problem};
use crate::search::chains::Allowance;
use crate::solve::{Options, Solution};
use crate::units::{Bytes, Micros};

/// Sets of devices are bits of a word.
const MOST_DEVICES: usize = 64;
/// Moves that annealing tries when nothing is said; each looks at the whole pipeline.
const MOVES: u64 = 1_000_000;

/// A value, and its bytes.
struct Tensor {
    producer: usize,
    readers: Vec<u32>,
    bytes: Bytes,
}

/// Tasks and devices, numbered; tasks so that each comes after those whose values it reads.
struct Fleet {
    devices: usize,
    /// At most so many blocks.
    k: usize,
    cost: PipelineCost,
    nodes: Vec<Vec<usize>>,
    /// By task and device; infinite where it cannot run.
    time: Vec<Micros>,
    /// What each task takes from memory, and what each device has.
    held: Vec<Bytes>,
    capacity: Vec<Bytes>,
    tensors: Vec<Tensor>,
    before: Vec<Vec<u32>>,
    after: Vec<Vec<u32>>,
    /// By pair of devices: microseconds a byte, infinite without a link; and the latency.
    slowness: Vec<f64>,
    latency: Vec<Micros>,
}

/// Each task's block, and each block's device. Values never go to a block with a lower number.
#[derive(Clone, Debug, PartialEq)]
struct Pipe {
    block: Vec<u32>,
    device: Vec<usize>,
}

/// The best pipeline that annealing finds, and a bound on all of them.
pub(super) fn plan(problem: &Problem, options: &Options) -> Result<Solution, Error> {
    // Those that share a device are kept in one block, which makes them one task; a bound must not count on it.
    let singly = problem.topological_order().map_err(|finding| Error::Problem(vec![finding]))?;
    let bound = Fleet::new(problem, options, singly.into_iter().map(|node| vec![node]).collect())?.bound(options)?;
    let fleet = Fleet::new(problem, options, together(problem)?)?;
    let start = fleet.start()?;
    let value = fleet.value(&start);
    options.watch.plan(value);
    let allowance = Allowance::new(options, MOVES);
    let found = anneal::anneal(&fleet, &start, bound.value, &allowance).filter(|(found, _)| *found < value);
    let (bottleneck, best) = found.unwrap_or((value, start));
    let mut block = vec![0; problem.nodes.len()];
    for (nodes, of) in fleet.nodes.iter().zip(&best.block) {
        nodes.iter().for_each(|node| block[*node] = *of as usize);
    }
    let stages = Some(Stages { block_device: Some(best.device), order: None });
    let schedule = Schedule::Pipeline { block, k: fleet.k as u32, bottleneck, stages };
    Ok(Solution { schedule, bound: Some(bound) })
}

impl Fleet {
    /// The problem's form has been checked. Without a number of stages there may be one more than devices: a model's
    /// inputs and outputs are on the same one.
    fn new(problem: &Problem, options: &Options, nodes: Vec<Vec<usize>>) -> Result<Self, Error> {
        let devices = problem.devices.len();
        if devices > MOST_DEVICES {
            let message = format!("pipelines are planned for at most {MOST_DEVICES} devices; there are {devices}");
            return Err(Error::Unsupported(message));
        }
        let domains = Domains::new(problem, Objective::Latency);
        if let Some(finding) = domains.contradiction() {
            return Err(Error::Infeasible(vec![finding]));
        }
        let k = options.stages.map_or(devices + 1, |k| k as usize).min(nodes.len());
        if k == 0 {
            return Err(Error::Unsupported("a pipeline has at least one stage, not 0".to_owned()));
        }
        let mut task_of = vec![0; problem.nodes.len()];
        nodes.iter().enumerate().for_each(|(task, nodes)| nodes.iter().for_each(|node| task_of[*node] = task));
        let time_of = |node: usize, device: usize| {
            let time = problem.nodes[node].time.get(&1).and_then(|times| times[device]);
            time.filter(|_| domains.allowed[node].contains(&device)).unwrap_or(f64::INFINITY)
        };
        let results = problem.output_bytes();
        let held_by = |node: usize| problem.nodes[node].weight + problem.nodes[node].input + results[node];
        let mut fleet = Self {
            devices,
            k,
            cost: options.pipeline_cost.unwrap_or_default(),
            time: nodes
                .iter()
                .flat_map(|nodes| (0..devices).map(|device| nodes.iter().map(|node| time_of(*node, device)).sum()))
                .collect(),
            held: nodes.iter().map(|nodes| nodes.iter().map(|node| held_by(*node)).sum()).collect(),
            capacity: problem.devices.iter().map(|device| device.memory.unwrap_or(f64::INFINITY)).collect(),
            tensors: Vec::new(),
            before: vec![Vec::new(); nodes.len()],
            after: vec![Vec::new(); nodes.len()],
            slowness: pairs(devices, |from, to| problem.bandwidth[from][to].map_or(0.0, |bandwidth| 1.0 / bandwidth)),
            latency: pairs(devices, |from, to| {
                problem.link_latency.as_ref().and_then(|latency| latency[from][to]).unwrap_or(0.0)
            }),
            nodes,
        };
        if let Some(task) = (0..fleet.nodes.len()).find(|task| fleet.times(*task).iter().all(|time| time.is_infinite()))
        {
            let names: Vec<String> = fleet.nodes[task].iter().map(|node| problem.node_label(*node)).collect();
            let message = format!("no device runs all of {}, which share one or are between such", names.join(", "));
            return Err(Error::NotFound(message));
        }
        fleet.add_tensors(problem, &task_of);
        Ok(fleet)
    }

    fn add_tensors(&mut self, problem: &Problem, task_of: &[usize]) {
        for tensor in problem.all_tensors() {
            let producer = task_of[tensor.from];
            let mut readers: Vec<u32> = tensor.to.iter().map(|to| task_of[*to] as u32).collect();
            readers.retain(|reader| *reader as usize != producer);
            readers.sort_unstable();
            readers.dedup();
            self.after[producer].extend(&readers);
            readers.iter().for_each(|reader| self.before[*reader as usize].push(producer as u32));
            if !readers.is_empty() {
                self.tensors.push(Tensor { producer, readers, bytes: tensor.bytes });
            }
        }
    }

    fn tasks(&self) -> usize {
        self.nodes.len()
    }

    /// A task's time on each device.
    fn times(&self, task: usize) -> &[Micros] {
        &self.time[task * self.devices..(task + 1) * self.devices]
    }

    fn move_time(&self, bytes: Bytes, from: usize, to: usize) -> Micros {
        let pair = from * self.devices + to;
        // Nothing at all does not move over a link that is not there either.
        if self.slowness[pair].is_infinite() {
            return f64::INFINITY;
        }
        bytes * self.slowness[pair] + self.latency[pair]
    }

    /// The lowest and the highest block that a task may be in while the others stay.
    fn range(&self, pipe: &Pipe, task: usize) -> (u32, u32) {
        let block = |task: &u32| pipe.block[*task as usize];
        let low = self.before[task].iter().map(block).max().unwrap_or(0);
        let high = self.after[task].iter().map(block).min().unwrap_or(self.k as u32 - 1);
        (low, high)
    }

    /// What the slowest takes; infinite where something cannot be.
    fn value(&self, pipe: &Pipe) -> Micros {
        let mut loads = Vec::new();
        self.loads(pipe, &mut loads);
        loads.into_iter().fold(0.0, f64::max)
    }

    /// What each device takes, and after them, where they count by themselves, each link.
    fn loads(&self, pipe: &Pipe, loads: &mut Vec<Micros>) {
        let devices = self.devices;
        loads.clear();
        loads.resize(devices + devices * devices, 0.0);
        let mut held = [0.0; MOST_DEVICES];
        let device_of = |task: usize| pipe.device[pipe.block[task] as usize];
        for task in 0..self.tasks() {
            let device = device_of(task);
            loads[device] += self.times(task)[device];
            held[device] += self.held[task];
        }
        for tensor in &self.tensors {
            let home = device_of(tensor.producer);
            let all = tensor.readers.iter().fold(0_u64, |set, reader| set | 1 << device_of(*reader as usize));
            let mut others = all & !(1 << home);
            let mut longest: Micros = 0.0;
            while others != 0 {
                let to = others.trailing_zeros() as usize;
                others &= others - 1;
                let time = self.move_time(tensor.bytes, home, to);
                longest = longest.max(time);
                match self.cost {
                    PipelineCost::Serial => loads[to] += time,
                    PipelineCost::Overlap => loads[devices + home * devices + to] += time,
                }
            }
            if self.cost == PipelineCost::Serial {
                loads[home] += longest;
            }
        }
        for (device, held) in held.iter().enumerate().take(devices) {
            if *held > self.capacity[device] {
                loads[device] = f64::INFINITY;
            }
        }
    }
}

fn pairs(devices: usize, of: impl Fn(usize, usize) -> f64) -> Vec<f64> {
    (0..devices * devices).map(|pair| of(pair / devices, pair % devices)).collect()
}
