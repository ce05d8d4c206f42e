//! Checks precedence: a run starts when its operands are computed and on its device, and a device runs one task at a
//! time.

use super::{
    Findings, exceeds,
    graph::{Graph, Node},
    machine::Machine,
    micros,
    runs::{Run, Runs},
};
use crate::ir::describe;
use divi_planner::units::Micros;
use std::collections::BTreeMap;

/// Tensor that one run passes to another, for the inputs that both have.
pub(super) struct Dependence {
    pub(super) tensor: usize,
    pub(super) from: usize,
    pub(super) to: usize,
    pub(super) inputs: Vec<i64>,
    /// Duration of the transfer.
    pub(super) transfer_time: Micros,
    /// Start and end of the transfer, if stated; otherwise it starts at once.
    pub(super) stated_times: Option<(Micros, Micros)>,
}

impl Dependence {
    /// Returns the tensor, the run that computes it and its destination.
    pub(super) fn route(&self, runs: &Runs) -> (usize, usize, usize) {
        (self.tensor, self.from, runs.all[self.to].device)
    }

    pub(super) fn leaves(&self, runs: &Runs) -> Micros {
        self.stated_times.map_or(runs.all[self.from].end, |(start, _)| start)
    }

    pub(super) fn arrives(&self, runs: &Runs) -> Micros {
        self.stated_times.map_or_else(|| runs.all[self.from].end + self.transfer_time, |(_, end)| end)
    }
}

/// Returns all tensors that runs pass to each other. A missing link is reported, and takes no time.
pub(super) fn dependences(
    graph: &Graph<'_>,
    runs: &Runs,
    machine: &Machine,
    findings: &mut Findings,
) -> Vec<Dependence> {
    let mut dependences = vec![];
    for (index, tensor) in graph.tensors.iter().enumerate() {
        for &node in &tensor.to {
            let run_of_input = by_input(runs, node);
            for &from in &runs.of_node[tensor.from] {
                let mut readers: BTreeMap<usize, Vec<i64>> = BTreeMap::new();
                for &input in &runs.all[from].inputs {
                    run_of_input.get(&input).into_iter().for_each(|&to| readers.entry(to).or_default().push(input));
                }
                for (to, inputs) in readers {
                    let (producer, reader) = (&runs.all[from], &runs.all[to]);
                    let bytes = tensor.bytes * inputs.len() as f64;
                    let transfer_time = machine.transfer(producer.device, reader.device, bytes);
                    if transfer_time.is_none() {
                        tell_missing_link(graph, producer, reader, machine, findings);
                    }
                    let transfer_time = transfer_time.unwrap_or_default();
                    dependences.push(Dependence { tensor: index, from, to, inputs, transfer_time, stated_times: None });
                }
            }
        }
    }
    dependences
}

/// Returns the run of a node that has each input.
fn by_input(runs: &Runs, node: usize) -> BTreeMap<i64, usize> {
    let own = runs.of_node[node].iter();
    own.flat_map(|&run| runs.all[run].inputs.iter().map(move |&input| (input, run))).collect()
}

pub(super) fn tell_missing_link(graph: &Graph<'_>, from: &Run, to: &Run, machine: &Machine, findings: &mut Findings) {
    let (here, there) = (machine.label(from.device), machine.label(to.device));
    let remedy = format!("declare 'divi.link {here} -> {there} {{…}}', or let both run on one device");
    match (&graph.nodes[from.node], &graph.nodes[to.node]) {
        (_, Node::Task(task)) => {
            let what = match graph.nodes[from.node].task() {
                Some(producer) => format!("the result of {} on {here}", describe(producer.operation)),
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

/// Sets the start of outputs to the last arrival of their tensors.
pub(super) fn settle_outputs(graph: &Graph<'_>, runs: &mut Runs, dependences: &[Dependence]) {
    for dependence in dependences {
        let arrival = dependence.arrives(runs);
        let reader = &mut runs.all[dependence.to];
        if matches!(graph.nodes[reader.node], Node::Output) {
            reader.start = reader.start.max(arrival);
            reader.end = reader.start;
        }
    }
}

/// Checks that no run starts before its operands have arrived.
pub(super) fn check_arrivals(
    graph: &Graph<'_>,
    runs: &Runs,
    dependences: &[Dependence],
    machine: &Machine,
    findings: &mut Findings,
) {
    for dependence in dependences {
        let (from, to) = (&runs.all[dependence.from], &runs.all[dependence.to]);
        let arrival = dependence.arrives(runs);
        let Node::Task(task) = &graph.nodes[to.node] else { continue };
        if !exceeds(arrival, to.start) {
            continue;
        }
        let what = match graph.nodes[from.node].task() {
            Some(producer) => format!("the result of {}", describe(producer.operation)),
            None => "an input of the model".to_owned(),
        };
        let message = format!(
            "{} starts at {} on {}, but {what} arrives at {}: start it {} later",
            describe(task.operation),
            micros(to.start),
            machine.label(to.device),
            micros(arrival),
            micros(arrival - to.start)
        );
        findings.add(task.operation, &message);
    }
}

/// Checks that a device runs one task at a time.
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
