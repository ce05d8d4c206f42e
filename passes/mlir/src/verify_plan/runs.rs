//! Reads devices and times of a function's tasks.

use super::{
    Findings,
    certificate::Certificate,
    graph::{Graph, Node},
    machine::Machine,
    task::Task,
};
use crate::ir::describe;
use divi_dialect::{Operation, attr};
use divi_planner::units::Micros;
use std::collections::{BTreeMap, BTreeSet};

/// Run of a node on a device, for some of the queued inputs.
pub(super) struct Run {
    pub(super) node: usize,
    pub(super) device: usize,
    /// In increasing order.
    pub(super) inputs: Vec<i64>,
    pub(super) start: Micros,
    pub(super) end: Micros,
}

/// Runs of all nodes.
pub(super) struct Runs {
    pub(super) all: Vec<Run>,
    /// Indices of each node's runs.
    pub(super) of_node: Vec<Vec<usize>>,
}

impl Runs {
    /// Reads the decisions of all tasks; `None` if one is missing, so that nothing more can be checked.
    pub(super) fn of(
        graph: &Graph<'_>,
        machine: &Machine,
        certificate: &Certificate<'_>,
        findings: &mut Findings,
    ) -> Option<Self> {
        let mut runs = Self { all: vec![], of_node: vec![vec![]; graph.nodes.len()] };
        let mut is_complete = true;
        for (node, kind) in graph.nodes.iter().enumerate() {
            let decisions = match kind {
                // Inputs are on the host from the start; the times of outputs are computed later.
                Node::Input | Node::Output => {
                    Some(vec![(machine.host, (0..certificate.inputs).collect(), Micros::ZERO)])
                }
                Node::Task(task) if certificate.is_queued => batches(task, machine, certificate, findings),
                Node::Task(task) => place(task.operation, machine, findings).map(|(on, at)| vec![(on, vec![0], at)]),
            };
            is_complete &= decisions.is_some();
            for (device, inputs, start) in decisions.unwrap_or_default() {
                let time = kind.task().map_or(Micros::ZERO, |task| task.time(machine, device, inputs.len(), findings));
                runs.of_node[node].push(runs.all.len());
                runs.all.push(Run { node, device, inputs, start, end: start + time });
            }
        }
        is_complete.then_some(runs)
    }

    /// Returns the time at which all tasks have run and all outputs are on the host.
    pub(super) fn makespan(&self) -> Micros {
        self.all.iter().map(|run| run.end).fold(Micros::ZERO, Micros::max)
    }
}

/// Returns device and start of a task for one input.
pub(super) fn place(task: Operation<'_>, machine: &Machine, findings: &mut Findings) -> Option<(usize, Micros)> {
    let device = task.get(attr::DEVICE).and_then(|name| machine.find(name));
    let start = task.get(attr::START).map(Micros);
    match (device, start) {
        // The dialect's verifier rejects starts that are negative or not finite.
        (Some(device), Some(start)) => Some((device, start)),
        (None, _) => {
            let message = format!("{} has no divi.device: give it one, or run divi-partition", describe(task));
            findings.add(task, &message);
            None
        }
        (_, None) => {
            findings.add(task, &format!("{} has no divi.start: give it one, or run divi-partition", describe(task)));
            None
        }
    }
}

/// Returns device, inputs and start of each batch. Every queued input is in one; a device has at most one, unless the plan
/// may have many launches.
fn batches(
    task: &Task<'_>,
    machine: &Machine,
    certificate: &Certificate<'_>,
    findings: &mut Findings,
) -> Option<Vec<(usize, Vec<i64>, Micros)>> {
    let (name, queued) = (describe(task.operation), certificate.inputs);
    let mut wrong = |message: String| findings.add(task.operation, &message);
    let Some(batches) = task.operation.get(attr::BATCHES) else {
        wrong(format!("{name} has no divi.batches: give it some, or run divi-partition"));
        return None;
    };
    let mut decisions = vec![];
    let mut taken = BTreeSet::new();
    for batch in batches {
        let device = machine.find(batch.device())?;
        let is_repeated = decisions.iter().any(|(other, _, _)| *other == device);
        if is_repeated && !certificate.has_many_launches {
            let on = machine.label(device);
            wrong(format!(
                "{name} has two batches on {on}: a task runs once on a device, as launches is one in divi.plan"
            ));
        }
        for input in batch.inputs() {
            if input >= queued {
                wrong(format!("{name} runs for input {input}, but {queued} are queued, counted from 0"));
            }
            taken.insert(input);
        }
        decisions.push((device, batch.inputs(), Micros(batch.start())));
    }
    let missing: Vec<i64> = (0..queued).filter(|input| !taken.contains(input)).collect();
    match missing[..] {
        [] => {}
        [input] => wrong(format!("{name} does not run for input {input}: add it to one of its divi.batches")),
        [first, ..] => wrong(format!(
            "{name} does not run for {} inputs, {first} among them: add them to its divi.batches",
            missing.len()
        )),
    }
    Some(decisions)
}

/// Checks that the tasks of a group share a device, for each input.
pub(super) fn check_groups<'a>(
    placed: impl Iterator<Item = (&'a Task<'a>, usize, &'a [i64])>,
    machine: &Machine,
    findings: &mut Findings,
) {
    let mut of_group: BTreeMap<(&str, i64), (usize, Operation<'_>)> = BTreeMap::new();
    for (task, device, inputs) in placed {
        let apart = task.groups.iter().find_map(|group| {
            let others = inputs
                .iter()
                .map(|&input| *of_group.entry((group.as_str(), input)).or_insert((device, task.operation)));
            others.filter(|(other, _)| *other != device).last().map(|(other, with)| (group, other, with))
        });
        if let Some((group, other, with)) = apart {
            let message = format!(
                "{} runs on {}, but shares a device with {}, which runs on {} (divi.colocate \"{group}\")",
                describe(task.operation),
                machine.label(device),
                describe(with),
                machine.label(other)
            );
            findings.add(task.operation, &message);
        }
    }
}
