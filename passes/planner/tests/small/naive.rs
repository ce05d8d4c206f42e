//! Naive check of a schedule, one constraint after the other.

use divi_planner::Problem;
use divi_planner::plan::Batch;
use divi_planner::units::{BytesPerMicro, Micros};

pub(crate) fn is_schedule(problem: &Problem, batches: &[Batch]) -> bool {
    let end = |batch: &Batch| -> Option<Micros> {
        let size = batch.inputs.len() as u32;
        let device = problem.devices.get(batch.device)?;
        let node = problem.nodes.get(batch.node)?;
        let allowed = device.batch_sizes.contains(&size) && node.pin.is_none_or(|pin| pin == batch.device);
        let time = node.time.get(&size)?[batch.device]?;
        (allowed && batch.start >= Micros::ZERO).then_some(batch.start + time)
    };
    if batches.iter().any(|batch| end(batch).is_none()) {
        return false;
    }
    // One launch of a node on a device, one of a node for an input, and one for each pair.
    for (index, a) in batches.iter().enumerate() {
        let mut inputs = a.inputs.clone();
        inputs.sort_unstable();
        inputs.dedup();
        if inputs.len() != a.inputs.len() || inputs.iter().any(|input| *input >= problem.inputs) {
            return false;
        }
        for b in &batches[..index] {
            let shared = a.inputs.iter().any(|input| b.inputs.contains(input));
            if a.node == b.node && (a.device == b.device || shared) {
                return false;
            }
            let (end_a, end_b) = (end(a).unwrap_or_default(), end(b).unwrap_or_default());
            let first_is_a = (a.start, end_a) <= (b.start, end_b);
            let apart = if first_is_a { end_a <= b.start } else { end_b <= a.start };
            if a.device == b.device && !apart {
                return false;
            }
        }
    }
    let launch_of =
        |node: usize, input: u32| batches.iter().find(|batch| batch.node == node && batch.inputs.contains(&input));
    for node in 0..problem.nodes.len() {
        if (0..problem.inputs).any(|input| launch_of(node, input).is_none()) {
            return false;
        }
    }
    let device_of = |node: usize, input: u32| launch_of(node, input).map(|batch| batch.device);
    for group in problem.colocate.iter().flatten() {
        for node in group {
            if (0..problem.inputs).any(|input| device_of(*node, input) != device_of(group[0], input)) {
                return false;
            }
        }
    }
    let edges =
        problem.edges.iter().flatten().map(|(from, to)| (*from, *to, problem.nodes[*from].output.unwrap_or_default()));
    let tensors = problem.tensors.iter().flatten().flat_map(|t| t.to.iter().map(|to| (t.from, *to, t.bytes)));
    for (from, to, bytes) in edges.chain(tensors) {
        for producer in batches.iter().filter(|batch| batch.node == from) {
            for reader in batches.iter().filter(|batch| batch.node == to) {
                let count = producer.inputs.iter().filter(|input| reader.inputs.contains(input)).count();
                let mut arrival = end(producer).unwrap_or_default();
                if producer.device != reader.device {
                    let latency =
                        problem.link_latency.as_ref().map_or(Some(Micros::ZERO), |l| l[producer.device][reader.device]);
                    let bandwidth =
                        problem.bandwidth[producer.device][reader.device].unwrap_or(BytesPerMicro::INFINITY);
                    // Infinite without a link, also for zero bytes.
                    let is_link = bandwidth > BytesPerMicro::ZERO;
                    let moving = if is_link { count as f64 * bytes / bandwidth } else { Micros::INFINITY };
                    arrival += moving + latency.unwrap_or_default();
                }
                if count > 0 && arrival > reader.start {
                    return false;
                }
            }
        }
    }
    true
}
