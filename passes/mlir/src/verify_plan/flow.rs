//! A run starts when what it reads is there: computed, and moved to its device. And a device runs one at a time.

use super::{
    Findings, exceeds,
    graph::{Graph, Node},
    machine::Machine,
    micros,
    runs::{Run, Runs},
};
use crate::ir::describe;
use divi_planner::units::Micros;

/// What one run hands to another: a tensor, for the inputs that both take.
pub(super) struct Handed {
    pub(super) tensor: usize,
    pub(super) from: usize,
    pub(super) to: usize,
    pub(super) inputs: Vec<i64>,
    /// How long it is under way.
    pub(super) moving: Micros,
    /// When it leaves and arrives, where that is said: without, it leaves at once.
    pub(super) listed: Option<(Micros, Micros)>,
}

impl Handed {
    /// The tensor, from which device, to which.
    pub(super) fn way(&self, runs: &Runs) -> (usize, usize, usize) {
        (self.tensor, runs.all[self.from].device, runs.all[self.to].device)
    }

    pub(super) fn leaves(&self, runs: &Runs) -> Micros {
        self.listed.map_or(runs.all[self.from].end, |(start, _)| start)
    }

    pub(super) fn arrives(&self, runs: &Runs) -> Micros {
        self.listed.map_or_else(|| runs.all[self.from].end + self.moving, |(_, end)| end)
    }
}

/// Everything that is handed on. What has no link to go by is said, and taken for there at once.
pub(super) fn handed(graph: &Graph<'_>, runs: &Runs, machine: &Machine, findings: &mut Findings) -> Vec<Handed> {
    let mut handed = vec![];
    for (index, tensor) in graph.tensors.iter().enumerate() {
        for &node in &tensor.to {
            for &from in &runs.of_node[tensor.from] {
                for &to in &runs.of_node[node] {
                    let (producer, reader) = (&runs.all[from], &runs.all[to]);
                    let inputs = shared(&producer.inputs, &reader.inputs);
                    if inputs.is_empty() {
                        continue;
                    }
                    let bytes = tensor.bytes * inputs.len() as f64;
                    let moving = machine.transfer(producer.device, reader.device, bytes);
                    if moving.is_none() {
                        tell_missing_link(graph, producer, reader, machine, findings);
                    }
                    let moving = moving.unwrap_or(0.0);
                    handed.push(Handed { tensor: index, from, to, inputs, moving, listed: None });
                }
            }
        }
    }
    handed
}

/// What is in both of two lists in increasing order.
fn shared(a: &[i64], b: &[i64]) -> Vec<i64> {
    a.iter().copied().filter(|input| b.binary_search(input).is_ok()).collect()
}

pub(super) fn tell_missing_link(graph: &Graph<'_>, from: &Run, to: &Run, machine: &Machine, findings: &mut Findings) {
    let (here, there) = (machine.label(from.device), machine.label(to.device));
    let remedy = format!("declare 'divi.link {here} -> {there} {{…}}', or let both run on one device");
    match (&graph.nodes[from.node], &graph.nodes[to.node]) {
        (_, Node::Task(task)) => {
            let what = match graph.nodes[from.node].task() {
                Some(producer) => format!("what {} computes on {here}", describe(producer.operation)),
                None => format!("an input of the model, which is on {here}"),
            };
            let name = describe(task.operation);
            let message = format!("{name} reads on {there} {what}, but no link leads there: {remedy}");
            findings.add(task.operation, &message);
        }
        (Node::Task(task), _) => {
            let name = describe(task.operation);
            let message =
                format!("{name} computes on {here} an output of the model, but no link leads to {there}: {remedy}");
            findings.add(task.operation, &message);
        }
        // Both are on the host.
        _ => {}
    }
}

/// Outputs are there when all of them has arrived.
pub(super) fn settle_outputs(graph: &Graph<'_>, runs: &mut Runs, handed: &[Handed]) {
    for way in handed {
        let arrival = way.arrives(runs);
        let reader = &mut runs.all[way.to];
        if matches!(graph.nodes[reader.node], Node::Output) {
            reader.start = reader.start.max(arrival);
            reader.end = reader.start;
        }
    }
}

/// No run starts before what it reads has arrived.
pub(super) fn check_arrivals(
    graph: &Graph<'_>,
    runs: &Runs,
    handed: &[Handed],
    machine: &Machine,
    findings: &mut Findings,
) {
    for way in handed {
        let (from, to) = (&runs.all[way.from], &runs.all[way.to]);
        let arrival = way.arrives(runs);
        let Node::Task(task) = &graph.nodes[to.node] else { continue };
        if !exceeds(arrival, to.start) {
            continue;
        }
        let what = match graph.nodes[from.node].task() {
            Some(producer) => format!("what {} computes", describe(producer.operation)),
            None => "an input of the model".to_owned(),
        };
        let message = format!(
            "{} starts at {} on {}, but {what} is there at {}: start it {} later",
            describe(task.operation),
            micros(to.start),
            machine.label(to.device),
            micros(arrival),
            micros(arrival - to.start)
        );
        findings.add(task.operation, &message);
    }
}

/// A device runs one task at a time.
pub(super) fn check_overlaps(graph: &Graph<'_>, runs: &Runs, machine: &Machine, findings: &mut Findings) {
    let mut order: Vec<&Run> = runs.all.iter().filter(|run| graph.nodes[run.node].task().is_some()).collect();
    order.sort_by(|a, b| a.start.total_cmp(&b.start).then(a.end.total_cmp(&b.end)));
    let mut last: Vec<Option<&Run>> = machine.devices.iter().map(|_| None).collect();
    for run in order {
        let (task, running) = (graph.nodes[run.node].task(), &mut last[run.device]);
        if let Some(before) = running.filter(|before| exceeds(before.end, run.start))
            && let (Some(task), Some(other)) = (task, graph.nodes[before.node].task())
        {
            let message = format!(
                "{} starts at {} on {}, where {} runs until {}: start it {} later",
                describe(task.operation),
                micros(run.start),
                machine.label(run.device),
                describe(other.operation),
                micros(before.end),
                micros(before.end - run.start)
            );
            findings.add(task.operation, &message);
        }
        if running.is_none_or(|before| run.end > before.end) {
            *running = Some(run);
        }
    }
}
