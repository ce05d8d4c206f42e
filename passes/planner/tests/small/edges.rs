//! Edges of a problem, whichever way it lists them.

use divi_planner::Problem;
use divi_planner::units::Bytes;

/// Returns from, to and bytes of each edge.
pub(crate) fn edges(problem: &Problem) -> Vec<(usize, usize, Bytes)> {
    let single = problem.edges.iter().flatten().map(|(i, j)| (*i, *j, problem.nodes[*i].output.unwrap_or_default()));
    let several = problem.tensors.iter().flatten().flat_map(|t| t.to.iter().map(|to| (t.from, *to, t.bytes)));
    single.chain(several).collect()
}
