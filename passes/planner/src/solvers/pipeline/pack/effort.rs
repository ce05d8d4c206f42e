//! How much a search for blocks may do.

use std::time::Instant;

use crate::race::Race;

/// Nodes of a search, until some time, as long as others have not ended it.
#[derive(Clone, Debug)]
pub(in crate::pipeline) struct Effort {
    pub(in crate::pipeline) nodes: u64,
    pub(in crate::pipeline) until: Option<Instant>,
    pub(in crate::pipeline) race: Race,
}

impl Effort {
    pub(in crate::pipeline) fn nodes(nodes: u64) -> Self {
        Self { nodes, until: None, race: Race::default() }
    }

    pub(in crate::pipeline) fn is_spent(&self) -> bool {
        self.nodes == 0 || self.race.is_over() || self.until.is_some_and(|until| Instant::now() >= until)
    }
}
