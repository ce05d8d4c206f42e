//! Precedence: a task starts after its operands are computed and transferred to its device.

use super::exceeds;
use super::launches::{Launch, Launches};
use super::moves::Moves;
use crate::model::error::Finding;
use crate::model::problem::Problem;
use crate::model::units::{Bytes, BytesPerMicro, Micros, number};

pub(super) fn check(problem: &Problem, launches: &Launches, moves: &Moves, findings: &mut Vec<Finding>) {
    for_each_value(problem, launches, moves, |value| {
        let (from, to) = (value.producer, value.reader);
        let arrival = match value.arrival {
            Some(arrival) => arrival,
            None => {
                findings.push(Finding::new(
                    problem.node_label(to.node),
                    format!(
                        "reads on {} what {} computes on {}, but no link leads there",
                        problem.device_label(to.device),
                        problem.node_label(from.node),
                        problem.device_label(from.device)
                    ),
                ));
                return;
            }
        };
        if exceeds(arrival, to.start) {
            let moved = if from.device == to.device {
                format!("ends at {}", number(from.end))
            } else {
                format!(
                    "ends at {} on {} and arrives at {}",
                    number(from.end),
                    problem.device_label(from.device),
                    number(arrival)
                )
            };
            findings.push(Finding::new(
                problem.node_label(to.node),
                format!(
                    "starts at {} on {}, but {}, which it reads, {moved}: {} µs too early",
                    number(to.start),
                    problem.device_label(to.device),
                    problem.node_label(from.node),
                    number(arrival - to.start)
                ),
            ));
        }
    });
}

/// Tensor between two launches, for the inputs that both run.
pub(super) struct Value<'a> {
    /// Index of the tensor.
    pub(super) tensor: usize,
    pub(super) bytes: Bytes,
    pub(super) producer: &'a Launch,
    /// Number of the producer among the launches of its task.
    pub(super) launch: usize,
    pub(super) reader: &'a Launch,
    /// Start of its transfer.
    pub(super) departure: Micros,
    /// End of its transfer; `None` without a link.
    pub(super) arrival: Option<Micros>,
}

/// Visits each pair of launches of which one reads a result of the other.
pub(super) fn for_each_value<'a>(
    problem: &Problem,
    launches: &'a Launches,
    moves: &Moves,
    mut visit: impl FnMut(&Value<'a>),
) {
    let mut edge = |tensor: usize, from: usize, to: usize, bytes: Bytes| {
        for ((launch, reader), count) in launches.pairs(from, to) {
            let (producer, reader) = (&launches.of_node[from][launch], &launches.of_node[to][reader]);
            let moving = duration(problem, producer.device, reader.device, f64::from(count) * bytes);
            let listed = moves.listed(tensor, launch, reader.device);
            let (departure, end) = listed.map_or((producer.end, None), |(start, end)| (start, Some(end)));
            let arrival = moving.map(|moving| end.unwrap_or(producer.end + moving));
            visit(&Value { tensor, bytes, producer, launch, reader, departure, arrival });
        }
    };
    if let Some(tensors) = &problem.tensors {
        for (index, tensor) in tensors.iter().enumerate() {
            for &to in &tensor.to {
                edge(index, tensor.from, to, tensor.bytes);
            }
        }
    }
    for &(from, to) in problem.edges.iter().flatten() {
        edge(from, from, to, problem.nodes[from].output.unwrap_or(Bytes::ZERO));
    }
}

/// Returns the duration of a transfer; `None` without a link.
pub(super) fn duration(problem: &Problem, from: usize, to: usize, bytes: Bytes) -> Option<Micros> {
    if from == to {
        return Some(Micros::ZERO);
    }
    let latency = problem.link_latency.as_ref().and_then(|latency| latency[from][to]).unwrap_or_default();
    match problem.bandwidth[from][to] {
        None => Some(latency),
        Some(BytesPerMicro::ZERO) => None,
        Some(bandwidth) => Some(latency + bytes / bandwidth),
    }
}
