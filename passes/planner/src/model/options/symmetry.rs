//! How equal devices and nodes are told apart.

use std::fmt;
use std::str::FromStr;

use crate::model::error::Error;

/// What equal devices, and equal nodes of a cluster, are put into order by (DiviML VI): schedules that differ only in their
/// names are then one schedule.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Symmetry {
    /// They are not.
    Off,
    /// Which is used by an earlier task.
    #[default]
    FirstUse,
    /// Which has more batches.
    Batches,
    /// Which has more tasks, counted for each input.
    Tasks,
    /// Which is busy for longer.
    Time,
}

impl Symmetry {
    pub const ALL: [Self; 5] = [Self::Off, Self::FirstUse, Self::Batches, Self::Tasks, Self::Time];

    pub fn name(self) -> &'static str {
        match self {
            Self::Off => "off",
            Self::FirstUse => "first-use",
            Self::Batches => "batches",
            Self::Tasks => "tasks",
            Self::Time => "time",
        }
    }
}

impl fmt::Display for Symmetry {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.name())
    }
}

impl FromStr for Symmetry {
    type Err = Error;

    fn from_str(name: &str) -> Result<Self, Error> {
        Self::ALL.into_iter().find(|criterion| criterion.name() == name).ok_or_else(|| {
            let names = Self::ALL.map(Self::name).join(", ");
            Error::Unsupported(format!("there is no way to break symmetries '{name}'; there are {names}"))
        })
    }
}
