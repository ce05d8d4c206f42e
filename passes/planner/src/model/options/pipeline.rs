//! Choices about a pipeline, by the names that users type.

use crate::model::named::named;
use crate::model::units::Micros;

/// Cost of a stage.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PipelineCost {
    /// It gets its inputs, then works, then hands on its outputs (MTPP's eq. 3).
    #[default]
    Serial,
    /// It moves tensors while it works: the longer of the two.
    Overlap,
}

named!(PipelineCost, "pipeline cost", Serial = "serial", Overlap = "overlap");

impl PipelineCost {
    /// A stage's time.
    pub(crate) fn of(self, compute: Micros, io: Micros) -> Micros {
        match self {
            Self::Serial => compute + io,
            Self::Overlap => compute.max(io),
        }
    }
}

/// Where the orders come from that are sliced.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OrderSearch {
    /// A genetic algorithm on the priorities of tasks, by the value of the slicing.
    #[default]
    Brkga,
    /// Random priorities.
    Random,
    /// The same genetic algorithm, by how far tensors go: a minimum linear arrangement.
    Mla,
    /// The same, weighted by how long tensors take to move.
    MlaWeighted,
}

named!(OrderSearch, "order", Brkga = "brkga", Random = "random", Mla = "mla", MlaWeighted = "mla-weighted");

impl OrderSearch {
    /// True if orders are judged by how far their tensors go, not by their slicing.
    pub(crate) fn arranges(self) -> bool {
        matches!(self, Self::Mla | Self::MlaWeighted)
    }
}
