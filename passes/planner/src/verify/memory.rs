//! Checks that the contents of each device fit into its memory.

use std::collections::{BTreeMap, BTreeSet};

use super::copies::Copies;
use super::launches::Launches;
use super::moves::Moves;
use super::precedence::for_each_value;
use super::{ROUNDING, exceeds};
use crate::model::error::Finding;
use crate::model::problem::{MemoryModel, Problem};
use crate::model::units::{Bytes, Micros, human_bytes};

pub(super) fn check(
    problem: &Problem,
    launches: &Launches,
    moves: &Moves,
    copies: &Copies,
    findings: &mut Vec<Finding>,
) {
    let held = match problem.memory_model {
        MemoryModel::Static => static_use(problem, launches, copies),
        MemoryModel::Liveness => peak_use(problem, launches, moves, copies),
    };
    for (index, (device, held)) in problem.devices.iter().zip(held).enumerate() {
        if let Some(memory) = device.memory.filter(|memory| exceeds(held, *memory)) {
            findings.push(Finding::new(
                problem.device_label(index),
                format!(
                    "needs {}, has {}: {} short",
                    human_bytes(held),
                    human_bytes(memory),
                    human_bytes(held - memory)
                ),
            ));
        }
    }
}

/// Returns the static memory of each device (eq. 6): the weights of its tasks, their operands and results once per
/// queued input, and weights that it forwards in a second hop. Parameters that are read in the host's memory take none.
fn static_use(problem: &Problem, launches: &Launches, copies: &Copies) -> Vec<Bytes> {
    let mut held = vec![Bytes::ZERO; problem.devices.len()];
    copies.forwarded().for_each(|forwarded| held[forwarded.on] += forwarded.bytes);
    add_weights(problem, launches, &mut held);
    let results = problem.output_bytes();
    for launch in launches.all() {
        let bytes = problem.nodes[launch.node].input + results[launch.node];
        held[launch.device] += bytes * launch.inputs.len() as f64;
    }
    held
}

/// Adds the weights of the tasks of each device, once for all launches of a task there.
fn add_weights(problem: &Problem, launches: &Launches, held: &mut [Bytes]) {
    let in_memory = launches.all().filter(|launch| !launch.direct);
    let places: BTreeSet<(usize, usize)> = in_memory.map(|launch| (launch.node, launch.device)).collect();
    places.into_iter().for_each(|(node, device)| held[device] += problem.nodes[node].weight);
}

/// Returns the peak memory of each device: weights and all live data. A result is live from its launch's start to its
/// last read and its last transfer; its copy on another device from the start of its transfer to its last read; scratch
/// while its launch runs; weights of a second hop from the start of the first copy to the end of the second.
fn peak_use(problem: &Problem, launches: &Launches, moves: &Moves, parameter_copies: &Copies) -> Vec<Bytes> {
    struct LiveRange {
        bytes: Bytes,
        from: Micros,
        until: Micros,
    }
    let mut ranges: Vec<Vec<LiveRange>> = problem.devices.iter().map(|_| Vec::new()).collect();
    let mut weights = vec![Bytes::ZERO; problem.devices.len()];
    add_weights(problem, launches, &mut weights);
    // By tensor and number of the launch among those of its task.
    let mut results: BTreeMap<(usize, usize), (usize, LiveRange)> = BTreeMap::new();
    // By tensor, launch and device of the copy.
    let mut tensor_copies: BTreeMap<(usize, usize, usize), (LiveRange, BTreeSet<u32>)> = BTreeMap::new();
    let mut tensors_of: Vec<Vec<(usize, Bytes)>> = vec![Vec::new(); problem.nodes.len()];
    match &problem.tensors {
        Some(tensors) => tensors.iter().enumerate().for_each(|(index, t)| tensors_of[t.from].push((index, t.bytes))),
        None => problem
            .nodes
            .iter()
            .for_each(|node| tensors_of[node.id].push((node.id, node.output.unwrap_or(Bytes::ZERO)))),
    }
    for (node, own) in launches.of_node.iter().enumerate() {
        for (index, launch) in own.iter().enumerate() {
            let (count, scratch) = (launch.inputs.len() as f64, problem.nodes[node].scratch);
            let range = |bytes: Bytes| LiveRange { bytes: bytes * count, from: launch.start, until: launch.end };
            ranges[launch.device].push(range(scratch));
            for &(tensor, bytes) in &tensors_of[node] {
                results.insert((tensor, index), (launch.device, range(bytes)));
            }
        }
    }
    for forwarded in parameter_copies.forwarded() {
        ranges[forwarded.on].push(LiveRange { bytes: forwarded.bytes, from: forwarded.from, until: forwarded.until });
    }
    for_each_value(problem, launches, moves, |value| {
        let (from, to) = (value.producer, value.reader);
        let (_, result) =
            results.get_mut(&(value.tensor, value.launch)).expect("every producer's launch has its results");
        if from.device == to.device {
            result.until = result.until.max(to.end);
            return;
        }
        result.until = result.until.max(value.arrival.unwrap_or(from.end));
        let (copy, inputs) = tensor_copies.entry((value.tensor, value.launch, to.device)).or_insert_with(|| {
            (LiveRange { bytes: Bytes::ZERO, from: value.departure, until: value.departure }, BTreeSet::new())
        });
        inputs.extend(from.inputs.intersection(&to.inputs));
        copy.bytes = value.bytes * inputs.len() as f64;
        copy.until = copy.until.max(to.end);
    });
    for (device, range) in results.into_values() {
        ranges[device].push(range);
    }
    for ((_, _, device), (range, _)) in tensor_copies {
        ranges[device].push(range);
    }
    // Ranges end a little early, so that ranges that touch up to rounding do not overlap; short ones keep half their
    // length.
    let rounding = ROUNDING * launches.makespan();
    let end = |range: &LiveRange| range.until - rounding.min((range.until - range.from) / 2.0);
    let peak = |ranges: &[LiveRange]| {
        let mut events: Vec<(Micros, Bytes)> =
            ranges.iter().flat_map(|range| [(range.from, range.bytes), (end(range), -range.bytes)]).collect();
        // At the same time, ends precede starts.
        events.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.total_cmp(&b.1)));
        let sums = events.into_iter().scan(Bytes::ZERO, |live, (_, change)| {
            *live += change;
            Some(*live)
        });
        sums.fold(Bytes::ZERO, Bytes::max)
    };
    ranges.iter().zip(weights).map(|(ranges, weights)| weights + peak(ranges)).collect()
}
