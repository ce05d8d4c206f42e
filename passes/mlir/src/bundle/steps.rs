//! Lowers the entry function of an outlined plan to steps.

use super::{
    constants::Constants,
    graph::{self, Refusal, static_type},
};
use crate::{
    ir::{Failure, ONNX_CONSTANT, describe, error},
    rebatch::Present,
    steps::{integer, integers, refuse, symbol},
    tasks::{entry, keeps_weights_on_host, task_name},
};
use divi_codegen::{Program, StageProgram, graph::Value as GraphValue, program::tensor};
use divi_cost::device::{self, MemorySpace};
use divi_dialect::{Operation, Value, attr, op};
use divi_runtime::bundle::{Action, Device, Link, Mode, Objective, Port, Step, Task, TaskResult, Value as Stored};
use rustc_hash::FxHashMap;

/// Builds the program of a plan.
pub(super) fn program(module: Operation<'_>, model: &str, constants: &Constants<'_>) -> Result<Program, Failure> {
    let function = entry(module)?;
    let &[block] = &function.blocks()[..] else {
        error(function, &format!("{} has several blocks: a plan is one list of steps", describe(function)));
        return Err(Failure);
    };
    let all = module.children();
    let all_of = |name: &'static str| all.iter().copied().filter(move |operation| operation.name() == name);
    let devices: Vec<_> = all_of(op::DEVICE).collect();
    let mut walk = Walk {
        functions: all_of(op::FUNC).map(|function| (function.symbol_name().unwrap_or_default(), function)).collect(),
        device_names: devices.iter().map(|device| device.symbol_name().unwrap_or_default()).collect(),
        links: all_of(op::LINK).collect(),
        constants,
        places: FxHashMap::default(),
        model_batch: 1,
        program: Program {
            model: model.to_owned(),
            objective: objective(module),
            devices: devices.iter().map(|&device| described(device)).collect(),
            values: vec![],
            inputs: vec![],
            outputs: vec![],
            task_results: vec![],
            stages: vec![],
            steps: vec![],
            constants: vec![],
        },
    };
    if walk.program.devices.is_empty() {
        error(module, "has no divi.device: plan it first, with --partition");
        return Err(Failure);
    }
    walk.find_inward_links();
    let inputs = walk.program.objective.inputs;
    if let Present::Size(size) = Present::of(function)
        && let Some(size) = u64::try_from(size).ok().filter(|size| size.is_multiple_of(inputs))
    {
        walk.model_batch = (size / inputs).max(1);
    }
    let name_in = |list, i| function.signature_attribute(list, i, "onnx.name").and_then(attr::as_string);
    let host = walk.host();
    for (i, argument) in block.arguments().into_iter().enumerate() {
        let name = name_in(attr::ARG_ATTRS, i).map_or_else(|| format!("input_{i}"), str::to_owned);
        let device = function.signature_attribute(attr::ARG_ATTRS, i, attr::DEVICE.name()).and_then(attr::as_symbol);
        let device =
            device.and_then(|device| walk.device(device)).unwrap_or_else(|| walk.reading_device(argument, host));
        let value = walk.value(function, argument, &name, device)?;
        walk.program.inputs.push(Port { name, value });
    }
    for operation in block.operations() {
        walk.step(operation)?;
    }
    let returned = block.terminator().map(Operation::operands).unwrap_or_default();
    for (i, value) in returned.into_iter().enumerate() {
        let name = name_in(attr::RES_ATTRS, i).map_or_else(|| format!("output_{i}"), str::to_owned);
        let value = walk.place(function, value)?;
        walk.program.outputs.push(Port { name, value });
        let computed_from = function.signature_attribute(attr::RES_ATTRS, i, attr::COMPUTED_FROM.name());
        if let Some(list) = computed_from.and_then(attr::as_integers) {
            let computed_from = list.into_iter().filter_map(|index| usize::try_from(index).ok()).collect();
            walk.program.task_results.push(TaskResult { output: i, computed_from });
        }
    }
    Ok(walk.program)
}

/// Returns the bundle's description of a `divi.device`.
pub(crate) fn described(device: Operation<'_>) -> Device {
    let number = |name| device.attribute(name).and_then(attr::as_integer).and_then(|value| u64::try_from(value).ok());
    Device {
        id: device.symbol_name().unwrap_or_default().to_owned(),
        kind: device.get(attr::KIND).unwrap_or_default().to_owned(),
        arch: device.attribute("arch").and_then(attr::as_string).map(str::to_owned),
        threads: number("threads").unwrap_or(0),
        memory: number("memory").unwrap_or(0),
        node: number("node").and_then(|node| usize::try_from(node).ok()),
        streams_weights: device.attribute("weights").and_then(attr::as_string) == Some("streamed"),
        ..Device::default()
    }
}

/// Returns the objective, its predicted value and its bound, as in the certificate.
fn objective(module: Operation<'_>) -> Objective {
    let plan = module.get(attr::PLAN);
    let entry = |name: &str| plan.and_then(|plan| attr::entry(plan, name));
    let mode = match entry("objective").and_then(attr::as_string) {
        Some("batch") => Mode::Batch,
        Some("pipeline") => Mode::Pipeline,
        _ => Mode::Latency,
    };
    let inputs = entry("inputs").and_then(attr::as_integer).and_then(|inputs| u64::try_from(inputs).ok());
    let inputs = inputs.unwrap_or(1).max(1);
    // Values of pipelines are for one input, those of bundles for a request.
    let scale = if mode == Mode::Pipeline { inputs as f64 } else { 1.0 };
    let of_request = |name| entry(name).and_then(attr::as_float).map(|micros| micros * scale);
    Objective { mode, inputs, predicted_us: of_request("value"), bound_us: of_request("bound") }
}

/// State of the walk over the entry function.
struct Walk<'a, 'm> {
    functions: FxHashMap<&'m str, Operation<'m>>,
    device_names: Vec<&'m str>,
    links: Vec<Operation<'m>>,
    constants: &'a Constants<'a>,
    /// Program value of each MLIR value.
    places: FxHashMap<Value<'m>, usize>,
    /// Batch size of the model for one input.
    model_batch: u64,
    program: Program,
}

impl<'m> Walk<'_, 'm> {
    /// Returns true if the memory of a device is not the host's.
    fn has_own_memory(&self, device: usize) -> bool {
        let kind = device::find(&self.program.devices[device].kind);
        kind.is_some_and(|kind| kind.memory() == MemorySpace::Device)
    }

    /// Sets the host's link to each device with its own memory. Weights are copied over it.
    fn find_inward_links(&mut self) {
        let host = self.device_names[self.host()];
        for (device, name) in self.program.devices.iter_mut().zip(&self.device_names) {
            let is_inward =
                |link: &&Operation<'m>| (symbol(**link, attr::FROM), symbol(**link, attr::TO)) == (host, *name);
            let is_copied = device::find(&device.kind).is_some_and(|kind| kind.memory() == MemorySpace::Device);
            let Some(&link) = self.links.iter().find(is_inward).filter(|_| is_copied) else { continue };
            let number = |name| link.attribute(name).and_then(attr::as_float);
            let numbers = number("bandwidth").zip(number("latency"));
            device.link_from_host =
                numbers.map(|(bytes_per_s, latency)| Link { bytes_per_s, latency_us: latency * 1e6 });
        }
    }

    fn device(&self, name: &str) -> Option<usize> {
        self.device_names.iter().position(|device| *device == name)
    }

    /// Returns the device that holds model inputs and outputs.
    fn host(&self) -> usize {
        device::host(self.program.devices.iter().map(|device| &device.kind[..]))
    }

    /// Returns the device of the first launch or transfer that reads an argument, or `host`.
    fn reading_device(&self, argument: Value<'m>, host: usize) -> usize {
        let device = |user: Operation<'m>| match user.name() {
            op::LAUNCH => self.device(symbol(user, attr::LAUNCH_DEVICE)),
            op::TRANSFER => self.device(symbol(user, attr::FROM)),
            _ => None,
        };
        argument.uses().into_iter().find_map(|(user, _)| device(user)).unwrap_or(host)
    }

    fn value(
        &mut self,
        operation: Operation<'m>,
        value: Value<'m>,
        name: &str,
        device: usize,
    ) -> Result<usize, Failure> {
        let (dtype, shape) = static_type(operation, value).map_err(Refusal::emit)?;
        let tensor = tensor(&GraphValue { dtype, shape, constant: None });
        let index = self.program.values.len();
        self.program.values.push(Stored { name: name.to_owned(), device, tensor, constant: None });
        self.places.insert(value, index);
        Ok(index)
    }

    fn place(&self, reader: Operation<'m>, value: Value<'m>) -> Result<usize, Failure> {
        self.places.get(&value).copied().ok_or_else(|| {
            error(reader, &format!("{} reads a value that no step of the plan computes", describe(reader)));
            Failure
        })
    }

    fn places(&self, reader: Operation<'m>) -> Result<Vec<usize>, Failure> {
        reader.operands().into_iter().map(|value| self.place(reader, value)).collect()
    }

    /// Adds the result of a step, named after the operand that it comes from.
    fn result(&mut self, operation: Operation<'m>, of: usize, device: usize) -> Result<usize, Failure> {
        let name = self.program.values[of].name.clone();
        self.value(operation, operation.results()[0], &name, device)
    }

    /// Returns the axis of a slice or gather, and the number of contiguous blocks that have a part of each input: the extents before
    /// the axis, times the parts within it (`outer` in the IR).
    fn axis(&self, operation: Operation<'m>, output: usize) -> (usize, u64) {
        let axis = integer(operation, attr::AXIS) as usize;
        let before = &self.program.values[output].tensor.shape[..axis];
        (axis, before.iter().product::<u64>() * integer(operation, attr::OUTER))
    }

    fn step(&mut self, operation: Operation<'m>) -> Result<(), Failure> {
        let (action, duration_us) = match operation.name() {
            op::RETURN | "onnx.Return" | "onnx.NoValue" => return Ok(()),
            ONNX_CONSTANT => return self.constant(operation),
            op::LAUNCH => self.launch(operation)?,
            op::TRANSFER => {
                let input = self.places(operation)?[0];
                let device = self.device(symbol(operation, attr::TO)).unwrap_or(0);
                let output = self.result(operation, input, device)?;
                let takes = self.transfer_time(operation, self.program.values[input].tensor.bytes);
                (Action::Transfer { input, output }, takes)
            }
            op::SLICE => {
                let input = self.places(operation)?[0];
                let output = self.result(operation, input, self.program.values[input].device)?;
                let positions = integers(operation, attr::POSITIONS);
                let of = integer(operation, attr::COUNT);
                let (axis, outer) = self.axis(operation, output);
                (Action::Slice { input, output, positions, of, axis, outer }, None)
            }
            op::GATHER => {
                let inputs = self.places(operation)?;
                let device = inputs.first().map_or(0, |&input| self.program.values[input].device);
                let output = self.result(operation, inputs.first().copied().unwrap_or(0), device)?;
                let (axis, outer) = self.axis(operation, output);
                (Action::Gather { inputs, output, of: integers(operation, attr::COUNTS), axis, outer }, None)
            }
            _ => return Err(refuse(operation)),
        };
        let start_us = operation.get(attr::START);
        let inputs = match action {
            Action::Launch { .. } if self.program.objective.inputs > 1 => integers(operation, attr::INPUTS),
            _ => vec![],
        };
        self.program.steps.push(Step { action, start_us, duration_us, inputs });
        Ok(())
    }

    /// Adds a constant of the entry function: an output that no step computes.
    fn constant(&mut self, operation: Operation<'m>) -> Result<(), Failure> {
        let result = operation.results()[0];
        if result.uses().is_empty() {
            return Ok(());
        }
        let constant = self.constants.find(operation).map_err(|message| {
            error(operation, &format!("{} {message}", describe(operation)));
            Failure
        })?;
        let value = self.value(operation, result, "constant", self.host())?;
        let bytes = self.program.values[value].tensor.bytes;
        self.program.values[value].constant = Some(self.program.constants.len());
        self.program.constants.push((constant.source, bytes));
        Ok(())
    }

    fn launch(&mut self, launch: Operation<'m>) -> Result<(Action, Option<f64>), Failure> {
        let inputs = self.places(launch)?;
        let (callee, device_name) = (symbol(launch, attr::CALLEE), symbol(launch, attr::LAUNCH_DEVICE));
        let Some(device) = self.device(device_name) else {
            error(launch, &format!("{} is on @{device_name}, which is not declared", describe(launch)));
            return Err(Failure);
        };
        let batch = integers(launch, attr::INPUTS).len().max(1) as u64;
        let stage = match self.program.stages.iter().position(|stage| stage.name == callee) {
            Some(stage) => stage,
            None => {
                let stage = self.stage(launch, callee, device, batch)?;
                self.program.stages.push(stage);
                self.program.stages.len() - 1
            }
        };
        let mut outputs = vec![];
        for (i, result) in launch.results().into_iter().enumerate() {
            outputs.push(self.value(launch, result, &format!("{callee}.{i}"), device)?);
        }
        let times = self.program.stages[stage].tasks.iter().map(|task| task.predicted_us);
        Ok((Action::Launch { stage, inputs, outputs }, times.sum()))
    }

    fn stage(
        &mut self,
        launch: Operation<'m>,
        callee: &str,
        device: usize,
        batch: u64,
    ) -> Result<StageProgram, Failure> {
        let Some(&function) = self.functions.get(callee) else {
            error(launch, &format!("{} launches @{callee}, which is not defined", describe(launch)));
            return Err(Failure);
        };
        let read = graph::read(function, self.constants)?;
        let tasks = read.tasks.into_iter().map(|task| Task {
            name: task_name(task).to_owned(),
            predicted_us: predicted(task, self.device_names[device], batch),
            profile: crate::cost::profile_entry(task, batch * self.model_batch),
            has_host_weights: self.has_own_memory(device) && keeps_weights_on_host(task),
        });
        Ok(StageProgram { name: callee.to_owned(), device, tasks: tasks.collect(), graph: read.graph })
    }

    /// Returns the predicted time of a transfer of `bytes`, in µs.
    fn transfer_time(&self, transfer: Operation<'m>, bytes: u64) -> Option<f64> {
        let ends = |op| (symbol(op, attr::FROM), symbol(op, attr::TO));
        let link = *self.links.iter().find(|&&link| ends(link) == ends(transfer))?;
        let number = |name| link.attribute(name).and_then(attr::as_float);
        Some((bytes as f64 / number("bandwidth")? + number("latency")?) * 1e6)
    }
}

/// Returns the predicted time of a task on a device at a batch size, in µs.
fn predicted(task: Operation<'_>, device: &str, batch: u64) -> Option<f64> {
    let of_device = task.get(attr::COST)?.entries().into_iter().filter(|cost| cost.device == device);
    of_device.into_iter().find(|cost| cost.batch == batch as i64).map(|cost| cost.micros)
}
