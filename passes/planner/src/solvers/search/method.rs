//! Search of windows: the method, the temperature, and the surroundings of a window.

use crate::model::units::{Bytes, Micros};

/// Number of samples of the exponential distribution.
const SAMPLES: u32 = 4096;

/// Initial temperature, in mean times of a task; it falls to zero.
const HOT: f64 = 0.15;
/// With fewer sweeps than this, the initial temperature is reduced.
const ENOUGH_SWEEPS: f64 = 300.0;

/// Returns the temperature after `sweeps` sweeps and a share `spent` of the budget. The first sweep has temperature
/// zero.
pub(super) fn temperature(mean_time: Micros, spent: f64, sweeps: u32) -> Micros {
    let expected = if spent > 0.0 { f64::from(sweeps) / spent } else { 0.0 };
    mean_time * HOT * (expected / ENOUGH_SWEEPS).min(1.0) * (1.0 - spent)
}

/// Method of a search.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Method {
    /// Steps of one task and of several.
    Anneal,
    /// Steps of several tasks only.
    Neighbourhoods,
}

/// Steps inside a window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// Random changes of one task at a time, accepted by temperature.
    One,
    /// Several tasks are moved at random, then each is reinserted optimally; the result is accepted by temperature.
    Several,
}

/// Returns quantiles of the exponential distribution.
pub(super) fn exponential_samples() -> Vec<f64> {
    (0..SAMPLES).map(|sample| -((f64::from(sample) + 0.5) / f64::from(SAMPLES)).ln()).collect()
}

/// Surroundings of a window.
#[derive(Clone, Debug, Default)]
pub struct Surroundings {
    /// Range of positions of the window.
    pub(super) first: usize,
    pub(super) last: usize,
    /// By device: time at which it is free before the window.
    pub(super) free: Vec<Micros>,
    /// By device: time from its first start after the window to the makespan.
    pub(super) device_tail: Vec<Micros>,
    /// Makespan over paths that bypass the window.
    pub(super) floor: Micros,
    /// Free memory of each device.
    pub(super) room: Vec<Bytes>,
}

/// Temperature and trials of a window.
#[derive(Clone, Copy, Debug)]
pub struct Heat<'a> {
    /// In µs of makespan.
    pub(super) temperature: Micros,
    pub(super) trials: usize,
    /// Samples of the exponential distribution; their number is a power of two.
    pub(super) exponential: &'a [f64],
}

impl Heat<'_> {
    /// Returns the accepted increase of the makespan: drawn before the trial, so that the trial can stop as soon as it
    /// exceeds it.
    pub(super) fn threshold(&self, bits: u64) -> Micros {
        self.temperature * self.exponential[bits as usize & (self.exponential.len() - 1)]
    }
}
