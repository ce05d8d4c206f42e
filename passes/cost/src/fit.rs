//! Fitting of the model's coefficients to measured times.
//!
//! Each class is fitted separately: the coefficients of its form's terms, and its launch. Equal operators are one sample,
//! weighted by their number. The fit is deterministic: the same samples give the same model, byte for byte.

mod prior;
mod search;

use crate::device::{DeviceKind, ModelForm, Reference};
use crate::model::{Coefficients, Kernel, Launch, Model, Rates, Term};
use crate::profile::{Entry, Profile};
use crate::{Class, Geometry, Micros, Task, Work};
pub use prior::Target;
use search::{Column, Problem, Row, Solution};
use std::collections::BTreeMap;

/// Measured task.
#[derive(Clone, Debug, PartialEq)]
pub struct Sample {
    /// Task.
    pub task: Task,
    /// Measured time.
    pub micros: Micros,
    /// Number of equal operators, the weight of the sample.
    pub count: u64,
}

/// Network that was measured as a whole, in a captured graph.
#[derive(Clone, Debug, PartialEq)]
pub struct CapturedNetwork {
    /// Tasks, with the number of their occurrences.
    pub tasks: Vec<(Task, u64)>,
    /// Measured time of the network.
    pub micros: Micros,
}

impl Sample {
    /// Returns the samples of a profile. Entries whose work cannot be counted are left out: a profile does not have the shapes
    /// between the operators of a task.
    pub fn of_profile(profile: &Profile) -> Vec<Self> {
        profile.entries().iter().filter_map(|entry| Self::of(entry).ok()).flatten().collect()
    }

    /// Returns the samples of an entry, one per batch size.
    pub fn of(entry: &Entry) -> Result<Vec<Self>, divi_onnx::Error> {
        let sample = |(&batch, &micros): (&u64, &f64)| {
            Ok(Self { task: entry.task(batch)?, micros: Micros(micros), count: entry.count })
        };
        entry.micros.iter().map(sample).collect()
    }
}

/// Error of a fit.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// There is no sample of an operator that takes time.
    #[error("no measured operator to fit a model to")]
    NoSamples,
}

/// Weight of pointwise convolutions as additional samples of matrix products.
const BORROWED_WEIGHT: f64 = 0.3;
/// Minimum time in microseconds of such samples, which excludes those dominated by the launch.
const BORROWED_MICROS: f64 = 50.0;

/// Launch overhead if no elementwise operator was measured.
const ASSUMED_LAUNCH: Micros = Micros(10.0);

/// Shortest launch in microseconds, so that it can be the unit of others.
const SHORTEST_LAUNCH: f64 = 1.0;

/// Fits a model. The overhead of captured launches is fitted only if there are `replays`.
pub fn fit(
    target: &Target,
    device: &str,
    runtime: &str,
    samples: &[Sample],
    replays: &[CapturedNetwork],
) -> Result<Model, Error> {
    let mut by_class: BTreeMap<Class, Vec<(&Work, &Sample)>> = BTreeMap::new();
    for sample in samples.iter().filter(|sample| sample.micros.0 > 0.0) {
        if let Some(work) = sample.task.main().filter(|work| work.class != Class::View) {
            by_class.entry(work.class).or_default().push((work, sample));
        }
    }
    if by_class.is_empty() {
        return Err(Error::NoSamples);
    }
    let pointwise: Vec<_> =
        by_class.get(&Class::Conv).into_iter().flatten().filter(|it| is_product(it)).copied().collect();
    let mut fitted = BTreeMap::new();
    for (class, samples) in &by_class {
        let borrowed = if *class == Class::MatMul { &pointwise[..] } else { &[] };
        fitted.insert(*class, fit_class(target, *class, samples, borrowed));
    }
    // The unit of launches is that of an elementwise kernel.
    let eager = fitted
        .get(&Class::Elementwise)
        .map_or(ASSUMED_LAUNCH, |it| Micros(round(it.floor.max(it.added).max(SHORTEST_LAUNCH))));
    for class in fitted.values_mut() {
        for launch in [&mut class.floor, &mut class.added, &mut class.bias] {
            *launch = round(*launch / eager.0);
        }
    }
    add_assumed(&*target.kind, &mut fitted);
    let mut model = Model {
        kind: target.kind.name().to_owned(),
        device: device.to_owned(),
        runtime: runtime.to_owned(),
        rates: target.rates,
        machine: target.machine,
        eager,
        captured: None,
        classes: fitted,
    };
    if !replays.is_empty() {
        model.captured = Some(fit_captured(&model, replays));
    }
    Ok(model)
}

/// Returns the model of a kind without measurements: its forms with their prior coefficients.
pub fn prior_model(kind: &dyn DeviceKind) -> Model {
    let Reference { rates, machine } = kind.reference();
    let mut classes = BTreeMap::new();
    add_assumed(kind, &mut classes);
    let (device, runtime) = ("none".to_owned(), "assumed".to_owned());
    let (eager, captured) = (rates.launch.unwrap_or(ASSUMED_LAUNCH), None);
    Model { kind: kind.name().to_owned(), device, runtime, rates, machine, eager, captured, classes }
}

/// Adds the classes that were not measured, in order: later ones may copy coefficients of earlier ones.
fn add_assumed(kind: &dyn DeviceKind, fitted: &mut BTreeMap<Class, Coefficients>) {
    for (class, _) in crate::model::CLASSES {
        if !fitted.contains_key(class) {
            let mut assumed = prior::coefficients(kind, *class, fitted);
            assumed.terms.iter_mut().for_each(|(_, coefficient)| *coefficient = round(*coefficient));
            fitted.insert(*class, assumed);
        }
    }
}

/// Returns true if a convolution is a matrix product whose time is not dominated by the launch.
fn is_product((work, sample): &(&Work, &Sample)) -> bool {
    matches!(work.geometry, Geometry::Conv { taps: 1, stride: 1, .. }) && sample.micros.0 > BORROWED_MICROS
}

/// Fits one class. `borrowed` samples of another class have their own launch, and their own coefficients of the form's
/// unshared terms.
fn fit_class(
    target: &Target,
    class: Class,
    samples: &[(&Work, &Sample)],
    borrowed: &[(&Work, &Sample)],
) -> Coefficients {
    let ModelForm { terms: form, has_bias_launch: has_bias, unshared, is_synchronous } = target.kind.model_form(class);
    let is_unshared = |term: Term| unshared.contains(&term);
    let launch = || if is_synchronous { Column::Call } else { Column::Launch };
    let mut columns = vec![launch()];
    columns.extend(has_bias.then_some(Column::Launch));
    columns.extend(form.iter().map(|(_, assumed)| Column::Term(*assumed)));
    if !borrowed.is_empty() {
        columns.push(launch());
        columns.extend(form.iter().filter(|(term, _)| is_unshared(*term)).map(|(_, assumed)| Column::Term(*assumed)));
    }
    let row = |(work, sample): &(&Work, &Sample), is_own: bool| {
        let kernel = Kernel::of(&sample.task, work);
        let own = f64::from(u8::from(is_own));
        let time = |term: Term| {
            let rate = if term.is_compute() { target.rates.flops_per_s } else { target.rates.bytes_per_s };
            term.amount(&kernel, &target.machine) / rate * 1e6
        };
        let mut features = vec![own];
        features.extend(has_bias.then(|| f64::from(u8::from(kernel.has_bias()))));
        features.extend(form.iter().map(|(term, _)| if is_unshared(*term) { own * time(*term) } else { time(*term) }));
        if !borrowed.is_empty() {
            features.push(1.0 - own);
            let terms = form.iter().filter(|(term, _)| is_unshared(*term));
            features.extend(terms.map(|(term, _)| (1.0 - own) * time(*term)));
        }
        let weight = sample.count as f64 * if is_own { 1.0 } else { BORROWED_WEIGHT };
        Row { features, micros: sample.micros.0, weight, is_own }
    };
    let own = samples.iter().map(|sample| row(sample, true));
    let rows = own.chain(borrowed.iter().map(|sample| row(sample, false))).collect();
    let prior_weight = target.kind.prior_weight();
    let problem = Problem { rows, columns, prior_weight, has_floor: !is_synchronous };
    let Solution { floor, coefficients } = search::solve(&problem);
    let terms = &coefficients[1 + usize::from(has_bias)..];
    Coefficients {
        samples: samples.len(),
        floor,
        added: coefficients[0],
        bias: if has_bias { coefficients[1] } else { 0.0 },
        terms: form.iter().zip(terms).map(|((term, _), coefficient)| (*term, round(*coefficient))).collect(),
    }
}

/// Returns the overhead of a captured launch that minimizes the error on whole networks, to a twentieth of a microsecond.
fn fit_captured(model: &Model, replays: &[CapturedNetwork]) -> Micros {
    let model = Model { captured: Some(Micros::ZERO), ..model.clone() };
    let deviation = |micros: f64| {
        let rates = Rates { launch: Some(Micros(micros)), ..model.rates };
        let time = |(task, count): &(Task, u64)| *count as f64 * model.time(&rates, task, Launch::Captured).micros.0;
        let errors = replays.iter().map(|replay| search::error(replay.tasks.iter().map(time).sum(), replay.micros.0));
        errors.sum::<f64>()
    };
    let best = |candidates: &mut dyn Iterator<Item = f64>| {
        candidates.map(|it| (deviation(it), it)).min_by(|a, b| a.0.total_cmp(&b.0)).map_or(0.0, |(_, it)| it)
    };
    let coarse = best(&mut (0..=50).map(f64::from));
    Micros(round(best(&mut (-20..=20).map(|twentieth| (coarse + f64::from(twentieth) / 20.0).max(0.0)))))
}

/// Rounds to four significant digits.
fn round(value: f64) -> f64 {
    format!("{value:.3e}").parse().expect("a printed number can be read")
}

#[cfg(test)]
mod tests;
