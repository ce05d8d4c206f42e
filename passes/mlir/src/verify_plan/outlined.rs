//! Verifies plans that `divi-outline` has outlined: one function per stage, launches and transfers.

mod coverage;
mod stage;
mod stream;
mod value;

use super::{
    Findings,
    certificate::{Certificate, Objective},
    copies::{self, Placed},
    exceeds,
    graph::Graph,
    machine::Machine,
    memory::{self, Work},
    micros,
    pipeline::Pipeline,
    runs::{Run, Runs, check_groups},
    turns::{Held, StageLaunch, Turns},
};
use crate::{
    ir::describe,
    tasks::{is_constant, is_constant_value, reads},
};
use divi_dialect::{Operation, Value, attr, op};
use divi_planner::units::Micros;
use stage::{Functions, Stage};
use std::collections::{BTreeMap, BTreeSet};
use stream::Stream;

pub(super) fn verify<'m>(
    module: Operation<'m>,
    function: Operation<'m>,
    machine: &Machine,
    certificate: &Certificate<'m>,
    findings: &mut Findings,
) {
    let &[body] = &function.blocks()[..] else {
        findings.add(function, "has several blocks, so its stages have no order: outline again");
        return;
    };
    let all = module.children().into_iter().filter(|operation| operation.name() == op::FUNC);
    let functions: Functions<'_> = all.filter_map(|operation| Some((operation.symbol_name()?, operation))).collect();
    let mut stream = Stream::new(&body.arguments(), machine, certificate);
    let mut launched = BTreeSet::new();
    let mut is_complete = true;
    let mut end = None;
    for operation in body.operations() {
        match operation.name() {
            op::LAUNCH => {
                launched.extend(operation.get(attr::CALLEE));
                match Stage::of(operation, &functions, machine, certificate, findings) {
                    Some(stage) => stream.launch(stage, findings),
                    None => is_complete = false,
                }
            }
            op::TRANSFER => stream.transfer(operation, findings),
            op::SLICE => stream.slice(operation, findings),
            op::GATHER => stream.gather(operation, findings),
            op::RETURN | "onnx.Return" => end = Some(operation),
            _ if is_constant(operation) => {}
            _ => {
                let message =
                    format!("{} is not in a stage: outline again from the planned module", describe(operation));
                findings.add(operation, &message);
                is_complete = false;
            }
        }
    }
    if let Some(end) = end {
        stream.returned(end, function, findings);
    }
    coverage::check_launches(&stream.stages, &launched, &functions, function, certificate, findings);
    if !is_complete {
        return;
    }
    check_overlaps(&stream.stages, machine, findings);
    let mut buses = stream.take_buses();
    let steps = || stream.stages.iter().flat_map(|stage| stage.steps.iter().map(move |step| (stage, step)));
    check_groups(steps().map(|(stage, step)| (&step.task, stage.device, &stage.inputs[..])), machine, findings);
    let found = match certificate.objective {
        Objective::Pipeline if certificate.is_queued => {
            coverage::check_inputs(&stream, certificate, findings);
            match turns(module, &stream, machine, certificate, findings) {
                Some(found) => found,
                None => return,
            }
        }
        Objective::Pipeline => {
            let end = end.map(Operation::operands).unwrap_or_default();
            pipeline(module, &body.arguments(), &body.operations(), &end, stream.stages, machine, certificate, findings)
        }
        Objective::Latency | Objective::Batch => {
            if certificate.objective == Objective::Batch {
                coverage::check_inputs(&stream, certificate, findings);
            }
            let mut held = coverage::HeldTasks::default();
            let work: Vec<_> = steps()
                .map(|(stage, step)| Work {
                    task: &step.task,
                    device: stage.device,
                    start: step.start,
                    has_weights: held.add(stage, step),
                })
                .collect();
            let mut live_ranges = stream.live_ranges().to_vec();
            for (stage, step) in steps() {
                let placed = Placed { task: &step.task, device: stage.device, start: step.start, end: step.end };
                copies::check(&placed, machine, &mut buses, &mut live_ranges, findings);
            }
            buses.check(findings);
            memory::check(&live_ranges, &work, machine, module, findings);
            stream.makespan()
        }
    };
    certificate.check(found, findings);
    if !findings.is_failed && !certificate.is_bound_of_stages_proven(findings) {
        certificate.tell_unproven(found, "divi-inline-stages");
    }
}

/// Checks that a device runs one stage at a time.
fn check_overlaps(stages: &[Stage<'_>], machine: &Machine, findings: &mut Findings) {
    let mut order: Vec<&Stage<'_>> = stages.iter().collect();
    order.sort_by(|a, b| a.start.total_cmp(&b.start).then(a.end.total_cmp(&b.end)));
    let mut last: Vec<Option<&Stage<'_>>> = machine.devices.iter().map(|_| None).collect();
    for stage in order {
        let running = &mut last[stage.device];
        if let Some(before) = running.filter(|before| exceeds(before.end, stage.start)) {
            let message = format!(
                "@{} starts at {} on {}, where @{} runs until {}: start it {} later",
                stage.name(),
                micros(stage.start),
                machine.label(stage.device),
                before.name(),
                micros(before.end),
                micros(before.end - stage.start)
            );
            findings.add(stage.launch, &message);
        }
        if running.is_none_or(|before| stage.end > before.end) {
            *running = Some(stage);
        }
    }
}

/// Verifies a pipeline of batches by the launches of a request. Returns its bottleneck; `None` if that is unknown.
fn turns<'m>(
    module: Operation<'m>,
    stream: &Stream<'_, 'm>,
    machine: &Machine,
    certificate: &Certificate<'m>,
    findings: &mut Findings,
) -> Option<Micros> {
    let mut launches = vec![];
    let mut held = vec![];
    let mut first: BTreeMap<i64, &Stage<'m>> = BTreeMap::new();
    for stage in &stream.stages {
        let number = stage.number?;
        launches.push(StageLaunch {
            stage: number,
            task: 0,
            device: stage.device,
            inputs: stage.inputs.clone(),
            time: stage.end - stage.start,
            operation: stage.launch,
            name: format!("launch of @{}", stage.name()),
        });
        let is_first = !first.contains_key(&number);
        let other = *first.entry(number).or_insert(stage);
        if stage.function != other.function && !stage.is_same(other) {
            let message = format!(
                "@{} has stage {number} like @{}, but other tasks: outline again from the planned module",
                stage.name(),
                other.name()
            );
            findings.add(stage.launch, &message);
        }
        for step in stage.steps.iter().filter(|step| is_first && !step.is_auxiliary) {
            // The operands in divi.input_bytes are for one input.
            let inputs = stage.inputs.len() as f64;
            let is_stated = step.task.operation.has(attr::INPUT_BYTES);
            let input = if is_stated { step.task.input } else { step.task.input / inputs };
            held.push(Held {
                stage: number,
                weight: step.task.weight,
                values: input + step.task.output() / inputs,
                operation: step.task.operation,
                name: step.name.clone(),
            });
        }
    }
    let pipeline = Turns::of(&launches, machine, certificate, findings)?;
    Some(pipeline.verify(module, &stream.passed(), &held, findings))
}

/// Verifies a pipeline by the tasks in all stages. Returns its bottleneck.
#[expect(clippy::too_many_arguments, reason = "parts of a function, and the plan")]
fn pipeline<'m>(
    module: Operation<'m>,
    arguments: &[Value<'m>],
    body: &[Operation<'m>],
    returned: &[Value<'m>],
    stages: Vec<Stage<'m>>,
    machine: &Machine,
    certificate: &Certificate<'_>,
    findings: &mut Findings,
) -> Micros {
    let mut graph = Graph::default();
    let mut runs = Runs { all: vec![], of_node: vec![] };
    let mut number = vec![];
    let mut place = |node: usize, device: usize, time: Micros, start: Micros, stage: Option<i64>| {
        runs.of_node.push(vec![runs.all.len()]);
        runs.all.push(Run { node, device, inputs: vec![0], start, end: start + time });
        number.push(stage);
    };
    for &argument in arguments {
        graph.input(argument);
        place(graph.nodes.len() - 1, machine.host, Micros::ZERO, Micros::ZERO, None);
    }
    let mut stages = stages.into_iter();
    for &operation in body {
        match operation.name() {
            op::TRANSFER => {
                let moved = operation.operands().into_iter().zip(operation.results());
                moved.for_each(|(from, to)| graph.alias(to, from));
            }
            op::LAUNCH => {
                let Some(stage) = stages.next() else { break };
                for (argument, operand) in stage.arguments.into_iter().zip(operation.operands()) {
                    graph.alias(argument, operand);
                }
                for step in stage.steps {
                    let reads: Vec<_> =
                        reads(step.task.operation).into_iter().filter(|&value| !is_constant_value(value)).collect();
                    graph.task(step.task, &reads);
                    let node = graph.nodes.len() - 1;
                    place(node, stage.device, step.end - step.start, step.start, stage.number);
                }
                for (value, result) in stage.returned.into_iter().zip(operation.results()) {
                    graph.alias(result, value);
                }
            }
            _ => {}
        }
    }
    for &value in returned {
        let before = graph.nodes.len();
        graph.output(value);
        (before..graph.nodes.len()).for_each(|node| place(node, machine.host, Micros::ZERO, Micros::ZERO, None));
    }
    let pipeline = Pipeline { graph: &graph, runs: &runs, stage: &number, machine, certificate };
    pipeline.verify(module, findings)
}
