//! How far the model is from measurements that it was not fitted to: each model of a table is left out in turn, coefficients
//! are fitted to the others, and their estimates are compared with what was measured.
//!
//! Operators that take 20 µs or less are not judged: they are launches. Nor are classes that only one model of the table has,
//! because leaving that model out leaves nothing to fit; for those, the error of what is assumed is reported.

use crate::Class;
use crate::fit::{self, Sample, Target};
use crate::model::{CLASSES, Launch};
use crate::pytorch::{Model, Operators};
use std::collections::{BTreeMap, BTreeSet};

/// Operators that take no longer than this are not judged.
pub const JUDGED_ABOVE_MICROS: f64 = 20.0;

/// An estimate beside what was measured, in microseconds.
#[derive(Clone, Debug, PartialEq)]
pub struct Comparison {
    pub model: String,
    pub class: Class,
    pub batch: u64,
    pub measured: f64,
    pub estimated: f64,
}

/// Estimates of every operator of a table, each by coefficients that have not seen its model.
#[derive(Clone, Debug)]
pub struct Report {
    pub judged: Vec<Comparison>,
    /// Of classes that one model alone has.
    pub reported: Vec<Comparison>,
}

/// Comparisons in two numbers.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Summary {
    pub count: usize,
    /// The median of the absolute relative errors.
    pub median: f64,
    /// All estimates by all measured times.
    pub ratio: f64,
}

/// Why a table cannot be compared with the model.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// An operator whose work cannot be counted.
    #[error("{0}")]
    Uncounted(divi_onnx::Error),
    /// There is nothing to fit a model to.
    #[error("{0}")]
    Fit(fit::Error),
}

/// Leaves out every model in turn.
pub fn leave_one_out(table: &Operators, target: &Target) -> Result<Report, Error> {
    let samples: Vec<Vec<Sample>> = table.models.iter().map(samples).collect::<Result<_, _>>()?;
    let mut owners: BTreeMap<Class, BTreeSet<usize>> = BTreeMap::new();
    for (index, samples) in samples.iter().enumerate() {
        for class in samples.iter().filter_map(|sample| Some(sample.task.main()?.class)) {
            owners.entry(class).or_default().insert(index);
        }
    }
    let mut report = Report { judged: vec![], reported: vec![] };
    for (left_out, model) in table.models.iter().enumerate() {
        let others = samples.iter().enumerate().filter(|(index, _)| *index != left_out);
        let others: Vec<Sample> = others.flat_map(|(_, samples)| samples.iter().cloned()).collect();
        let fitted = fit::fit(target, &table.device, &table.runtime, &others, &[]).map_err(Error::Fit)?;
        for time in model.times.iter().filter(|time| time.micros.0 > JUDGED_ABOVE_MICROS) {
            let task = model.entries[time.entry].task(time.batch).map_err(Error::Uncounted)?;
            let Some(class) = task.main().map(|main| main.class) else { continue };
            let estimated = fitted.time(&target.rates, &task, Launch::Eager).micros.0;
            let comparison =
                Comparison { model: model.name.clone(), class, batch: time.batch, measured: time.micros.0, estimated };
            let is_shared = owners.get(&class).is_some_and(|owners| owners.len() > 1);
            if is_shared { report.judged.push(comparison) } else { report.reported.push(comparison) }
        }
    }
    Ok(report)
}

fn samples(model: &Model) -> Result<Vec<Sample>, Error> {
    let samples = model.entries.iter().map(Sample::of).collect::<Result<Vec<_>, _>>().map_err(Error::Uncounted)?;
    Ok(samples.into_iter().flatten().collect())
}

impl Summary {
    /// `None` of nothing.
    pub fn of<'a>(comparisons: impl IntoIterator<Item = &'a Comparison>) -> Option<Self> {
        let (mut errors, mut measured, mut estimated) = (vec![], 0.0, 0.0);
        for comparison in comparisons {
            errors.push((comparison.estimated / comparison.measured - 1.0).abs());
            measured += comparison.measured;
            estimated += comparison.estimated;
        }
        errors.sort_by(f64::total_cmp);
        let (low, high) = (errors.get((errors.len().max(1) - 1) / 2)?, errors.get(errors.len() / 2)?);
        Some(Self { count: errors.len(), median: (low + high) / 2.0, ratio: estimated / measured })
    }
}

/// The name of a class in tables and files.
pub fn class_name(class: Class) -> &'static str {
    CLASSES.iter().find(|(known, _)| *known == class).map_or("View", |(_, name)| name)
}
