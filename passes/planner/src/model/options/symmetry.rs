//! Symmetry breaking among equal devices and nodes.

use crate::model::named::named;

/// Order of equal devices, and of equal nodes of a cluster (DiviML VI): schedules that differ only in their names are then one
/// schedule.
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

named!(
    Symmetry,
    "symmetry criterion",
    Off = "off",
    FirstUse = "first-use",
    Batches = "batches",
    Tasks = "tasks",
    Time = "time",
);
