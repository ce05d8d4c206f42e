//! Verifies plans that `divi-partition` has written: every task has its device and start.

use super::{
    Findings,
    buses::Buses,
    certificate::{Certificate, Objective},
    copies::{self, Placed},
    edited, flow,
    graph::Graph,
    machine::{Contention, Machine},
    memory,
    moves::Moves,
    pipeline::Pipeline,
    runs::{Run, Runs, check_groups},
    turns::{End, Held, Passed, StageLaunch, Turns},
};
use crate::{
    decisions,
    ir::{Failure, describe},
    tasks::Tasks,
};
use divi_dialect::{Operation, attr};
use divi_planner::units::Micros;
use std::collections::BTreeSet;

pub(super) fn verify(
    module: Operation<'_>,
    function: Operation<'_>,
    machine: &Machine,
    certificate: &Certificate<'_>,
    findings: &mut Findings,
) -> Result<(), Failure> {
    let tasks = Tasks::of(function)?;
    let is_moved =
        certificate.decisions.as_ref().is_some_and(|known| *known != decisions::fingerprint(&tasks.operations));
    let is_proven = certificate.is_bound_proven(findings);
    let is_edited = is_moved || !is_proven;
    if is_edited && machine.is_cold {
        let message = "was edited after planning, and its copies of parameters are for the old placement: run \
                       divi-partition again";
        findings.add(module, message);
        return Ok(());
    }
    let graph = Graph::of(&tasks, findings);
    let Some(runs) = Runs::of(&graph, machine, certificate, findings) else { return Ok(()) };
    let placed = runs.all.iter().filter_map(|run| Some((graph.nodes[run.node].task()?, run.device, &run.inputs[..])));
    check_groups(placed, machine, findings);
    let found = match certificate.objective {
        Objective::Pipeline if certificate.is_queued => {
            turns(module, &graph, runs, is_edited, machine, certificate, findings)
        }
        Objective::Pipeline => pipeline(module, &graph, &runs, is_edited, machine, certificate, findings),
        Objective::Latency | Objective::Batch => {
            let moves = (machine.contention != Contention::Off).then(|| Moves::of(&tasks, &graph, &runs, machine));
            Some(schedule(module, &graph, runs, moves, is_edited, machine, findings))
        }
    };
    let Some(found) = found else { return Ok(()) };
    if !is_edited {
        certificate.check(found, findings);
    } else if !findings.is_failed && is_proven {
        certificate.tell_edited(found);
    } else if !findings.is_failed {
        certificate.tell_unproven(found, "divi-outline");
    }
    Ok(())
}

/// Verifies starts, or recomputes them if the plan was edited, and returns the makespan. Under contention, transfers
/// have stated times.
fn schedule(
    module: Operation<'_>,
    graph: &Graph<'_>,
    mut runs: Runs,
    moves: Option<Moves<'_>>,
    is_edited: bool,
    machine: &Machine,
    findings: &mut Findings,
) -> Micros {
    let mut buses = Buses::new(machine);
    let mut dependences = flow::dependences(graph, &runs, machine, findings);
    moves.iter().for_each(|moves| moves.apply(&runs, &mut dependences));
    if is_edited && moves.is_some() {
        flow::settle_outputs(graph, &mut runs, &dependences);
        edited::retime_on_buses(graph, &mut runs, &mut dependences, machine);
    } else if is_edited {
        edited::retime(graph, &mut runs, &dependences, machine.devices.len());
    } else {
        moves.iter().for_each(|moves| moves.check(graph, &runs, &dependences, machine, &mut buses, findings));
        flow::settle_outputs(graph, &mut runs, &dependences);
        flow::check_arrivals(graph, &runs, &dependences, machine, findings);
        flow::check_overlaps(graph, &runs, machine, findings);
    }
    let mut has_run = BTreeSet::new();
    let work: Vec<_> = runs
        .all
        .iter()
        .filter_map(|run| {
            let task = graph.nodes[run.node].task()?;
            let has_weights = has_run.insert((run.node, run.device));
            Some(memory::Work { task, device: run.device, start: run.start, has_weights })
        })
        .collect();
    let mut live_ranges = memory::live_ranges(graph, &runs, &dependences);
    for run in &runs.all {
        if let Some(task) = graph.nodes[run.node].task() {
            let placed = Placed { task, device: run.device, start: run.start, end: run.end };
            copies::check(&placed, machine, &mut buses, &mut live_ranges, findings);
        }
    }
    buses.check(findings);
    memory::check(&live_ranges, &work, machine, module, findings);
    runs.makespan()
}

/// Verifies a pipeline of batches and returns its bottleneck; `None` if that is unknown. The starts are those of a request
/// that has the devices to itself.
fn turns<'m>(
    module: Operation<'m>,
    graph: &Graph<'m>,
    mut runs: Runs,
    is_edited: bool,
    machine: &Machine,
    certificate: &Certificate<'m>,
    findings: &mut Findings,
) -> Option<Micros> {
    let stage = stages(graph, findings)?;
    let mut launches = vec![];
    let mut held = vec![];
    for (node, task) in graph.tasks() {
        let number = stage[node]?;
        launches.extend(runs.of_node[node].iter().map(|&run| {
            let Run { device, start, end, ref inputs, .. } = runs.all[run];
            let name = describe(task.operation);
            let (inputs, operation) = (inputs.clone(), task.operation);
            StageLaunch { stage: number, task: node, device, inputs, time: end - start, operation, name }
        }));
        let values = task.input + task.output();
        let name = task.name().to_owned();
        held.push(Held { stage: number, weight: task.weight, values, operation: task.operation, name });
    }
    let end = |node: usize| stage[node].map_or(End::Port(node), End::Stage);
    let passed = graph.tensors.iter().map(|tensor| {
        let from = end(tensor.from);
        let to = tensor.to.iter().map(|&to| end(to)).filter(|to| *to != from).collect();
        Passed { from, bytes: tensor.bytes, to }
    });
    let passed: Vec<Passed> = passed.filter(|tensor| !tensor.to.is_empty()).collect();
    let pipeline = Turns::of(&launches, machine, certificate, findings)?;
    let found = pipeline.verify(module, &passed, &held, findings);
    if !is_edited {
        let dependences = flow::dependences(graph, &runs, machine, findings);
        flow::settle_outputs(graph, &mut runs, &dependences);
        flow::check_arrivals(graph, &runs, &dependences, machine, findings);
        flow::check_overlaps(graph, &runs, machine, findings);
    }
    Some(found)
}

/// Returns the stage of each node that is a task; `None` if one is missing.
fn stages(graph: &Graph<'_>, findings: &mut Findings) -> Option<Vec<Option<i64>>> {
    let mut stage = vec![None; graph.nodes.len()];
    let mut is_complete = true;
    for (node, task) in graph.tasks() {
        stage[node] = task.operation.get(attr::STAGE);
        if stage[node].is_none() {
            let name = describe(task.operation);
            findings.add(task.operation, &format!("{name} has no divi.stage: give it one, or run divi-partition"));
            is_complete = false;
        }
    }
    is_complete.then_some(stage)
}

/// Verifies a pipeline and returns its bottleneck; `None` if a task has no stage.
fn pipeline(
    module: Operation<'_>,
    graph: &Graph<'_>,
    runs: &Runs,
    is_edited: bool,
    machine: &Machine,
    certificate: &Certificate<'_>,
    findings: &mut Findings,
) -> Option<Micros> {
    let stage = stages(graph, findings)?;
    let pipeline = Pipeline { graph, runs, stage: &stage, machine, certificate };
    let found = pipeline.verify(module, findings);
    if !is_edited {
        pipeline.check_starts(findings);
    }
    Some(found)
}
