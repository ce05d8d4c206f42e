//! Search of windows: the method, the temperature, and the rest of the schedule as far as a window depends on it.

use crate::model::units::{Bytes, Micros};

/// Number of samples of the exponential distribution.
const SAMPLES: u32 = 4096;

/// The temperature at the beginning, in mean times of a task; it falls to nothing.
const HOT: f64 = 0.15;
/// With fewer sweeps than this there is no time to come down from so high.
const ENOUGH_SWEEPS: f64 = 300.0;

/// The temperature when a share of the budget has been spent on so many sweeps. The first one has none.
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
    /// Random changes of one task at a time, taken or not by temperature.
    One,
    /// Several tasks are moved at random, then each to where it is best; all of that taken or not by temperature.
    Several,
}

/// Samples of the exponential distribution.
pub(super) fn exponential_samples() -> Vec<f64> {
    (0..SAMPLES).map(|sample| -((f64::from(sample) + 0.5) / f64::from(SAMPLES)).ln()).collect()
}

/// Surroundings of a window.
#[derive(Clone, Debug, Default)]
pub struct Around {
    /// The places of the order that the window takes.
    pub(super) first: usize,
    pub(super) last: usize,
    /// When each device is free before the window.
    pub(super) free: Vec<Micros>,
    /// From the first start on each device after the window to the end of the plan.
    pub(super) device_tail: Vec<Micros>,
    /// The makespan over paths that do not touch the window.
    pub(super) floor: Micros,
    /// Memory that is left on each device.
    pub(super) room: Vec<Bytes>,
}

/// Temperature and trials of a window.
#[derive(Clone, Copy, Debug)]
pub struct Heat<'a> {
    /// In µs of makespan.
    pub(super) temperature: Micros,
    pub(super) trials: usize,
    /// Samples of the exponential distribution, a power of two of them.
    pub(super) exponential: &'a [f64],
}

impl Heat<'_> {
    /// Time by which the makespan may become longer: drawn before the trial, so that it can end as soon as it is too long.
    pub(super) fn threshold(&self, bits: u64) -> Micros {
        self.temperature * self.exponential[bits as usize & (self.exponential.len() - 1)]
    }
}
