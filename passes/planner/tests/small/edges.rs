//! Edges of a problem, whichever way it lists them, and durations of transfers.

use divi_planner::Problem;
use divi_planner::units::{Bytes, BytesPerMicro, Micros};

/// Returns from, to and bytes of each edge.
pub(crate) fn edges(problem: &Problem) -> Vec<(usize, usize, Bytes)> {
    let single = problem.edges.iter().flatten().map(|(i, j)| (*i, *j, problem.nodes[*i].output.unwrap_or_default()));
    let several = problem.tensors.iter().flatten().flat_map(|t| t.to.iter().map(|to| (t.from, *to, t.bytes)));
    single.chain(several).collect()
}

/// Returns the duration of a transfer; `None` without a link.
pub(crate) fn moving(problem: &Problem, from: usize, to: usize, bytes: Bytes) -> Option<Micros> {
    if from == to {
        return Some(Micros::ZERO);
    }
    let bandwidth = problem.bandwidth[from][to].unwrap_or(BytesPerMicro::INFINITY);
    let latency = problem.link_latency.as_ref().and_then(|latency| latency[from][to]).unwrap_or_default();
    (bandwidth > BytesPerMicro::ZERO).then(|| bytes / bandwidth + latency)
}
