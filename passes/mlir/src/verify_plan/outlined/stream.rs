//! Follows values through launches, transfers, slices and gathers.

use super::{
    stage::Stage,
    value::{Located, Part},
};
use crate::{
    ir::describe,
    tasks::{is_constant_value, reads},
    verify_plan::{
        Findings,
        buses::{Buses, too_short},
        certificate::{Certificate, Objective},
        exceeds, list,
        machine::{Contention, Machine},
        memory::LiveRange,
        micros, size,
        turns::{End, Passed},
    },
};
use divi_dialect::{Operation, Value, attr};
use divi_planner::units::{Bytes, Micros};
use rustc_hash::{FxHashMap, FxHashSet};
use std::collections::{BTreeMap, BTreeSet};

/// Stage or model input that computes a tensor.
#[derive(Clone, Copy)]
struct Source {
    end: End,
    /// Number of the result of the stage.
    result: usize,
    /// Bytes for one input.
    bytes: Bytes,
}

/// State of the walk over the entry function.
pub(super) struct Stream<'a, 'm> {
    machine: &'a Machine,
    certificate: &'a Certificate<'m>,
    pub(super) stages: Vec<Stage<'m>>,
    /// Number of arguments of the entry function.
    arguments: usize,
    /// Location of each value, without constants, which are on all devices.
    values: FxHashMap<Value<'m>, Located>,
    /// Name of each origin, independent of the launch that computes it; `None` if the model has no name for it.
    origins: Vec<Option<String>>,
    /// Stage or model input that each origin comes from; `None` outside pipelines.
    sources: Vec<Option<Source>>,
    /// Origins that each stage, or output of the model, reads.
    read: BTreeSet<(usize, End)>,
    /// Devices that parts are on, or have been transferred to.
    there: BTreeSet<(Part, usize)>,
    buffers: Vec<LiveRange>,
    buses: Buses<'a, 'm>,
    /// Tasks whose results all inputs share.
    pub(super) shared: FxHashSet<Operation<'m>>,
    /// Time at which all outputs are on the host.
    done: Micros,
}

impl<'a, 'm> Stream<'a, 'm> {
    pub(super) fn new(arguments: &[Value<'m>], machine: &'a Machine, certificate: &'a Certificate<'m>) -> Self {
        let mut stream = Self {
            machine,
            certificate,
            stages: vec![],
            arguments: arguments.len(),
            values: FxHashMap::default(),
            origins: vec![],
            sources: vec![],
            read: BTreeSet::new(),
            there: BTreeSet::new(),
            buffers: vec![],
            buses: Buses::new(machine),
            shared: FxHashSet::default(),
            done: Micros::ZERO,
        };
        // The batch is the first dimension of the first argument that has one, and of all arguments of the same size.
        let first = |value: Value<'m>| value.tensor_type()?.shape?.first().copied();
        let batch = arguments.iter().copied().find_map(first);
        for (i, &argument) in arguments.iter().enumerate() {
            let is_queued = !certificate.is_queued || first(argument) == batch;
            let inputs: Vec<i64> = (0..certificate.inputs).collect();
            let source = Source {
                end: End::Port(i),
                result: 0,
                bytes: size(argument) / if is_queued { inputs.len() as f64 } else { 1.0 },
            };
            let origin = stream.origin(Some(format!("argument {i}")), Some(source));
            let value = stream.made(
                argument,
                origin,
                is_queued.then_some(&inputs[..]),
                machine.host,
                (Micros::ZERO, Micros::ZERO),
            );
            stream.values.insert(argument, value);
        }
        stream
    }

    fn origin(&mut self, name: Option<String>, source: Option<Source>) -> usize {
        self.origins.push(name);
        self.sources.push(source);
        self.origins.len() - 1
    }

    /// Adds a new value, whose memory is live from `from` and which is ready at `ready`.
    fn made(
        &mut self,
        value: Value<'m>,
        origin: usize,
        inputs: Option<&[i64]>,
        device: usize,
        (from, ready): (Micros, Micros),
    ) -> Located {
        let parts: Vec<Part> = match inputs {
            Some(inputs) => inputs.iter().map(|&input| Part { origin, input: Some(input) }).collect(),
            None => vec![Part { origin, input: None }],
        };
        self.there.extend(parts.iter().map(|&part| (part, device)));
        let buffers = vec![self.buffer(value, device, from, ready)];
        Located { device, parts, buffers, ready }
    }

    fn buffer(&mut self, value: Value<'m>, device: usize, from: Micros, until: Micros) -> usize {
        self.buffers.push(LiveRange { device, bytes: size(value), from, until });
        self.buffers.len() - 1
    }

    fn hold(&mut self, buffers: &[usize], until: Micros) {
        for &buffer in buffers {
            self.buffers[buffer].until = self.buffers[buffer].until.max(until);
        }
    }

    fn operand(&self, operation: Operation<'m>, index: usize) -> Option<Located> {
        self.values.get(operation.operands().get(index)?).cloned()
    }

    fn set(&mut self, operation: Operation<'m>, index: usize, value: Located) {
        if let Some(&result) = operation.results().get(index) {
            self.values.insert(result, value);
        }
    }

    pub(super) fn transfer(&mut self, operation: Operation<'m>, findings: &mut Findings) {
        let end = |key| operation.get(key).and_then(|name| self.machine.find(name));
        let (Some(value), Some(from), Some(to)) = (self.operand(operation, 0), end(attr::FROM), end(attr::TO)) else {
            if operation.operands().into_iter().all(is_constant_value) {
                findings.add(operation, "transfers a constant, which is available on all devices: remove the transfer");
            }
            // Errors of other operands have been reported.
            return;
        };
        let (here, there) = (self.machine.label(from), self.machine.label(to));
        let time = self.machine.transfer(from, to, size(operation.operand(0)));
        if time.is_none() {
            let message = format!(
                "moves a tensor from {here} to {there}, but no link leads there: declare 'divi.link {here} -> {there} {{…}}'"
            );
            findings.add(operation, &message);
        }
        let start = operation.get(attr::START).map(Micros);
        if start.is_none() {
            findings.add(operation, "moves a tensor, but has no divi.start: outline again");
        }
        let start = start.unwrap_or(value.ready);
        if exceeds(value.ready, start) {
            let message = format!(
                "moves {} from {here} at {}, but it is ready at {}: start it {} later",
                self.called(&value),
                micros(start),
                micros(value.ready),
                micros(value.ready - start)
            );
            findings.add(operation, &message);
        }
        if value.parts.iter().any(|&part| self.there.contains(&(part, to))) {
            let message = format!("moves {} to {there}, where it is already: use it from there", self.called(&value));
            findings.add(operation, &message);
        }
        self.there.extend(value.parts.iter().map(|&part| (part, to)));
        let ready = self.arrival(operation, (from, to), (start, time.unwrap_or_default()), &value, findings);
        self.hold(&value.buffers, ready);
        let buffers = vec![self.buffer(operation.operand(0), to, start, ready)];
        self.set(operation, 0, Located { device: to, parts: value.parts, buffers, ready });
    }

    /// Returns the end of a transfer: its start plus its duration without contention, otherwise as stated. In a
    /// pipeline, the load of buses is checked instead.
    fn arrival(
        &mut self,
        operation: Operation<'m>,
        (from, to): (usize, usize),
        (start, time): (Micros, Micros),
        value: &Located,
        findings: &mut Findings,
    ) -> Micros {
        if self.machine.contention == Contention::Off || self.certificate.objective == Objective::Pipeline {
            return start + time;
        }
        let Some(end) = operation.get(attr::END).map(Micros).filter(|end| end.is_finite()) else {
            findings
                .add(operation, "moves a tensor, but has no divi.end, though others may be on its bus: outline again");
            return start + time;
        };
        let (here, there) = (self.machine.label(from), self.machine.label(to));
        let what = format!("the transfer of {} from {here} to {there}", self.called(value));
        if let Some(problem) = too_short((start, end), time) {
            findings.add(operation, &format!("{what} goes {problem}"));
        }
        self.buses.take((from, to), size(operation.operand(0)), (start, end), operation, what);
        end
    }

    /// Returns the transfers on buses.
    pub(super) fn take_buses(&mut self) -> Buses<'a, 'm> {
        std::mem::replace(&mut self.buses, Buses::new(self.machine))
    }

    pub(super) fn slice(&mut self, operation: Operation<'m>, findings: &mut Findings) {
        let Some(value) = self.operand(operation, 0) else { return };
        let count = operation.attribute("count").and_then(attr::as_integer).unwrap_or(0);
        let positions = operation.attribute("positions").and_then(attr::as_integers).unwrap_or_default();
        if let Some(message) = self.miscounted(&value, count) {
            findings.add(operation, &message);
            return;
        }
        // The dialect's verifier has checked that positions are below the count.
        let parts = positions.iter().filter_map(|&at| value.parts.get(usize::try_from(at).ok()?).copied()).collect();
        self.set(operation, 0, Located { parts, ..value });
    }

    pub(super) fn gather(&mut self, operation: Operation<'m>, findings: &mut Findings) {
        let counts = operation.attribute("counts").and_then(attr::as_integers).unwrap_or_default();
        let mut together: Option<Located> = None;
        for (i, &count) in counts.iter().enumerate() {
            let Some(value) = self.operand(operation, i) else { return };
            if let Some(message) = self.miscounted(&value, count) {
                findings.add(operation, &message);
                return;
            }
            let Some(all) = &mut together else {
                together = Some(value);
                continue;
            };
            if all.device != value.device {
                let (here, there) = (self.machine.label(all.device), self.machine.label(value.device));
                let message = format!("gathers values on {here} and on {there}: transfer one of them first");
                findings.add(operation, &message);
            }
            all.parts.extend(value.parts);
            all.buffers.extend(value.buffers);
            all.ready = all.ready.max(value.ready);
        }
        let Some(together) = together else { return };
        let mut names = together.parts.iter().filter_map(|part| self.origins[part.origin].as_ref());
        if let Some(a) = names.next()
            && let Some(b) = names.find(|b| *b != a)
        {
            findings.add(operation, &format!("gathers different tensors, {a} and {b}: outline again"));
        }
        self.set(operation, 0, together);
    }

    fn miscounted(&self, value: &Located, count: i64) -> Option<String> {
        match value.inputs() {
            None => Some(format!("takes inputs of {}, which all inputs share: use it directly", self.called(value))),
            Some(inputs) if inputs.len() as i64 != count => Some(format!(
                "takes {} for {count} inputs, but it is for {}: {}",
                self.called(value),
                inputs.len(),
                list(&inputs)
            )),
            Some(_) => None,
        }
    }

    /// Runs a stage on its operands.
    pub(super) fn launch(&mut self, stage: Stage<'m>, findings: &mut Findings) {
        let mut bound: FxHashMap<Value<'m>, Located> = FxHashMap::default();
        for (i, &argument) in stage.arguments.iter().enumerate() {
            let Some(value) = self.operand(stage.launch, i) else { continue };
            self.check_operand(&stage, i, &value, findings);
            let origins = value.parts.iter().map(|part| part.origin);
            self.read.extend(
                stage.number.iter().flat_map(|&number| origins.clone().map(move |origin| (origin, End::Stage(number)))),
            );
            bound.insert(argument, value);
        }
        let mut results = 0;
        for step in &stage.steps {
            let (mut is_queued, operation) = (false, step.task.operation);
            for value in reads(operation) {
                let Some(read) = bound.get(&value) else { continue };
                is_queued |= read.inputs().is_some();
                let buffers = read.buffers.clone();
                self.hold(&buffers, step.end);
            }
            if !is_queued {
                self.shared.insert(operation);
            }
            for (i, result) in operation.results().into_iter().enumerate() {
                let name = format!("result {i} of '{}'", step.name);
                let source = stage.number.map(|number| Source {
                    end: End::Stage(number),
                    result: results,
                    bytes: size(result) / if is_queued { stage.inputs.len() as f64 } else { 1.0 },
                });
                results += 1;
                let origin = self.origin((!step.is_auxiliary).then_some(name), source);
                let inputs = is_queued.then_some(&stage.inputs[..]);
                let made = self.made(result, origin, inputs, stage.device, (step.start, step.end));
                bound.insert(result, made);
            }
            let bytes = step.task.scratch * stage.inputs.len() as f64;
            self.buffers.push(LiveRange { device: stage.device, bytes, from: step.start, until: step.end });
        }
        for (i, value) in stage.returned.iter().enumerate() {
            if let Some(mut value) = bound.get(value).cloned() {
                value.ready = stage.end;
                self.hold(&value.buffers, stage.end);
                self.set(stage.launch, i, value);
            }
        }
        self.stages.push(stage);
    }

    /// Checks that an operand of a launch is on the device in time, and for the right inputs.
    fn check_operand(&self, stage: &Stage<'m>, index: usize, value: &Located, findings: &mut Findings) {
        let (name, on) = (stage.name(), self.machine.label(stage.device));
        let mut wrong = |message: String| findings.add(stage.launch, &message);
        if exceeds(value.ready, stage.start) {
            wrong(format!(
                "@{name} starts at {} on {on}, but its operand {index}, {}, is ready at {}: start it {} later",
                micros(stage.start),
                self.called(value),
                micros(value.ready),
                micros(value.ready - stage.start)
            ));
        }
        // The types agree, so a value of another number of inputs does not depend on them.
        let is_other = |inputs: &Vec<i64>| *inputs != stage.inputs && inputs.len() == stage.inputs.len();
        if let Some(inputs) = value.inputs().filter(is_other) {
            wrong(format!(
                "@{name} is for inputs {}, but its operand {index}, {}, is for inputs {}: slice and gather these",
                list(&stage.inputs),
                self.called(value),
                list(&inputs)
            ));
        }
    }

    /// Checks that the function returns values on the host, for all inputs in order.
    pub(super) fn returned(&mut self, end: Operation<'m>, function: Operation<'m>, findings: &mut Findings) {
        let all: Vec<i64> = (0..self.certificate.inputs).collect();
        for i in 0..end.operand_count() {
            let Some(value) = self.operand(end, i) else { continue };
            if value.device != self.machine.host {
                let message = format!(
                    "{} returns result {i} from {}: transfer it to {}, where outputs belong",
                    describe(function),
                    self.machine.label(value.device),
                    self.machine.label(self.machine.host)
                );
                findings.add(end, &message);
            }
            if let Some(inputs) = value.inputs().filter(|inputs| *inputs != all) {
                let message = format!(
                    "{} returns result {i} for inputs {}: it must be for inputs {}, in that order",
                    describe(function),
                    list(&inputs),
                    list(&all)
                );
                findings.add(end, &message);
            }
            let port = End::Port(self.arguments + i);
            self.read.extend(value.parts.iter().map(|part| (part.origin, port)));
            self.hold(&value.buffers, value.ready);
            self.done = self.done.max(value.ready);
        }
    }

    /// Returns the name of a value in messages.
    fn called(&self, value: &Located) -> &str {
        value.parts.first().and_then(|part| self.origins[part.origin].as_deref()).unwrap_or("a tensor")
    }

    /// Returns the tensors that stages of a pipeline, and the model's inputs and outputs, pass to others.
    pub(super) fn passed(&self) -> Vec<Passed> {
        let mut passed: BTreeMap<(End, usize), Passed> = BTreeMap::new();
        for (origin, to) in &self.read {
            let Some(Source { end, result, bytes }) = self.sources[*origin] else { continue };
            let entry = passed.entry((end, result)).or_insert_with(|| Passed { from: end, bytes, to: BTreeSet::new() });
            entry.to.insert(*to);
        }
        passed.into_values().collect()
    }

    pub(super) fn live_ranges(&self) -> &[LiveRange] {
        &self.buffers
    }

    pub(super) fn makespan(&self) -> Micros {
        self.stages.iter().map(|stage| stage.end).fold(self.done, Micros::max)
    }
}
