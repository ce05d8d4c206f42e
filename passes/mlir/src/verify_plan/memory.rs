//! Checks that the peak memory of each device fits.

use super::{Findings, ROUNDING, exceeds, flow::Dependence, graph::Graph, machine::Machine, runs::Runs, task::Task};
use divi_dialect::Operation;
use divi_planner::units::{Bytes, Micros, human_bytes};
use std::collections::{BTreeMap, BTreeSet};

/// Bytes that a device holds over a live range.
#[derive(Clone, Copy)]
pub(super) struct LiveRange {
    pub(super) device: usize,
    pub(super) bytes: Bytes,
    pub(super) from: Micros,
    pub(super) until: Micros,
}

/// Task that runs on a device.
pub(super) struct Work<'a> {
    pub(super) task: &'a Task<'a>,
    pub(super) device: usize,
    pub(super) start: Micros,
    /// False if an earlier launch of the task on the device has brought its weights there.
    pub(super) has_weights: bool,
}

/// Returns the live ranges of all tensors and of scratch memory. A result lives from the start of its run until it has
/// been read and transferred; its copy on another device from the start of the transfer until it has been read; scratch
/// memory while its run lasts.
pub(super) fn live_ranges(graph: &Graph<'_>, runs: &Runs, dependences: &[Dependence]) -> Vec<LiveRange> {
    let mut live_ranges = vec![];
    // By tensor and run.
    let mut results: BTreeMap<(usize, usize), LiveRange> = BTreeMap::new();
    for run in &runs.all {
        if let Some(task) = graph.nodes[run.node].task() {
            let bytes = task.scratch * run.inputs.len() as f64;
            live_ranges.push(LiveRange { device: run.device, bytes, from: run.start, until: run.end });
        }
    }
    for (index, tensor) in graph.tensors.iter().enumerate() {
        for &run in &runs.of_node[tensor.from] {
            let producer = &runs.all[run];
            let bytes = tensor.bytes * producer.inputs.len() as f64;
            let range = LiveRange { device: producer.device, bytes, from: producer.start, until: producer.end };
            results.insert((index, run), range);
        }
    }
    // By tensor, run and destination, with the inputs that are transferred.
    let mut copies: BTreeMap<(usize, usize, usize), (LiveRange, BTreeSet<i64>)> = BTreeMap::new();
    for dependence in dependences {
        let (from, to) = (&runs.all[dependence.from], &runs.all[dependence.to]);
        let result = results
            .get_mut(&(dependence.tensor, dependence.from))
            .expect("a tensor that is passed on has been computed");
        if from.device == to.device {
            result.until = result.until.max(to.end);
            continue;
        }
        result.until = result.until.max(dependence.arrives(runs));
        let leaves = dependence.leaves(runs);
        let none_yet = LiveRange { device: to.device, bytes: Bytes::ZERO, from: leaves, until: leaves };
        let (copy, inputs) = copies
            .entry((dependence.tensor, dependence.from, to.device))
            .or_insert_with(|| (none_yet, BTreeSet::new()));
        inputs.extend(&dependence.inputs);
        copy.bytes = graph.tensors[dependence.tensor].bytes * inputs.len() as f64;
        copy.until = copy.until.max(to.end);
    }
    live_ranges.extend(results.into_values());
    live_ranges.extend(copies.into_values().map(|(range, _)| range));
    live_ranges
}

/// Returns the weights that a device holds for its tasks: all of them, or those of two tasks at a time if they are
/// streamed.
pub(super) fn held_weights(machine: &Machine, device: usize, weights: impl Iterator<Item = Bytes>) -> Bytes {
    match machine.devices[device].streams_weights {
        true => 2.0 * weights.fold(Bytes::ZERO, Bytes::max),
        false => weights.sum(),
    }
}

/// Checks the weights of all tasks that run on each device, plus the peak of its live ranges.
pub(super) fn check(
    live_ranges: &[LiveRange],
    work: &[Work<'_>],
    machine: &Machine,
    at: Operation<'_>,
    findings: &mut Findings,
) {
    let longest = live_ranges.iter().map(|range| range.until).fold(Micros::ZERO, Micros::max);
    for device in 0..machine.devices.len() {
        let own = work.iter().filter(|work| work.device == device && work.has_weights);
        let own = own.filter(|work| !work.task.reads_directly(machine, device));
        let own = own.map(|work| work.task.weight);
        let weights = held_weights(machine, device, own);
        let (alive, when) = most(live_ranges.iter().filter(|range| range.device == device), ROUNDING * longest);
        let (held, memory) = (weights + alive, machine.devices[device].memory);
        if !exceeds(held, memory) {
            continue;
        }
        // The last task that had started by then.
        let started = work.iter().filter(|work| work.device == device && work.start <= when);
        let running = started.max_by(|a, b| a.start.total_cmp(&b.start)).map(|work| work.task);
        let place = running.map_or_else(String::new, |task| format!(" at '{}'", task.name()));
        let message = format!(
            "{} needs {}{place}, has {}: {} short; move tasks to another device",
            machine.label(device),
            human_bytes(held),
            human_bytes(memory),
            human_bytes(held - memory)
        );
        findings.add(running.map_or(at, |task| task.operation), &message);
    }
}

/// Returns the most bytes that are live at once, and when. Ranges that touch, or overlap by rounding, are not live at
/// once; short ones count, too.
fn most<'a>(live_ranges: impl Iterator<Item = &'a LiveRange>, rounding: Micros) -> (Bytes, Micros) {
    let mut begins: Vec<(Micros, Bytes)> = vec![];
    let mut ends: Vec<(Micros, Bytes)> = vec![];
    for range in live_ranges.filter(|range| range.until > range.from) {
        begins.push((range.from, range.bytes));
        ends.push((range.until - rounding.min((range.until - range.from) / 2.0), range.bytes));
    }
    begins.sort_by(|a, b| a.0.total_cmp(&b.0));
    ends.sort_by(|a, b| a.0.total_cmp(&b.0));
    let mut ends = ends.into_iter().peekable();
    let (mut alive, mut highest, mut when) = (Bytes::ZERO, Bytes::ZERO, Micros::ZERO);
    for (now, bytes) in begins {
        while let Some((_, gone)) = ends.next_if(|(end, _)| *end <= now) {
            alive -= gone;
        }
        alive += bytes;
        if alive > highest {
            (highest, when) = (alive, now);
        }
    }
    (highest, when)
}
