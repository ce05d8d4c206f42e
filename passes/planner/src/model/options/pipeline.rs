//! Options of pipelines, by the names that users type.

use crate::model::named::named;
use crate::model::units::Micros;

/// Cost model of a stage.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PipelineCost {
    /// Inputs, compute and outputs in sequence (MTPP's eq. 3).
    #[default]
    Serial,
    /// Compute and transfers in parallel: the longer of the two.
    Overlap,
}

named!(PipelineCost, "pipeline cost", Serial = "serial", Overlap = "overlap");

impl PipelineCost {
    /// Returns the time of a stage.
    pub(crate) fn of(self, compute: Micros, io: Micros) -> Micros {
        match self {
            Self::Serial => compute + io,
            Self::Overlap => compute.max(io),
        }
    }
}

/// Source of the task orders that `slicegraph` slices.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OrderSearch {
    /// Genetic algorithm on the priorities of tasks (BRKGA); fitness is the value of the slicing.
    #[default]
    Brkga,
    /// Random priorities.
    Random,
    /// BRKGA; fitness is the distance of tensors in the order: a minimum linear arrangement.
    Mla,
    /// BRKGA; fitness is the distance weighted by the transfer times of tensors.
    MlaWeighted,
}

named!(OrderSearch, "order", Brkga = "brkga", Random = "random", Mla = "mla", MlaWeighted = "mla-weighted");

impl OrderSearch {
    /// Returns true if the fitness of an order is an arrangement cost, not the value of its slicing.
    pub(crate) fn arranges(self) -> bool {
        matches!(self, Self::Mla | Self::MlaWeighted)
    }
}
