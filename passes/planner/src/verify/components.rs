//! The maximum number of stages that a pipeline on equal devices can have.

use petgraph::algo::kosaraju_scc;
use petgraph::graph::DiGraph;

use crate::model::problem::Problem;

/// Returns the number of strongly connected components of the task graph in which members of a co-location group depend
/// on each other. A stage has at least one of them, since the graph of stages is acyclic.
pub(super) fn most_stages(problem: &Problem) -> usize {
    let mut graph = DiGraph::<(), ()>::new();
    for _ in &problem.nodes {
        graph.add_node(());
    }
    for tensor in problem.all_tensors() {
        graph.extend_with_edges(tensor.to.iter().map(|&to| (tensor.from as u32, to as u32)));
    }
    for group in problem.colocate.iter().flatten() {
        let pairs = group.windows(2).map(|pair| (pair[0] as u32, pair[1] as u32));
        graph.extend_with_edges(pairs.flat_map(|(a, b)| [(a, b), (b, a)]));
    }
    kosaraju_scc(&graph).len()
}
