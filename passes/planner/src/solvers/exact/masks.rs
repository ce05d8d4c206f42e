//! Relations between tasks as bit sets.

use super::graph::Graph;
use super::set::Set;

#[derive(Clone, Debug)]
pub(crate) struct Masks<const WORDS: usize> {
    pub(crate) predecessors: Vec<Set<WORDS>>,
    pub(crate) successors: Vec<Set<WORDS>>,
    /// Other tasks that are co-located with a task.
    pub(crate) colocated: Vec<Set<WORDS>>,
    pub(crate) sources: Set<WORDS>,
    pub(crate) all: Set<WORDS>,
}

impl<const WORDS: usize> Masks<WORDS> {
    pub(crate) fn new(graph: &Graph) -> Self {
        let set = |arcs: &Vec<super::graph::Arc>| arcs.iter().map(|arc| arc.task).collect::<Set<WORDS>>();
        let mut colocated = vec![Set::EMPTY; graph.tasks];
        for group in &graph.groups {
            for &task in group {
                colocated[task] = group.iter().copied().filter(|other| *other != task).collect();
            }
        }
        Self {
            predecessors: graph.predecessors.iter().map(set).collect(),
            successors: graph.successors.iter().map(set).collect(),
            colocated,
            sources: (0..graph.tasks).filter(|task| graph.predecessors[*task].is_empty()).collect(),
            all: (0..graph.tasks).collect(),
        }
    }
}
