//! What can be chosen about a pipeline, by the names that users type.

use std::fmt;
use std::str::FromStr;

use crate::model::error::Error;
use crate::model::units::Micros;

/// What a stage costs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PipelineCost {
    /// It gets its inputs, then works, then hands on its outputs (MTPP's eq. 3).
    #[default]
    Serial,
    /// It moves tensors while it works: the longer of the two.
    Overlap,
}

impl PipelineCost {
    pub const ALL: [Self; 2] = [Self::Serial, Self::Overlap];

    pub fn name(self) -> &'static str {
        match self {
            Self::Serial => "serial",
            Self::Overlap => "overlap",
        }
    }

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

impl OrderSearch {
    pub const ALL: [Self; 4] = [Self::Brkga, Self::Random, Self::Mla, Self::MlaWeighted];

    pub fn name(self) -> &'static str {
        match self {
            Self::Brkga => "brkga",
            Self::Random => "random",
            Self::Mla => "mla",
            Self::MlaWeighted => "mla-weighted",
        }
    }

    /// Whether orders are judged by how far their tensors go, not by their slicing.
    pub(crate) fn arranges(self) -> bool {
        matches!(self, Self::Mla | Self::MlaWeighted)
    }
}

impl fmt::Display for PipelineCost {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.name())
    }
}

impl fmt::Display for OrderSearch {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.name())
    }
}

impl FromStr for PipelineCost {
    type Err = Error;

    fn from_str(name: &str) -> Result<Self, Error> {
        named(&Self::ALL, Self::name, name, "pipeline cost")
    }
}

impl FromStr for OrderSearch {
    type Err = Error;

    fn from_str(name: &str) -> Result<Self, Error> {
        named(&Self::ALL, Self::name, name, "order")
    }
}

fn named<T: Copy>(all: &[T], name_of: fn(T) -> &'static str, name: &str, what: &str) -> Result<T, Error> {
    all.iter().copied().find(|choice| name_of(*choice) == name).ok_or_else(|| {
        let names: Vec<&str> = all.iter().map(|choice| name_of(*choice)).collect();
        Error::Unsupported(format!("there is no {what} '{name}'; there are {}", names.join(", ")))
    })
}
