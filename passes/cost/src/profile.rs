//! Profiles: times that were measured on a machine (`divi-profile/1`), and their lookup.
//!
//! An entry is an operator or a cluster, with its times at some batch sizes. It is matched by its operators, their attributes,
//! the shapes of operands and results, and the element type. Shapes are those at batch size 1: the first dimension of each
//! computed operand, and of each result, is the batch. Constant operands (weights) have no batch.
//!
//! Times between two measured batch sizes are interpolated linearly. Outside of the measured range, [`Profile::find`] returns
//! `None`, and [`Profile::find_or_scale`] scales the nearest time by a model's ratio.

mod json;
mod key;
mod task;
mod types;

use crate::Micros;
use divi_onnx::{Attributes, DType, Op};
pub use key::{Key, Operand};
use std::collections::{BTreeMap, HashMap};
pub use types::{MemberTypes, OperandType, Origin, ValueType};

/// Times that were measured on one machine.
#[derive(Clone, Debug, Default)]
pub struct Profile {
    /// Name of the device.
    pub device: String,
    /// Runtime that was measured.
    pub runtime: String,
    /// Overhead of a launch, which the times include.
    pub launch: Option<Micros>,
    entries: Vec<Entry>,
    /// Times of each key by batch size.
    index: HashMap<Key, BTreeMap<u64, f64>>,
}

/// Operator or cluster that was measured.
#[derive(Clone, Debug, PartialEq)]
pub struct Entry {
    /// Operators in execution order.
    pub ops: Vec<Member>,
    /// Types of the values of each operator; `None` if they follow from the shapes, as those of a chain of operators.
    pub types: Option<Vec<MemberTypes>>,
    /// Shapes of the operands that other tasks compute, at batch size 1.
    pub inputs: Vec<Vec<u64>>,
    /// Shapes of the constant operands; `None` matches any.
    pub weights: Option<Vec<Vec<u64>>>,
    /// Shapes of the results, at batch size 1.
    pub outputs: Vec<Vec<u64>>,
    /// Element type.
    pub dtype: DType,
    /// Microseconds by batch size.
    pub micros: BTreeMap<u64, f64>,
    /// Number of equal operators in the measured networks.
    pub count: u64,
}

/// Operator of an entry.
#[derive(Clone, Debug, PartialEq)]
pub struct Member {
    /// ONNX's name: `Conv`. A profile may contain unknown operators.
    pub name: String,
    /// Attributes.
    pub attributes: Attributes,
}

impl Member {
    /// Returns the operator; `None` if it is unknown.
    fn known(&self) -> Option<Op> {
        Op::from_name(&self.name)
    }
}

/// Time from a profile.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ProfileTime {
    /// Time.
    pub micros: Micros,
    /// Source of the time.
    pub source: LookupKind,
}

/// Source of a time from a profile.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LookupKind {
    /// Measured at this batch size.
    Measured,
    /// Interpolated between two measured batch sizes.
    Interpolated,
    /// Scaled by a model's ratio from the nearest measured batch size.
    Scaled,
}

impl Profile {
    /// Creates a profile. Equal entries are merged for lookup: a batch size that was measured repeatedly has the median time.
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

    /// Returns all entries.
    pub fn entries(&self) -> &[Entry] {
        &self.entries
    }

    /// Returns the time of a task at a batch size that was measured or lies between measured ones.
    pub fn find(&self, key: &Key, batch: u64) -> Option<ProfileTime> {
        let times = self.times(key)?;
        if let Some(&micros) = times.get(&batch) {
            return Some(ProfileTime { micros: Micros(micros), source: LookupKind::Measured });
        }
        let (&below, &low) = times.range(..batch).next_back()?;
        let (&above, &high) = times.range(batch..).next()?;
        let share = (batch - below) as f64 / (above - below) as f64;
        Some(ProfileTime { micros: Micros(low + (high - low) * share), source: LookupKind::Interpolated })
    }

    /// Returns the time like [`Self::find`]; outside of the measured range, the nearest time, scaled by the ratio of the times
    /// that `model` predicts for the two batch sizes.
    pub fn find_or_scale(&self, key: &Key, batch: u64, model: impl Fn(u64) -> Micros) -> Option<ProfileTime> {
        self.find(key, batch).or_else(|| {
            let times = self.times(key)?;
            let (&nearest, &micros) = times.range(..batch).next_back().or_else(|| times.range(batch..).next())?;
            let ratio = model(batch).0 / model(nearest).0;
            let scaled = ProfileTime { micros: Micros(micros * ratio), source: LookupKind::Scaled };
            scaled.micros.0.is_finite().then_some(scaled)
        })
    }

    fn times(&self, key: &Key) -> Option<&BTreeMap<u64, f64>> {
        self.index.get(key).or_else(|| self.index.get(&key.without_weights()))
    }
}

/// Returns the weighted median of times with their counts.
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
