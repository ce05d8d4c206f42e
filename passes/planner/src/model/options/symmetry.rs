//! Symmetry breaking among equal devices and hosts.

use crate::model::named::named;

/// Criterion that orders equal devices, and equal hosts of a cluster (DiviML VI), so that only one of the schedules that
/// differ in their names alone is feasible.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Symmetry {
    /// No symmetry breaking.
    Off,
    /// By the first task that uses them.
    #[default]
    FirstUse,
    /// By number of batches.
    Batches,
    /// By number of tasks, counted for each input.
    Tasks,
    /// By busy time.
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
