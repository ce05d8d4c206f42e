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
    runs::{Runs, check_groups},
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
    let pipeline = Pipeline { graph, runs, stage: &stage, machine, certificate };
    let found = is_complete.then(|| pipeline.verify(module, findings))?;
    if !is_edited {
        pipeline.check_starts(findings);
    }
    Some(found)
}
