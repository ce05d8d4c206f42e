//! What each device holds at the worst moment fits into it.

use super::{Findings, ROUNDING, exceeds, flow::Handed, graph::Graph, machine::Machine, runs::Runs, task::Task};
use divi_dialect::Operation;
use divi_planner::units::{Bytes, Micros, human_bytes};
use std::collections::{BTreeMap, BTreeSet};

/// Bytes that a device holds for a while.
#[derive(Clone, Copy)]
pub(super) struct Life {
    pub(super) device: usize,
    pub(super) bytes: Bytes,
    pub(super) from: Micros,
    pub(super) until: Micros,
}

/// A task at work.
pub(super) struct Work<'a> {
    pub(super) task: &'a Task<'a>,
    pub(super) device: usize,
    pub(super) start: Micros,
}

/// The lives of all tensors and of scratch. A result lives from its run's start until it has been read and moved; its copy
/// elsewhere from when it starts to move until it has been read; scratch while its run is going on.
pub(super) fn lives(graph: &Graph<'_>, runs: &Runs, handed: &[Handed]) -> Vec<Life> {
    let mut lives = vec![];
    // By tensor and run.
    let mut results: BTreeMap<(usize, usize), Life> = BTreeMap::new();
    for run in &runs.all {
        if let Some(task) = graph.nodes[run.node].task() {
            let bytes = task.scratch * run.inputs.len() as f64;
            lives.push(Life { device: run.device, bytes, from: run.start, until: run.end });
        }
    }
    for (index, tensor) in graph.tensors.iter().enumerate() {
        for &run in &runs.of_node[tensor.from] {
            let producer = &runs.all[run];
            let bytes = tensor.bytes * producer.inputs.len() as f64;
            let life = Life { device: producer.device, bytes, from: producer.start, until: producer.end };
            results.insert((index, run), life);
        }
    }
    // By tensor, run and the device that it goes to, with the inputs that do.
    let mut copies: BTreeMap<(usize, usize, usize), (Life, BTreeSet<i64>)> = BTreeMap::new();
    for way in handed {
        let (from, to) = (&runs.all[way.from], &runs.all[way.to]);
        let result = results.get_mut(&(way.tensor, way.from)).expect("what is handed on has been computed");
        if from.device == to.device {
            result.until = result.until.max(to.end);
            continue;
        }
        result.until = result.until.max(way.arrives(runs));
        let leaves = way.leaves(runs);
        let none_yet = Life { device: to.device, bytes: 0.0, from: leaves, until: leaves };
        let (copy, inputs) =
            copies.entry((way.tensor, way.from, to.device)).or_insert_with(|| (none_yet, BTreeSet::new()));
        inputs.extend(&way.inputs);
        copy.bytes = graph.tensors[way.tensor].bytes * inputs.len() as f64;
        copy.until = copy.until.max(to.end);
    }
    lives.extend(results.into_values());
    lives.extend(copies.into_values().map(|(life, _)| life));
    lives
}

/// The weights that a device holds for its tasks: all of them, or where they are streamed two tasks' at a time.
pub(super) fn held_weights(machine: &Machine, device: usize, weights: impl Iterator<Item = Bytes>) -> Bytes {
    match machine.devices[device].streams_weights {
        true => 2.0 * weights.fold(0.0, f64::max),
        false => weights.sum(),
    }
}

/// Weights of all tasks that run on a device, and the most that is alive there at once.
pub(super) fn check(lives: &[Life], work: &[Work<'_>], machine: &Machine, at: Operation<'_>, findings: &mut Findings) {
    let longest = lives.iter().map(|life| life.until).fold(0.0, f64::max);
    for device in 0..machine.devices.len() {
        let own = work.iter().filter(|work| work.device == device && !work.task.reads_directly(machine, device));
        let own = own.map(|work| work.task.weight);
        let weights = held_weights(machine, device, own);
        let (alive, when) = most(lives.iter().filter(|life| life.device == device), ROUNDING * longest);
        let (held, memory) = (weights + alive, machine.devices[device].memory);
        if !exceeds(held, memory) {
            continue;
        }
        // The last that had started by then.
        let started = work.iter().filter(|work| work.device == device && work.start <= when);
        let running = started.max_by(|a, b| a.start.total_cmp(&b.start)).map(|work| work.task);
        let place = running.map_or_else(String::new, |task| format!(" at '{}'", task.name()));
        let message = format!(
            "{} needs {}{place}, has {}: {} short, so let less run there",
            machine.label(device),
            human_bytes(held),
            human_bytes(memory),
            human_bytes(held - memory)
        );
        findings.add(running.map_or(at, |task| task.operation), &message);
    }
}

/// The most bytes that are alive at once, and when. Lives that only touch, but for rounding, do not meet; short ones are
/// lives, too.
fn most<'a>(lives: impl Iterator<Item = &'a Life>, rounding: Micros) -> (Bytes, Micros) {
    let mut begins: Vec<(Micros, Bytes)> = vec![];
    let mut ends: Vec<(Micros, Bytes)> = vec![];
    for life in lives.filter(|life| life.until > life.from) {
        begins.push((life.from, life.bytes));
        ends.push((life.until - rounding.min((life.until - life.from) / 2.0), life.bytes));
    }
    begins.sort_by(|a, b| a.0.total_cmp(&b.0));
    ends.sort_by(|a, b| a.0.total_cmp(&b.0));
    let mut ends = ends.into_iter().peekable();
    let (mut alive, mut highest, mut when): (Bytes, Bytes, Micros) = (0.0, 0.0, 0.0);
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
