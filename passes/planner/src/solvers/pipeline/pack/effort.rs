//! Effort of a search for blocks.

use crate::model::budget::Budget;
use crate::solvers::incumbent::SharedIncumbent;

/// Budget of search nodes and time, which also ends when the shared incumbent is optimal.
#[derive(Clone, Debug)]
pub(in crate::solvers::pipeline) struct Effort {
    pub(in crate::solvers::pipeline) budget: Budget,
    pub(in crate::solvers::pipeline) incumbent: SharedIncumbent,
}

impl Effort {
    pub(in crate::solvers::pipeline) fn nodes(nodes: u64) -> Self {
        Self { budget: Budget { iterations: nodes, deadline: None }, incumbent: SharedIncumbent::default() }
    }

    pub(in crate::solvers::pipeline) fn is_spent(&self) -> bool {
        self.budget.iterations == 0 || self.incumbent.is_over() || self.budget.is_late()
    }
}
