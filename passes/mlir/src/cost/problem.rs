//! `divi-emit-problem`: the planning problem that a module with costs poses.

use super::read::{Costs, read};
use crate::{
    declared::EmitProblem,
    ir::{Failure, describe, error, value_bytes},
    tasks::{exclusions, groups_of, pin, reads},
};
use divi_dialect::{Operation, Value, attr, op};
use divi_planner::{
    Problem,
    problem::{Device, MemoryModel, Node, Tensor},
};
use rustc_hash::FxHashMap;
use std::collections::BTreeMap;

//===----------------------------------------------------------------------===//
// --divi-emit-problem
//===----------------------------------------------------------------------===//

/// The problem of running a module, if it may have a plan as far as can be seen at once.
pub fn emit_problem(module: Operation<'_>, inputs: u32) -> Result<Problem, Failure> {
    let problem = Posed::by(module, inputs)?.problem;
    divi_planner::check(&problem).map_err(|findings| {
        error(module, &findings.to_string());
        Failure
    })?;
    Ok(problem)
}

/// The problem of running a module, whose costs are annotated, on the devices that it declares. The model's inputs and
/// outputs are tasks of no time on the host, whatever batches it takes. A constant that several tasks read is counted with
/// each: the format has weights of tasks, not of devices.
pub(crate) struct Posed<'m> {
    pub(crate) problem: Problem,
    /// The tasks of the module. Task `i` is node `first_task + i`; inputs come before, outputs behind.
    pub(crate) tasks: Vec<Operation<'m>>,
    pub(crate) first_task: usize,
    pub(crate) function: Operation<'m>,
    /// The device that has the inputs and wants the outputs.
    pub(crate) host: usize,
    /// What each task is, in the words of costs.
    pub(crate) kinds: Vec<String>,
    /// Name of the device's kind.
    pub(crate) device_kinds: Vec<String>,
}

impl<'m> Posed<'m> {
    pub(crate) fn by(module: Operation<'m>, inputs: u32) -> Result<Self, Failure> {
        let costs = read(module)?;
        let mut builder = Builder::new(module, &costs, inputs)?;
        builder.arguments();
        let first_task = builder.problem.nodes.len();
        builder.tasks()?;
        builder.groups(first_task);
        builder.results();
        let host = builder.host;
        let mut problem = builder.finish();
        if module.has(attr::COLD) {
            let reads = |node: &Node| {
                let task = node.id.checked_sub(first_task).and_then(|task| costs.tasks.get(task));
                task.map_or(node.weight, |task| task.read_weight_bytes as f64)
            };
            problem = problem.cold_start_reading(host, reads);
            let resident = residents(&problem, &costs, first_task);
            problem.cold.iter_mut().for_each(|cold| cold.resident.clone_from(&resident));
        }
        Ok(Self {
            problem,
            tasks: costs.tasks.iter().map(|task| task.operation).collect(),
            first_task,
            function: costs.function.function,
            host,
            kinds: costs.tasks.iter().map(|task| task.kind.to_owned()).collect(),
            device_kinds: costs.devices.iter().map(|device| device.kind.clone()).collect(),
        })
    }

    /// The device of a name.
    pub(crate) fn device(&self, name: &str) -> Option<usize> {
        self.problem.devices.iter().position(|device| device.name == name)
    }

    /// How long a node takes for a number of inputs on a device, with its parameters copied there or not.
    pub(crate) fn micros(&self, node: usize, device: usize, inputs: usize, is_copied: bool) -> f64 {
        let time = u32::try_from(inputs).ok().and_then(|inputs| self.problem.nodes[node].time.get(&inputs));
        let time = time.and_then(|times| times[device]).unwrap_or(0.0);
        let direct = self.problem.cold.as_ref().filter(|cold| !is_copied && !cold.is_there(node, device));
        direct.and_then(|cold| cold.direct_time(node, device)).unwrap_or(time)
    }

    /// The value that each tensor of the problem is, in its order: arguments that are used, then results. None where a task
    /// has no result.
    pub(crate) fn values(&self) -> Vec<Option<Value<'m>>> {
        let arguments = self.function.blocks().first().map(|&body| body.arguments()).unwrap_or_default();
        let arguments = arguments.into_iter().filter(|&argument| !argument.uses().is_empty());
        let of_tasks = self.tasks.iter().map(|&task| task.results());
        let of_nodes = arguments.map(|argument| vec![argument]).chain(of_tasks);
        let mut values: Vec<Option<Value<'m>>> = match self.problem.tensors {
            Some(_) => of_nodes.flatten().map(Some).collect(),
            // Each node has one.
            None => of_nodes.map(|values| values.first().copied()).collect(),
        };
        values.resize(self.problem.all_tensors().len(), None);
        values
    }
}

struct Builder<'a, 'm> {
    costs: &'a Costs<'m>,
    /// The device that has the inputs and wants the outputs.
    host: usize,
    /// Every batch size of any device.
    batches: Vec<u32>,
    problem: Problem,
    tensors: Vec<Tensor>,
    /// The tensor that a value is.
    positions: FxHashMap<Value<'m>, usize>,
}

impl<'a, 'm> Builder<'a, 'm> {
    fn new(module: Operation<'m>, costs: &'a Costs<'m>, inputs: u32) -> Result<Self, Failure> {
        let device = |(id, device): (usize, &super::read::Device)| Device {
            id,
            name: device.name.clone(),
            // What the tensors take is found out when there is a plan: see verify_plan.
            memory: (!device.streams_weights).then_some(device.memory_bytes as f64),
            batch_sizes: device.batch_sizes.clone(),
        };
        let mut devices: Vec<Device> = costs.devices.iter().enumerate().map(device).collect();
        let count = devices.len();
        let host = divi_cost::device::host(costs.devices.iter().map(|device| &device.kind[..]));
        // What takes no time is not cut into batches: the queue as a whole is one that only such tasks take.
        if inputs > 1 && !devices[host].batch_sizes.contains(&inputs) {
            devices[host].batch_sizes.push(inputs);
            devices[host].batch_sizes.sort_unstable();
        }
        let mut batches: Vec<u32> = devices.iter().flat_map(|device| device.batch_sizes.iter().copied()).collect();
        batches.sort_unstable();
        batches.dedup();
        let bandwidth = (0..count).map(|from| (0..count).map(|to| (from != to).then_some(0.0)).collect()).collect();
        let name = module.symbol_name().unwrap_or("main");
        let mut problem = Problem::new(name, devices, bandwidth);
        problem.set_host(host);
        problem.inputs = inputs;
        problem.memory_model = MemoryModel::Liveness;
        problem.machines = machines(&costs.devices);
        let contention = module.get(attr::CONTENTION);
        problem.contention = contention.and_then(|name| name.parse().ok()).unwrap_or_default();
        let mut this = Self { costs, host, batches, problem, tensors: vec![], positions: FxHashMap::default() };
        this.links(module)?;
        Ok(this)
    }

    /// Bytes per second and seconds become bytes per microsecond and microseconds.
    fn links(&mut self, module: Operation<'_>) -> Result<(), Failure> {
        let count = self.problem.devices.len();
        let mut latency = vec![vec![Some(0.0); count]; count];
        let mut bus = vec![vec![None; count]; count];
        for link in module.children() {
            if link.name() != op::LINK {
                continue;
            }
            let end = |key| {
                let id = link.get(key)?;
                self.problem.devices.iter().position(|device| device.name == id)
            };
            let number = |name| link.attribute(name).and_then(attr::as_float);
            let (Some(from), Some(to), Some(bandwidth), Some(seconds)) =
                (end(attr::FROM), end(attr::TO), number("bandwidth"), number("latency"))
            else {
                error(link, &format!("{} does not say from where, to where and how fast", describe(link)));
                return Err(Failure);
            };
            self.problem.bandwidth[from][to] = Some(bandwidth / 1e6);
            latency[from][to] = Some(seconds * 1e6);
            bus[from][to] = link.attribute("bus").and_then(attr::as_string).map(str::to_owned);
        }
        self.problem.link_latency = latency.iter().flatten().any(|&l| l != Some(0.0)).then_some(latency);
        self.problem.bus = bus.iter().flatten().any(Option::is_some).then_some(bus);
        Ok(())
    }

    /// A task of no time on the host: an input or output, called by its name in the model or else by its position.
    fn free_task(&mut self, what: &str, attributes: attr::Key<attr::Array>, index: usize) -> usize {
        let name = self.costs.function.function.signature_attribute(attributes, index, "onnx.name");
        let name = name.and_then(attr::as_string).map_or_else(|| index.to_string(), str::to_owned);
        let id = self.problem.nodes.len();
        let on_host = |device: usize| (device == self.host).then_some(0.0);
        let times: Vec<_> = (0..self.problem.devices.len()).map(on_host).collect();
        self.problem.nodes.push(Node {
            id,
            name: Some(format!("{what} {name}")),
            time: self.batches.iter().map(|&batch| (batch, times.clone())).collect(),
            weight: 0.0,
            input: 0.0,
            output: None,
            scratch: 0.0,
            pin: Some(self.host),
            module: None,
        });
        id
    }

    fn tensor(&mut self, value: Value<'m>, from: usize) {
        self.positions.insert(value, self.tensors.len());
        self.tensors.push(Tensor { from, bytes: bytes_of(value), to: vec![] });
    }

    fn read(&mut self, value: Value<'m>, reader: usize) {
        if let Some(&tensor) = self.positions.get(&value) {
            let readers = &mut self.tensors[tensor].to;
            if readers.last() != Some(&reader) {
                readers.push(reader);
            }
        }
    }

    fn arguments(&mut self) {
        let arguments = self.costs.function.arguments.clone();
        for (i, argument) in arguments.into_iter().enumerate() {
            if !argument.uses().is_empty() {
                let task = self.free_task("input", attr::ARG_ATTRS, i);
                self.tensor(argument, task);
            }
        }
    }

    fn tasks(&mut self) -> Result<(), Failure> {
        for (i, task) in self.costs.tasks.iter().enumerate() {
            let id = self.problem.nodes.len();
            let times = |batch: u32| {
                (0..self.costs.devices.len()).map(|device| self.costs.at(i, device, batch)).collect::<Vec<_>>()
            };
            let mut time: BTreeMap<_, _> = self.batches.iter().map(|&batch| (batch, times(batch))).collect();
            self.exclude(task.operation, &mut time)?;
            let pin = match pin(task.operation)? {
                None => None,
                Some(name) => {
                    let device = self.costs.devices.iter().position(|device| device.name == name);
                    if !device.is_some_and(|device| time.values().any(|times| times[device].is_some())) {
                        let why = match exclusions(task.operation).contains(&name) {
                            true => "and excluded from there: take one of the two away".to_owned(),
                            false => {
                                format!("which does not support it: take the pin away or give @{name} a cost")
                            }
                        };
                        let what = describe(task.operation);
                        error(task.operation, &format!("{what} is pinned to @{name}, {why}"));
                        return Err(Failure);
                    }
                    device
                }
            };
            self.problem.nodes.push(Node {
                id,
                name: Some(task.name.to_owned()),
                time,
                weight: task.weight_bytes as f64,
                input: task.input_bytes as f64,
                output: None,
                scratch: task.scratch_bytes as f64,
                pin,
                module: None,
            });
            for value in reads(task.operation) {
                self.read(value, id);
            }
            for result in task.operation.results() {
                self.tensor(result, id);
            }
        }
        Ok(())
    }

    /// Takes away the times on devices that a task must not run on.
    fn exclude(&self, task: Operation<'_>, time: &mut BTreeMap<u32, Vec<Option<f64>>>) -> Result<(), Failure> {
        let excluded = exclusions(task);
        if excluded.is_empty() {
            return Ok(());
        }
        for (device, _) in self.costs.devices.iter().enumerate().filter(|(_, d)| excluded.contains(&d.name.as_str())) {
            time.values_mut().for_each(|times| times[device] = None);
        }
        if time.values().flatten().any(Option::is_some) {
            return Ok(());
        }
        let names: Vec<String> = excluded.iter().map(|name| format!("@{name}")).collect();
        let message = format!(
            "{} is excluded from {}, and no other device supports it: allow one of them",
            describe(task),
            names.join(", ")
        );
        error(task, &message);
        Err(Failure)
    }

    /// Tasks that share a device, by the names of their groups.
    fn groups(&mut self, first_task: usize) {
        let mut names = vec![];
        let mut groups: Vec<Vec<usize>> = vec![];
        for (i, task) in self.costs.tasks.iter().enumerate() {
            for name in groups_of(task.operation) {
                let known = names.iter().position(|other| *other == name);
                let group = known.unwrap_or_else(|| {
                    names.push(name);
                    groups.push(vec![]);
                    groups.len() - 1
                });
                groups[group].push(first_task + i);
            }
        }
        groups.retain(|group| group.len() > 1);
        self.problem.colocate = (!groups.is_empty()).then_some(groups);
    }

    fn results(&mut self) {
        let returned = self.costs.function.returned.clone();
        for (i, value) in returned.into_iter().enumerate() {
            if !self.positions.contains_key(&value) {
                continue;
            }
            let task = self.free_task("output", attr::RES_ATTRS, i);
            self.problem.nodes[task].input = bytes_of(value);
            self.read(value, task);
        }
    }

    /// Edges where every task has one tensor at most, tensors where some have several.
    fn finish(mut self) -> Problem {
        let mut produced = vec![0u32; self.problem.nodes.len()];
        for tensor in &self.tensors {
            produced[tensor.from] += 1;
            let output = self.problem.nodes[tensor.from].output.get_or_insert(0.0);
            *output += tensor.bytes;
        }
        for node in &mut self.problem.nodes {
            node.output.get_or_insert(0.0);
        }
        if produced.iter().all(|&count| count <= 1) {
            let edges = self.tensors.iter().flat_map(|tensor| tensor.to.iter().map(|&to| (tensor.from, to)));
            self.problem.edges = Some(edges.collect());
        } else {
            self.problem.tensors = Some(self.tensors);
        }
        self.problem
    }
}

/// By node, the device that has its parameters from an earlier run; none where no task says so.
fn residents(problem: &Problem, costs: &Costs<'_>, first_task: usize) -> Option<Vec<Option<usize>>> {
    let mut resident = vec![None; problem.nodes.len()];
    for (task, node) in costs.tasks.iter().zip(first_task..) {
        let name = task.operation.get(attr::RESIDENT);
        resident[node] = name.and_then(|name| problem.devices.iter().position(|device| device.name == name));
    }
    resident.iter().any(Option::is_some).then_some(resident)
}

/// The devices of each node, where there are several.
fn machines(devices: &[super::read::Device]) -> Option<Vec<Vec<usize>>> {
    let mut nodes: BTreeMap<i64, Vec<usize>> = BTreeMap::new();
    for (id, node) in devices.iter().enumerate().filter_map(|(id, device)| Some((id, device.node?))) {
        nodes.entry(node).or_default().push(id);
    }
    (nodes.len() > 1).then(|| nodes.into_values().collect())
}

fn bytes_of(value: Value<'_>) -> f64 {
    value_bytes(value) as f64
}

impl EmitProblem {
    pub(crate) fn run(&self, module: Operation<'_>) -> Result<String, Failure> {
        let Some(inputs) = u32::try_from(self.inputs).ok().filter(|&inputs| inputs > 0) else {
            error(module, &format!("inputs is {}: it must be a number from 1 to {}", self.inputs, u32::MAX));
            return Err(Failure);
        };
        Ok(emit_problem(module, inputs)?.write())
    }
}
