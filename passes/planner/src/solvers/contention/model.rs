//! Tables of the timed problem: launches, their operands, links with their buses, and locations of parameters.

use crate::model::instance::{Arc, Instance};
use crate::model::plan::{Batch, Objective};
use crate::model::problem::{Contention, Problem};
use crate::model::units::{Bytes, Micros, MicrosPerByte};

/// A task for some of the inputs.
#[derive(Clone, Debug)]
pub(crate) struct Launch {
    pub(crate) task: usize,
    pub(crate) inputs: Vec<u32>,
    /// Bit mask of the input classes that it runs.
    mask: u128,
}

/// Link from one device to another.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Link {
    /// Microseconds a byte; infinite without a link.
    pub(crate) slowness: MicrosPerByte,
    pub(crate) latency: Micros,
    /// Bus shared with other links.
    pub(crate) bus: Option<usize>,
}

/// Route of a launch's parameters to a device that does not have them initially.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Route {
    /// One hop from the host.
    Copy,
    /// Two hops through another device: parallel transmission (SortingHat).
    Via(u16),
    /// None: they are read from the host's memory while the launch runs.
    Direct,
}

/// Initial locations of parameters.
#[derive(Clone, Debug)]
pub(crate) struct Parameters {
    pub(crate) host: usize,
    /// By task: another device that has them.
    pub(crate) resident: Vec<Option<usize>>,
    /// By task and device: time with parameters read from the host; infinite if not supported.
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
    /// By task: the tensors that it produces.
    pub(crate) made_by: Vec<Vec<usize>>,
    /// By tensor: first index of its routes, one for each producing launch and destination device.
    first_route: Vec<usize>,
    /// By launch: its index among the launches of its task.
    rank: Vec<usize>,
    /// By launch and device; infinite if it cannot run there.
    time: Vec<Micros>,
    /// Number of inputs of each class.
    class_size: Vec<u32>,
    links: Vec<Link>,
    pub(crate) buses: usize,
    /// By device.
    pub(crate) capacity: Vec<Bytes>,
    /// `None` if all parameters are resident where they are needed.
    pub(crate) cold: Option<Parameters>,
}

/// Further classes of inputs are merged, and moved together.
const MOST_CLASSES: usize = 128;

impl<'a> Model<'a> {
    /// Builds the model of a schedule's launches; a search changes where and when they run. The instance ignores
    /// memory: see [`Problem::relaxed_without_memory`].
    pub(crate) fn new(problem: &Problem, objective: Objective, instance: &'a Instance, batches: &[Batch]) -> Self {
        let devices = instance.devices();
        let (bus, buses) = problem.buses();
        let latency = |from: usize, to: usize| problem.link_latency.as_ref().and_then(|rows| rows[from][to]);
        let link = |pair: usize| {
            let (from, to) = (pair / devices, pair % devices);
            let slowness = match problem.bandwidth[from][to] {
                _ if from == to => MicrosPerByte::ZERO,
                None => MicrosPerByte::ZERO,
                Some(bandwidth) => 1.0 / bandwidth,
            };
            Link { slowness, latency: latency(from, to).unwrap_or_default(), bus: bus[pair] }
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
            time.extend((0..devices).map(|on| instance.time_at(batch.node, on, size).unwrap_or(Micros::INFINITY)));
            launches.push(Launch { task: batch.node, inputs: batch.inputs.clone(), mask });
        }
        let mut rank = vec![0; launches.len()];
        of_task.iter().for_each(|of| of.iter().enumerate().for_each(|(place, launch)| rank[*launch] = place));
        let mut made_by = vec![Vec::new(); instance.tasks()];
        let mut first_route = vec![0];
        for (index, tensor) in instance.tensors().iter().enumerate() {
            made_by[tensor.producer].push(index);
            first_route.push(first_route[index] + of_task[tensor.producer].len() * devices);
        }
        let cold = problem.cold.as_ref().map(|cold| Parameters {
            host: cold.host,
            resident: cold.resident.clone().unwrap_or_else(|| vec![None; instance.tasks()]),
            direct: (0..instance.tasks() * devices)
                .map(|cell| cold.direct_time(cell / devices, cell % devices).unwrap_or(Micros::INFINITY))
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
            first_route,
            rank,
            time,
            class_size,
            links: (0..devices * devices).map(link).collect(),
            buses,
            capacity: problem.devices.iter().map(|device| device.memory.unwrap_or(Bytes::INFINITY)).collect(),
            cold,
        }
    }

    /// Returns true if the objective is a queue of inputs.
    pub(crate) fn is_queue(&self) -> bool {
        self.queue
    }

    /// Returns the duration of a launch with resident parameters.
    pub(crate) fn time(&self, launch: usize, device: usize) -> Micros {
        self.time[launch * self.devices + device]
    }

    /// Returns the duration of a launch that reads its parameters from the host's memory.
    pub(crate) fn direct_time(&self, launch: usize, device: usize) -> Micros {
        self.cold
            .as_ref()
            .map_or(Micros::INFINITY, |cold| cold.direct[self.launches[launch].task * self.devices + device])
    }

    pub(crate) fn link(&self, from: usize, to: usize) -> Link {
        self.links[from * self.devices + to]
    }

    /// Returns the number of tensor routes.
    pub(crate) fn tensor_routes(&self) -> usize {
        self.first_route.last().copied().unwrap_or(0)
    }

    /// Returns the index of the route of a tensor from the launch that produces it to a device.
    pub(crate) fn tensor_route(&self, tensor: usize, producer: usize, to: usize) -> usize {
        self.first_route[tensor] + self.rank[producer] * self.devices + to
    }

    /// Returns the bytes of a launch's parameters.
    pub(crate) fn weight(&self, launch: usize) -> Bytes {
        self.instance.weight_bytes(self.launches[launch].task)
    }

    /// Returns true if a launch's parameters have to be copied to a device or read remotely.
    pub(crate) fn needs_parameters(&self, launch: usize, device: usize) -> bool {
        let task = self.launches[launch].task;
        self.cold.as_ref().is_some_and(|cold| {
            self.weight(launch) > Bytes::ZERO && device != cold.host && cold.resident[task] != Some(device)
        })
    }

    /// Returns the possible routes of a launch's parameters to a device.
    pub(crate) fn routes(&self, launch: usize, device: usize) -> Vec<Route> {
        let Some(cold) = self.cold.as_ref().filter(|_| self.needs_parameters(launch, device)) else {
            return vec![Route::Copy];
        };
        let linked = |from: usize, to: usize| self.link(from, to).slowness.is_finite();
        let resident = cold.resident[self.launches[launch].task];
        let mut routes = Vec::new();
        if linked(cold.host, device) {
            routes.push(Route::Copy);
        }
        for via in (0..self.devices).filter(|via| *via != device && *via != cold.host && linked(*via, device)) {
            if resident == Some(via) || linked(cold.host, via) {
                routes.push(Route::Via(via as u16));
            }
        }
        if self.direct_time(launch, device).is_finite() {
            routes.push(Route::Direct);
        }
        routes
    }

    /// Returns the devices that a launch can run on.
    pub(crate) fn allowed(&self, launch: usize) -> Vec<usize> {
        let runs = |device: &usize| self.time(launch, *device).is_finite() && !self.routes(launch, *device).is_empty();
        (0..self.devices).filter(runs).collect()
    }

    /// Returns the operands of a launch.
    pub(crate) fn predecessors(&self, launch: usize) -> &[Arc] {
        self.instance.predecessors(self.launches[launch].task)
    }

    /// Returns true if two launches have inputs in common.
    pub(crate) fn share_inputs(&self, one: usize, other: usize) -> bool {
        self.launches[one].mask & self.launches[other].mask != 0
    }

    /// Returns the bytes of a tensor that move from a launch to a device: those of all inputs that are read there.
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

/// Partitions inputs into classes that no launch separates. Returns the class of each input and the size of each class.
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
