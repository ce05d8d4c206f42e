//! `divi-emit-problem`: builds the planning problem of a module with costs.

use super::{
    read::{Costs, read},
    source::CostSource,
};
use crate::{
    declared::EmitProblem,
    ir::{Failure, describe, error, value_bytes},
    tasks::{exclusions, groups_of, pin, reads},
};
use divi_dialect::{Operation, Value, attr, op};
use divi_planner::{
    Problem,
    problem::{Device, MemoryModel, Node, Tensor},
    units::{Bytes, BytesPerMicro, Micros},
};
use rustc_hash::FxHashMap;
use std::collections::BTreeMap;

//===----------------------------------------------------------------------===//
// --divi-emit-problem
//===----------------------------------------------------------------------===//

/// Builds the planning problem of a module, and checks it for constraints that cannot be satisfied.
pub fn emit_problem(module: Operation<'_>, inputs: u32) -> Result<Problem, Failure> {
    let problem = ModuleProblem::build(module, inputs)?.problem;
    divi_planner::check(&problem).map_err(|findings| {
        error(module, &findings.to_string());
        Failure
    })?;
    Ok(problem)
}

/// Planning problem of a module with costs on the devices that it declares. The model's inputs and outputs are tasks of
/// no time on the host, at any batch size. A constant that several tasks read is counted with each: in the format,
/// weights belong to tasks, not to devices.
pub(crate) struct ModuleProblem<'m> {
    pub(crate) problem: Problem,
    /// Tasks of the module. Task `i` is node `first_task + i`, between the nodes of inputs and those of outputs.
    pub(crate) tasks: Vec<Operation<'m>>,
    /// Number of input nodes.
    pub(crate) first_task: usize,
    /// Entry function.
    pub(crate) function: Operation<'m>,
    /// Device that holds the model's inputs and outputs.
    pub(crate) host: usize,
    /// Kind of each task, as in cost tables.
    pub(crate) kinds: Vec<String>,
    /// Kind of each device.
    pub(crate) device_kinds: Vec<String>,
    /// Source of the costs.
    pub(crate) cost_source: CostSource,
}

impl<'m> ModuleProblem<'m> {
    /// Builds the problem for a queue of `inputs` inputs.
    pub(crate) fn build(module: Operation<'m>, inputs: u32) -> Result<Self, Failure> {
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
                task.map_or(node.weight, |task| Bytes(task.read_weight_bytes as f64))
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
            cost_source: CostSource::of(module),
        })
    }

    /// Returns the nodes of the model's inputs and outputs.
    pub(crate) fn ports(&self) -> Vec<usize> {
        let outputs = self.first_task + self.tasks.len()..self.problem.nodes.len();
        (0..self.first_task).chain(outputs).collect()
    }

    /// Returns the index of the device with a name.
    pub(crate) fn device(&self, name: &str) -> Option<usize> {
        self.problem.devices.iter().position(|device| device.name == name)
    }

    /// Returns the time of a node for `inputs` inputs on a device, with or without its parameters copied there.
    pub(crate) fn micros(&self, node: usize, device: usize, inputs: usize, is_copied: bool) -> Micros {
        let time = u32::try_from(inputs).ok().and_then(|inputs| self.problem.nodes[node].time.get(&inputs));
        let time = time.and_then(|times| times[device]).unwrap_or_default();
        let direct = self.problem.cold.as_ref().filter(|cold| !is_copied && !cold.is_there(node, device));
        direct.and_then(|cold| cold.direct_time(node, device)).unwrap_or(time)
    }

    /// Returns the value of each tensor of the problem, in its order: used arguments, then results. `None` where a task
    /// has no result.
    pub(crate) fn values(&self) -> Vec<Option<Value<'m>>> {
        let arguments = self.function.blocks().first().map(|&body| body.arguments()).unwrap_or_default();
        let arguments = arguments.into_iter().filter(|&argument| !argument.uses().is_empty());
        let of_tasks = self.tasks.iter().map(|&task| task.results());
        let of_nodes = arguments.map(|argument| vec![argument]).chain(of_tasks);
        let mut values: Vec<Option<Value<'m>>> = match self.problem.tensors {
            Some(_) => of_nodes.flatten().map(Some).collect(),
            // One tensor for each node.
            None => of_nodes.map(|values| values.first().copied()).collect(),
        };
        values.resize(self.problem.all_tensors().len(), None);
        values
    }
}

struct Builder<'a, 'm> {
    costs: &'a Costs<'m>,
    /// Device that holds the model's inputs and outputs.
    host: usize,
    /// Union of the batch sizes of all devices.
    batches: Vec<u32>,
    problem: Problem,
    tensors: Vec<Tensor>,
    /// Tensor of each value.
    positions: FxHashMap<Value<'m>, usize>,
}

impl<'a, 'm> Builder<'a, 'm> {
    fn new(module: Operation<'m>, costs: &'a Costs<'m>, inputs: u32) -> Result<Self, Failure> {
        let device = |(id, device): (usize, &super::read::Device)| Device {
            id,
            name: device.name.clone(),
            // Activations are not known before there is a plan: see verify_plan.
            memory: (!device.streams_weights).then_some(Bytes(device.memory_bytes as f64)),
            batch_sizes: device.batch_sizes.clone(),
        };
        let mut devices: Vec<Device> = costs.devices.iter().enumerate().map(device).collect();
        let count = devices.len();
        let host = divi_cost::device::host(costs.devices.iter().map(|device| &device.kind[..]));
        // Inputs and outputs take no time and are not split into batches: the host gets the whole queue as a batch
        // size, which other tasks may have no time for.
        if inputs > 1 && !devices[host].batch_sizes.contains(&inputs) {
            devices[host].batch_sizes.push(inputs);
            devices[host].batch_sizes.sort_unstable();
        }
        let mut batches: Vec<u32> = devices.iter().flat_map(|device| device.batch_sizes.iter().copied()).collect();
        batches.sort_unstable();
        batches.dedup();
        let bandwidth =
            (0..count).map(|from| (0..count).map(|to| (from != to).then_some(BytesPerMicro::ZERO)).collect()).collect();
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

    /// Reads the links. Converts bytes per second and seconds to bytes per microsecond and microseconds.
    fn links(&mut self, module: Operation<'_>) -> Result<(), Failure> {
        let count = self.problem.devices.len();
        let mut latency = vec![vec![Some(Micros::ZERO); count]; count];
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
                error(
                    link,
                    &format!(
                        "{} lacks 'from', 'to', 'bandwidth' or 'latency', or names an unknown device",
                        describe(link)
                    ),
                );
                return Err(Failure);
            };
            self.problem.bandwidth[from][to] = Some(BytesPerMicro(bandwidth / 1e6));
            latency[from][to] = Some(Micros(seconds * 1e6));
            bus[from][to] = link.attribute("bus").and_then(attr::as_string).map(str::to_owned);
        }
        self.problem.link_latency = latency.iter().flatten().any(|&l| l != Some(Micros::ZERO)).then_some(latency);
        self.problem.bus = bus.iter().flatten().any(Option::is_some).then_some(bus);
        Ok(())
    }

    /// Adds a task of no time on the host: an input or output, identified by its name in the model or by its position.
    fn free_task(&mut self, what: &str, attributes: attr::Key<attr::Array>, index: usize) -> usize {
        let name = self.costs.function.function.signature_attribute(attributes, index, "onnx.name");
        let name = name.and_then(attr::as_string).map_or_else(|| index.to_string(), str::to_owned);
        let id = self.problem.nodes.len();
        let on_host = |device: usize| (device == self.host).then_some(Micros::ZERO);
        let queued = self.problem.inputs;
        let times = |size: u32| -> Vec<_> {
            let is_whole = queued == 1 || size == queued;
            (0..self.problem.devices.len()).map(|device| on_host(device).filter(|_| is_whole)).collect()
        };
        self.problem.nodes.push(Node {
            id,
            name: Some(format!("{what} {name}")),
            time: self.batches.iter().map(|&size| (size, times(size))).collect(),
            weight: Bytes::ZERO,
            input: Bytes::ZERO,
            output: None,
            scratch: Bytes::ZERO,
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
                (0..self.costs.devices.len())
                    .map(|device| self.costs.at(i, device, batch).map(Micros))
                    .collect::<Vec<_>>()
            };
            let mut time: BTreeMap<_, _> = self.batches.iter().map(|&batch| (batch, times(batch))).collect();
            self.exclude(task.operation, &mut time)?;
            let pin = match pin(task.operation)? {
                None => None,
                Some(name) => {
                    let device = self.costs.devices.iter().position(|device| device.name == name);
                    if !device.is_some_and(|device| time.values().any(|times| times[device].is_some())) {
                        let why = match exclusions(task.operation).contains(&name) {
                            true => "and excluded from it: remove one of the two".to_owned(),
                            false => {
                                format!("which does not support it: remove the pin or give @{name} a cost")
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
                weight: Bytes(task.weight_bytes as f64),
                input: Bytes(task.input_bytes as f64),
                output: None,
                scratch: Bytes(task.scratch_bytes as f64),
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

    /// Removes the times on devices that a task is excluded from.
    fn exclude(&self, task: Operation<'_>, time: &mut BTreeMap<u32, Vec<Option<Micros>>>) -> Result<(), Failure> {
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

    /// Adds the co-location groups of tasks, by name.
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

    /// Completes the problem: with edges if every task has at most one tensor, with tensors otherwise.
    fn finish(mut self) -> Problem {
        let mut produced = vec![0u32; self.problem.nodes.len()];
        for tensor in &self.tensors {
            produced[tensor.from] += 1;
            let output = self.problem.nodes[tensor.from].output.get_or_insert_default();
            *output += tensor.bytes;
        }
        for node in &mut self.problem.nodes {
            node.output.get_or_insert_default();
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

/// Returns for each node the device that holds its parameters from an earlier run; `None` if no task has one.
fn residents(problem: &Problem, costs: &Costs<'_>, first_task: usize) -> Option<Vec<Option<usize>>> {
    let mut resident = vec![None; problem.nodes.len()];
    for (task, node) in costs.tasks.iter().zip(first_task..) {
        let name = task.operation.get(attr::RESIDENT);
        resident[node] = name.and_then(|name| problem.devices.iter().position(|device| device.name == name));
    }
    resident.iter().any(Option::is_some).then_some(resident)
}

/// Returns the devices of each cluster node; `None` unless there are several nodes.
fn machines(devices: &[super::read::Device]) -> Option<Vec<Vec<usize>>> {
    let mut nodes: BTreeMap<i64, Vec<usize>> = BTreeMap::new();
    for (id, node) in devices.iter().enumerate().filter_map(|(id, device)| Some((id, device.node?))) {
        nodes.entry(node).or_default().push(id);
    }
    (nodes.len() > 1).then(|| nodes.into_values().collect())
}

fn bytes_of(value: Value<'_>) -> Bytes {
    Bytes(value_bytes(value) as f64)
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
