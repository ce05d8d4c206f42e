//! Leave-one-out cross-validation of the model: for each network of a table, coefficients are fitted to the other networks, and
//! predictions are compared with measured times.
//!
//! Operators of 20 µs or less are excluded, because launches dominate their time. Classes that only one network of the table
//! has are reported separately, because their coefficients are priors when that network is left out.

use crate::Class;
use crate::fit::{self, Sample, Target};
use crate::model::{CLASSES, Launch, Rates};
use crate::profile::Profile;
use crate::pytorch::{Network, Operators};
use std::{
    collections::{BTreeMap, BTreeSet},
    fs, io,
    path::{Path, PathBuf},
};

/// Operators whose measured time is at most this are excluded.
pub const MIN_MICROS: f64 = 20.0;

/// Predicted and measured time of an operator, in microseconds.
#[derive(Clone, Debug, PartialEq)]
pub struct Comparison {
    /// Name of the network.
    pub model: String,
    /// Class of the operator.
    pub class: Class,
    /// Batch size.
    pub batch: u64,
    /// Measured time.
    pub measured: f64,
    /// Predicted time.
    pub estimated: f64,
}

/// Comparisons of all operators of a table.
#[derive(Clone, Debug)]
pub struct Report {
    /// Operators of classes that several networks have.
    pub validated: Vec<Comparison>,
    /// Operators of classes that only one network has.
    pub unvalidated: Vec<Comparison>,
}

/// Summary of comparisons.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Summary {
    /// Number of comparisons.
    pub count: usize,
    /// Median of the absolute relative errors.
    pub median: f64,
    /// Ratio of the sum of predicted to the sum of measured times.
    pub ratio: f64,
}

/// Error of a validation.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// The work of an operator cannot be counted.
    #[error("{0}")]
    Uncounted(divi_onnx::Error),
    /// A model cannot be fitted.
    #[error("{0}")]
    Fit(fit::Error),
}

/// Validates the model on each network of a table, fitted to the others.
pub fn leave_one_out(table: &Operators, target: &Target) -> Result<Report, Error> {
    let samples: Vec<Vec<Sample>> = table.models.iter().map(samples).collect::<Result<_, _>>()?;
    let mut owners: BTreeMap<Class, BTreeSet<usize>> = BTreeMap::new();
    for (index, samples) in samples.iter().enumerate() {
        for class in samples.iter().filter_map(|sample| Some(sample.task.main()?.class)) {
            owners.entry(class).or_default().insert(index);
        }
    }
    let mut report = Report { validated: vec![], unvalidated: vec![] };
    for (left_out, model) in table.models.iter().enumerate() {
        let others = samples.iter().enumerate().filter(|(index, _)| *index != left_out);
        let others: Vec<Sample> = others.flat_map(|(_, samples)| samples.iter().cloned()).collect();
        let fitted = fit::fit(target, &table.device, &table.runtime, &others, &[]).map_err(Error::Fit)?;
        for time in model.times.iter().filter(|time| time.micros.0 > MIN_MICROS) {
            let task = model.entries[time.entry].task(time.batch).map_err(Error::Uncounted)?;
            let Some(class) = task.main().map(|main| main.class) else { continue };
            let estimated = fitted.time(&target.rates, &task, Launch::Eager).micros.0;
            let comparison =
                Comparison { model: model.name.clone(), class, batch: time.batch, measured: time.micros.0, estimated };
            let is_shared = owners.get(&class).is_some_and(|owners| owners.len() > 1);
            if is_shared { report.validated.push(comparison) } else { report.unvalidated.push(comparison) }
        }
    }
    Ok(report)
}

/// Network whose tasks were measured by profiles.
#[derive(Clone, Debug)]
pub struct ProfiledNetwork {
    /// Name.
    pub name: String,
    /// Profile on one thread, to which models are fitted.
    pub single: Profile,
    /// Profile on several threads.
    pub several: Profile,
}

impl ProfiledNetwork {
    /// Reads the networks that two folders have profiles of, in the order of their names: at least one.
    pub fn read_all(single: &Path, several: &Path) -> Result<Vec<Self>, String> {
        let read = |path: &Path| {
            let text = fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))?;
            Profile::from_json(&text).map_err(|error| format!("{}: {error}", path.display()))
        };
        let fail = |error: io::Error| format!("{}: {error}", single.display());
        let listed = fs::read_dir(single).map_err(fail)?;
        let mut files: Vec<PathBuf> =
            listed.map(|entry| Ok(entry.map_err(fail)?.path())).collect::<Result<_, String>>()?;
        if files.is_empty() {
            return Err(format!(
                "{0}: contains no profiles; measure networks on one thread with 'divi-profile measure MODEL.onnx -o \
                 {0}/MODEL.json', and on several threads with files of the same names in {1}",
                single.display(),
                several.display()
            ));
        }
        files.sort();
        let network = |path: &PathBuf| {
            let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
            let other = several.join(path.file_name().unwrap_or_default());
            Ok(Self { name, single: read(path)?, several: read(&other)? })
        };
        files.iter().map(network).collect()
    }
}

/// Times of a network in microseconds: the sum over its tasks.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Total {
    /// Measured time.
    pub measured: f64,
    /// Estimated time.
    pub estimated: f64,
}

/// Leaves out each network in turn, fits a model to the others on one thread, and estimates the network on one thread and on `threads`.
/// Tasks whose work cannot be counted are left out.
pub fn leave_one_network_out(
    networks: &[ProfiledNetwork],
    target: &Target,
    threads: u32,
) -> Result<Vec<[Total; 2]>, fit::Error> {
    let single: Vec<Vec<Sample>> = networks.iter().map(|network| Sample::of_profile(&network.single)).collect();
    let mut totals = vec![];
    for (left_out, network) in networks.iter().enumerate() {
        let others = single.iter().enumerate().filter(|(index, _)| *index != left_out);
        let others: Vec<Sample> = others.flat_map(|(_, samples)| samples.iter().cloned()).collect();
        let model = fit::fit(target, &network.single.device, &network.single.runtime, &others, &[])?;
        let total = |samples: &[Sample], threads: u32| {
            let (one, several) = (target.rates, f64::from(threads));
            let flops_per_s = one.flops_per_s * several;
            let rates = Rates { flops_per_s, bytes_per_s: one.bytes_per_s * several, threads, ..one };
            let estimate = |sample: &Sample| model.time(&rates, &sample.task, Launch::Eager).micros.0;
            let sum = |time: &dyn Fn(&Sample) -> f64| samples.iter().map(|it| it.count as f64 * time(it)).sum();
            Total { measured: sum(&|sample| sample.micros.0), estimated: sum(&estimate) }
        };
        totals.push([total(&single[left_out], 1), total(&Sample::of_profile(&network.several), threads)]);
    }
    Ok(totals)
}

fn samples(model: &Network) -> Result<Vec<Sample>, Error> {
    let samples = model.entries.iter().map(Sample::of).collect::<Result<Vec<_>, _>>().map_err(Error::Uncounted)?;
    Ok(samples.into_iter().flatten().collect())
}

impl Summary {
    /// Summarizes comparisons; `None` if there are none.
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

/// Returns the name of a class in tables and files.
pub fn class_name(class: Class) -> &'static str {
    CLASSES.iter().find(|(known, _)| *known == class).map_or("View", |(_, name)| name)
}
