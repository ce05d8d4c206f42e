//! Options of a solver: effort, seed, and options of pipelines and integer programs.

mod pipeline;
mod symmetry;

use std::time::Instant;

use super::observer::Observer;
use super::plan::{LaunchRule, Limit, gap};
use super::problem::Contention;
use super::units::Micros;

pub use pipeline::{OrderSearch, PipelineCost};
pub use symmetry::Symmetry;

/// Gap from which all of the default effort is spent, and the share of it that is spent at no gap.
const FULL_GAP: f64 = 0.4;
const LEAST_EFFORT: f64 = 0.02;

/// Options of a solver.
#[derive(Clone, Debug)]
pub struct Options {
    /// Seed of random numbers.
    pub seed: u64,
    /// Effort; if unset, the default of the algorithm.
    pub limit: Option<Limit>,
    /// Number of queued inputs, instead of the problem's.
    pub inputs: Option<u32>,
    /// Number of launches of a task on each device, for a queue.
    pub launches: LaunchRule,
    /// True if plans of a queue are to be executed: they are compared by their expected time, which includes waits between
    /// devices (`solvers/expected.rs`), and micro-batches stay whole from task to task, since cutting values and joining
    /// them again takes time that problems do not count.
    pub is_executed: bool,
    /// Contention of transfers on one bus, instead of the problem's.
    pub contention: Option<Contention>,
    /// Maximum number of stages of a pipeline, instead of the problem's.
    pub stages: Option<u32>,
    /// Cost of a stage of a pipeline, instead of serial.
    pub pipeline_cost: Option<PipelineCost>,
    /// True if a device may run several stages of a pipeline.
    pub shared_devices: bool,
    /// Maximum number of split points on an edge network, instead of the problem's.
    pub splits: Option<u32>,
    /// Maximum number of inputs that a stage of a pipeline takes at once; if unset, the least with which every task has a
    /// device: one, if all tasks have times for one input.
    pub max_batch: Option<u32>,
    /// Maximum number of equal devices that take turns at a stage of a pipeline; one if unset.
    pub max_replicas: Option<u32>,
    /// Search for orders of `slicegraph`, instead of brkga.
    pub order: Option<OrderSearch>,
    /// Share of an algorithm's default effort that is spent where there is no limit.
    pub effort: f64,
    /// Symmetry breaking among equal devices and hosts in integer programs.
    pub symmetry: Symmetry,
    /// Observer of plans and bounds as they are found.
    pub observer: Observer,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            seed: 1,
            limit: None,
            inputs: None,
            launches: LaunchRule::Many,
            is_executed: false,
            contention: None,
            stages: None,
            pipeline_cost: None,
            shared_devices: false,
            splits: None,
            max_batch: None,
            max_replicas: None,
            order: None,
            effort: 1.0,
            symmetry: Symmetry::default(),
            observer: Observer::default(),
        }
    }
}

impl Options {
    /// Returns the maximum number of devices that take turns at a stage.
    pub(crate) fn replicas(&self) -> usize {
        self.max_replicas.unwrap_or(1) as usize
    }

    /// Returns the options of an algorithm that is part of another.
    pub(crate) fn named(&self, part: &'static str) -> Self {
        Self { observer: self.observer.of(part), ..self.clone() }
    }

    /// Returns the options with an effort in proportion to the gap: all of it from a gap of [`FULL_GAP`] on, or if there
    /// is a limit.
    pub(crate) fn for_gap(&self, value: Micros, bound: Micros) -> Self {
        if self.limit.is_some() {
            return self.clone();
        }
        let share = (gap(value, bound) / FULL_GAP).clamp(LEAST_EFFORT, 1.0);
        Self { effort: self.effort * share, ..self.clone() }
    }

    /// Scales a default number of iterations, trials or nodes by the effort.
    pub(crate) fn worth(&self, most: u64) -> u64 {
        (most as f64 * self.effort).ceil() as u64
    }

    /// Returns the options with the remaining time, if time is limited.
    pub(crate) fn left_since(&self, since: Instant) -> Self {
        self.share_since(since, 1.0)
    }

    /// Returns the options with a share of the remaining time, if time is limited.
    pub(crate) fn share_since(&self, since: Instant, share: f64) -> Self {
        let left = |seconds: f64| (seconds - since.elapsed().as_secs_f64()).max(0.0) * share;
        Self { limit: self.limit.map(|limit| limit.with_seconds(left)), ..self.clone() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn effort_is_in_proportion_to_the_gap() {
        let plain = Options::default();
        let trials =
            |options: &Options, value: f64, bound: f64| options.for_gap(Micros(value), Micros(bound)).worth(100_000);
        assert_eq!(trials(&plain, 100.0, 20.0), 100_000);
        assert_eq!(trials(&plain, 100.0, 60.0), 100_000);
        assert_eq!(trials(&plain, 100.0, 90.0), 25_000);
        assert_eq!(trials(&plain, 100.0, 99.9), 2_000);
        assert_eq!(trials(&plain, 0.0, 0.0), 2_000);
        // Limits that the user sets are not scaled.
        let limited = Options { limit: Some(Limit::Iterations(7)), ..Options::default() };
        assert_eq!(trials(&limited, 100.0, 99.9), 100_000);
    }
}
