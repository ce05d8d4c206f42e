//! How much a search for blocks may do.

use std::time::Instant;

use crate::solvers::incumbent::SharedIncumbent;

/// Nodes of a search, until some time, as long as others have not ended it.
#[derive(Clone, Debug)]
pub(in crate::solvers::pipeline) struct Effort {
    pub(in crate::solvers::pipeline) nodes: u64,
    pub(in crate::solvers::pipeline) until: Option<Instant>,
    pub(in crate::solvers::pipeline) incumbent: SharedIncumbent,
}

impl Effort {
    pub(in crate::solvers::pipeline) fn nodes(nodes: u64) -> Self {
        Self { nodes, until: None, incumbent: SharedIncumbent::default() }
    }

    pub(in crate::solvers::pipeline) fn is_spent(&self) -> bool {
        self.nodes == 0 || self.incumbent.is_over() || self.until.is_some_and(|until| Instant::now() >= until)
    }
}
