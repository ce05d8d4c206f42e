//! What is to be run and moved, as tables: launches, what they read, links with their buses, and where parameters are.

use crate::model::instance::{Arc, Instance};
use crate::model::plan::{Batch, Objective};
use crate::model::problem::{Contention, Problem};
use crate::model::units::{Bytes, Micros};

/// A task for some of the inputs.
#[derive(Clone, Debug)]
pub(crate) struct Launch {
    pub(crate) task: usize,
    pub(crate) inputs: Vec<u32>,
    /// Which classes of inputs it takes, a bit each.
    mask: u128,
}

/// How one device is reached from another.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Link {
    /// Microseconds a byte; infinite without a link.
    pub(crate) slowness: f64,
    pub(crate) latency: Micros,
    /// The bus on which others are in the way.
    pub(crate) bus: Option<usize>,
}

/// How a launch gets its parameters, where its device does not have them from the start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Way {
    /// From the host.
    Copy,
    /// From the host to another device, and from there: parallel transmission.
    Via(u16),
    /// They stay in the host's memory and are read from there.
    Direct,
}

/// Where parameters are before anything runs.
#[derive(Clone, Debug)]
pub(crate) struct Parameters {
    pub(crate) host: usize,
    /// By task, the device that has them besides.
    pub(crate) resident: Vec<Option<usize>>,
    /// By task and device, the time when they are read from the host; infinite where that is not possible.
    pub(crate) direct: Vec<Micros>,
}

pub(crate) struct Model<'a> {
    pub(crate) instance: &'a Instance,
    pub(crate) devices: usize,
    pub(crate) contention: Contention,
    queue: bool,
    pub(crate) launches: Vec<Launch>,
    /// By task, its launches.
    pub(crate) of_task: Vec<Vec<usize>>,
    /// By task, the tensors that it makes.
    pub(crate) made_by: Vec<Vec<usize>>,
    /// By tensor, where the numbers of its ways begin: one for each launch that makes it and each device.
    first_way: Vec<usize>,
    /// By launch, its place among its task's.
    rank: Vec<usize>,
    /// By launch and device; infinite where it cannot run.
    time: Vec<Micros>,
    /// How many inputs each class has.
    class_size: Vec<u32>,
    links: Vec<Link>,
    pub(crate) buses: usize,
    /// By device.
    pub(crate) capacity: Vec<Bytes>,
    /// None where all parameters are where they are needed.
    pub(crate) cold: Option<Parameters>,
}

/// More classes of inputs than this are taken together, and moved together.
const MOST_CLASSES: usize = 128;

impl<'a> Model<'a> {
    /// The launches are those of some schedule; what changes is where and when they run. The instance knows nothing of
    /// memory: see [`Problem::relaxed_without_memory`].
    pub(crate) fn new(problem: &Problem, objective: Objective, instance: &'a Instance, batches: &[Batch]) -> Self {
        let devices = instance.devices();
        let (bus, buses) = problem.buses();
        let latency = |from: usize, to: usize| problem.link_latency.as_ref().and_then(|rows| rows[from][to]);
        let link = |pair: usize| {
            let (from, to) = (pair / devices, pair % devices);
            let slowness = match problem.bandwidth[from][to] {
                _ if from == to => 0.0,
                None => 0.0,
                Some(bandwidth) => 1.0 / bandwidth,
            };
            Link { slowness, latency: latency(from, to).unwrap_or(0.0), bus: bus[pair] }
        };
        let mut batches: Vec<&Batch> = batches.iter().collect();
        batches.sort_by_key(|batch| (batch.node, batch.device));
        let (classes, class_size) = classes(instance.inputs(), &batches);
        let mut of_task = vec![Vec::new(); instance.tasks()];
        let mut launches = Vec::with_capacity(batches.len());
        let mut time = Vec::with_capacity(batches.len() * devices);
        for (index, batch) in batches.iter().enumerate() {
            of_task[batch.node].push(index);
            let mask = batch.inputs.iter().fold(0, |mask, input| mask | 1 << classes[*input as usize]);
            let size = batch.inputs.len() as u32;
            time.extend((0..devices).map(|on| instance.time_at(batch.node, on, size).unwrap_or(f64::INFINITY)));
            launches.push(Launch { task: batch.node, inputs: batch.inputs.clone(), mask });
        }
        let mut rank = vec![0; launches.len()];
        of_task.iter().for_each(|of| of.iter().enumerate().for_each(|(place, launch)| rank[*launch] = place));
        let mut made_by = vec![Vec::new(); instance.tasks()];
        let mut first_way = vec![0];
        for (index, tensor) in instance.tensors().iter().enumerate() {
            made_by[tensor.producer].push(index);
            first_way.push(first_way[index] + of_task[tensor.producer].len() * devices);
        }
        let cold = problem.cold.as_ref().map(|cold| Parameters {
            host: cold.host,
            resident: cold.resident.clone().unwrap_or_else(|| vec![None; instance.tasks()]),
            direct: (0..instance.tasks() * devices)
                .map(|cell| cold.direct_time(cell / devices, cell % devices).unwrap_or(f64::INFINITY))
                .collect(),
        });
        Self {
            instance,
            devices,
            contention: problem.contention,
            queue: objective == Objective::Batch,
            launches,
            of_task,
            made_by,
            first_way,
            rank,
            time,
            class_size,
            links: (0..devices * devices).map(link).collect(),
            buses,
            capacity: problem.devices.iter().map(|device| device.memory.unwrap_or(f64::INFINITY)).collect(),
            cold,
        }
    }

    /// Whether several inputs may go through.
    pub(crate) fn is_queue(&self) -> bool {
        self.queue
    }

    /// How long a launch takes with its parameters at hand.
    pub(crate) fn time(&self, launch: usize, device: usize) -> Micros {
        self.time[launch * self.devices + device]
    }

    /// How long it takes when it reads them in the host's memory.
    pub(crate) fn direct_time(&self, launch: usize, device: usize) -> Micros {
        self.cold.as_ref().map_or(f64::INFINITY, |cold| cold.direct[self.launches[launch].task * self.devices + device])
    }

    pub(crate) fn link(&self, from: usize, to: usize) -> Link {
        self.links[from * self.devices + to]
    }

    /// How many ways tensors may go, and the number of one: of a tensor from the launch that makes it to a device.
    pub(crate) fn ways_of_tensors(&self) -> usize {
        self.first_way.last().copied().unwrap_or(0)
    }

    pub(crate) fn way_of_tensor(&self, tensor: usize, producer: usize, to: usize) -> usize {
        self.first_way[tensor] + self.rank[producer] * self.devices + to
    }

    /// What a launch's parameters take.
    pub(crate) fn weight(&self, launch: usize) -> Bytes {
        self.instance.weight_bytes(self.launches[launch].task)
    }

    /// Whether a launch's parameters have to come to a device, or be read from afar.
    pub(crate) fn needs_parameters(&self, launch: usize, device: usize) -> bool {
        let task = self.launches[launch].task;
        self.cold
            .as_ref()
            .is_some_and(|cold| self.weight(launch) > 0.0 && device != cold.host && cold.resident[task] != Some(device))
    }

    /// The ways in which a launch can run on a device.
    pub(crate) fn ways(&self, launch: usize, device: usize) -> Vec<Way> {
        let Some(cold) = self.cold.as_ref().filter(|_| self.needs_parameters(launch, device)) else {
            return vec![Way::Copy];
        };
        let linked = |from: usize, to: usize| self.link(from, to).slowness.is_finite();
        let resident = cold.resident[self.launches[launch].task];
        let mut ways = Vec::new();
        if linked(cold.host, device) {
            ways.push(Way::Copy);
        }
        for via in (0..self.devices).filter(|via| *via != device && *via != cold.host && linked(*via, device)) {
            if resident == Some(via) || linked(cold.host, via) {
                ways.push(Way::Via(via as u16));
            }
        }
        if self.direct_time(launch, device).is_finite() {
            ways.push(Way::Direct);
        }
        ways
    }

    /// Where a launch can run, whatever else does.
    pub(crate) fn allowed(&self, launch: usize) -> Vec<usize> {
        let runs = |device: &usize| self.time(launch, *device).is_finite() && !self.ways(launch, *device).is_empty();
        (0..self.devices).filter(runs).collect()
    }

    /// What a launch reads.
    pub(crate) fn predecessors(&self, launch: usize) -> &[Arc] {
        self.instance.predecessors(self.launches[launch].task)
    }

    /// Whether two launches have inputs in common.
    pub(crate) fn meet(&self, one: usize, other: usize) -> bool {
        self.launches[one].mask & self.launches[other].mask != 0
    }

    /// What of a tensor goes from a launch to a device: that of all inputs which are read there.
    pub(crate) fn moved(&self, tensor: usize, producer: usize, to: usize, device: &[u16]) -> Bytes {
        let tensor = &self.instance.tensors()[tensor];
        if self.class_size.len() == 1 {
            return tensor.bytes * f64::from(self.class_size[0]);
        }
        let readers = tensor.consumers.iter().flat_map(|task| &self.of_task[*task]);
        let here = readers.filter(|reader| usize::from(device[**reader]) == to);
        let mask = here.fold(0, |mask, reader| mask | self.launches[*reader].mask) & self.launches[producer].mask;
        let classes = self.class_size.iter().enumerate().filter(|(class, _)| mask >> class & 1 == 1);
        tensor.bytes * f64::from(classes.map(|(_, size)| size).sum::<u32>())
    }
}

/// Inputs that every launch takes together: the class of each, and how many each class has.
fn classes(inputs: u32, batches: &[&Batch]) -> (Vec<usize>, Vec<u32>) {
    let mut class = vec![0_usize; inputs as usize];
    let mut count = 1;
    for batch in batches {
        let mut inside = vec![false; class.len()];
        batch.inputs.iter().for_each(|input| inside[*input as usize] = true);
        let mut split: Vec<(usize, bool)> = class.iter().copied().zip(inside).collect();
        let pairs = split.clone();
        split.sort_unstable();
        split.dedup();
        count = split.len();
        let number = |pair: &(usize, bool)| split.binary_search(pair).unwrap_or(0);
        class = pairs.iter().map(number).collect();
    }
    let kept = count.min(MOST_CLASSES);
    let mut size = vec![0; kept];
    for class in &mut class {
        *class %= kept;
        size[*class] += 1;
    }
    (class, size)
}
