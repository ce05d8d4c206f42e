//! Profiles: what was measured on a machine (`divi-profile/1`), and how it is found again.
//!
//! An entry is an operator or a cluster, with the times it took at some batch sizes. It is matched by its operators, their
//! attributes, the shapes of operands and results, and the element type. Shapes are those at batch one: the first dimension of
//! each operand that is computed, and of each result, is the batch. Constant operands (weights) have no batch.
//!
//! Between two batch sizes that were measured, the time is interpolated along a straight line. Beyond them, nothing was
//! measured: [`Profile::find`] finds nothing there, and [`Profile::find_or_scale`] scales the nearest time by a model's ratio.

mod json;
mod key;
mod task;

use crate::Micros;
use divi_onnx::{Attributes, DType, Op};
pub use key::{Key, Operand};
use std::collections::{BTreeMap, HashMap};

/// What was measured on one machine.
#[derive(Clone, Debug, Default)]
pub struct Profile {
    pub device: String,
    pub runtime: String,
    /// The overhead of a launch, which the times include.
    pub launch: Option<Micros>,
    entries: Vec<Entry>,
    /// The times of each key by batch size.
    index: HashMap<Key, BTreeMap<u64, f64>>,
}

/// An operator or a cluster that was measured.
#[derive(Clone, Debug, PartialEq)]
pub struct Entry {
    /// In the order in which they run.
    pub ops: Vec<Member>,
    /// Shapes of the operands that other tasks compute, at batch one.
    pub inputs: Vec<Vec<u64>>,
    /// Shapes of the constant operands. Where they are not known, any match.
    pub weights: Option<Vec<Vec<u64>>>,
    /// Shapes of the results, at batch one.
    pub outputs: Vec<Vec<u64>>,
    pub dtype: DType,
    /// Microseconds by batch size.
    pub micros: BTreeMap<u64, f64>,
    /// How many operators of the models that were measured it stands for.
    pub count: u64,
}

/// An operator of an entry.
#[derive(Clone, Debug, PartialEq)]
pub struct Member {
    /// As ONNX names it: `Conv`. A profile may have operators that the table does not know.
    pub name: String,
    pub attributes: Attributes,
}

impl Member {
    /// The operator of the table, if it has one of this name.
    fn known(&self) -> Option<Op> {
        Op::from_name(&self.name)
    }
}

/// A time that is known.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Found {
    pub micros: Micros,
    pub source: Source,
}

/// Where a time is from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    Measured,
    /// Between two batch sizes that were measured.
    Interpolated,
    /// Beyond the batch sizes that were measured, at a model's ratio.
    Scaled,
}

impl Profile {
    /// Entries that are the same are found as one: a batch size that was measured more than once has the median of its times.
    pub fn new(device: impl Into<String>, runtime: impl Into<String>, entries: Vec<Entry>) -> Self {
        let mut times: HashMap<Key, BTreeMap<u64, Vec<(f64, u64)>>> = HashMap::new();
        for entry in &entries {
            let batches = times.entry(Key::of(entry)).or_default();
            for (&batch, &micros) in &entry.micros {
                batches.entry(batch).or_default().push((micros, entry.count.max(1)));
            }
        }
        let medians = |batches: BTreeMap<u64, Vec<(f64, u64)>>| {
            batches.into_iter().map(|(batch, times)| (batch, median(times))).collect()
        };
        let index = times.into_iter().map(|(key, batches)| (key, medians(batches))).collect();
        Self { device: device.into(), runtime: runtime.into(), launch: None, entries, index }
    }

    pub fn entries(&self) -> &[Entry] {
        &self.entries
    }

    /// The time of a task at a batch size, if it was measured there or around it.
    pub fn find(&self, key: &Key, batch: u64) -> Option<Found> {
        let times = self.times(key)?;
        if let Some(&micros) = times.get(&batch) {
            return Some(Found { micros: Micros(micros), source: Source::Measured });
        }
        let (&below, &low) = times.range(..batch).next_back()?;
        let (&above, &high) = times.range(batch..).next()?;
        let share = (batch - below) as f64 / (above - below) as f64;
        Some(Found { micros: Micros(low + (high - low) * share), source: Source::Interpolated })
    }

    /// As [`Self::find`]; beyond the batch sizes that were measured, the nearest time, times the ratio of what `model` says of
    /// the two batch sizes.
    pub fn find_or_scale(&self, key: &Key, batch: u64, model: impl Fn(u64) -> Micros) -> Option<Found> {
        self.find(key, batch).or_else(|| {
            let times = self.times(key)?;
            let (&nearest, &micros) = times.range(..batch).next_back().or_else(|| times.range(batch..).next())?;
            let ratio = model(batch).0 / model(nearest).0;
            let scaled = Found { micros: Micros(micros * ratio), source: Source::Scaled };
            scaled.micros.0.is_finite().then_some(scaled)
        })
    }

    fn times(&self, key: &Key) -> Option<&BTreeMap<u64, f64>> {
        self.index.get(key).or_else(|| self.index.get(&key.without_weights()))
    }
}

/// The median of times that count several times each.
pub(crate) fn median(mut times: Vec<(f64, u64)>) -> f64 {
    times.sort_by(|a, b| a.0.total_cmp(&b.0));
    let total = times.iter().fold(0, |sum: u64, (_, count)| sum.saturating_add(*count));
    let at = |rank: u64| {
        let mut before: u64 = 0;
        let found = times.iter().find(|(_, count)| {
            before = before.saturating_add(*count);
            before > rank
        });
        found.map_or(f64::NAN, |(time, _)| *time)
    };
    if total.is_multiple_of(2) { (at((total / 2).saturating_sub(1)) + at(total / 2)) / 2.0 } else { at(total / 2) }
}

#[cfg(test)]
mod tests;
