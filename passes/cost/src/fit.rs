//! Fitting the model to what was measured.
//!
//! Every class is fitted by itself: the terms that its form has, and its launch. Operators that are the same are one sample that
//! weighs as much as there are of them. The same samples give the same model, byte for byte.

mod form;
mod search;

use crate::device::{DeviceKind, Form, Reference};
use crate::model::{Coefficients, Kernel, Launch, Model, Rates, Term};
use crate::profile::Entry;
use crate::{Class, Geometry, Micros, Task, Work};
pub use form::Target;
use search::{Column, Problem, Row, Solution};
use std::collections::BTreeMap;

/// A task that was measured.
#[derive(Clone, Debug, PartialEq)]
pub struct Sample {
    pub task: Task,
    pub micros: Micros,
    /// How many operators it stands for.
    pub count: u64,
}

/// A model that was measured as a whole, in a captured graph.
#[derive(Clone, Debug, PartialEq)]
pub struct Replay {
    pub tasks: Vec<(Task, u64)>,
    pub micros: Micros,
}

impl Sample {
    /// What was measured of an entry, at each of its batch sizes.
    pub fn of(entry: &Entry) -> Result<Vec<Self>, divi_onnx::Error> {
        let sample = |(&batch, &micros): (&u64, &f64)| {
            Ok(Self { task: entry.task(batch)?, micros: Micros(micros), count: entry.count })
        };
        entry.micros.iter().map(sample).collect()
    }
}

/// Why there is no model.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// Nothing was measured that takes time.
    #[error("no measured operator to fit a model to")]
    NoSamples,
}

/// Convolutions of one tap count as matrix products, at this weight, if they take longer than a launch could.
const BORROWED_WEIGHT: f64 = 0.3;
const BORROWED_MICROS: f64 = 50.0;

/// What is assumed of a launch where no simple function was measured.
const ASSUMED_LAUNCH: Micros = Micros(10.0);

/// Fits a model. Captured launches are known only if there are `replays`.
pub fn fit(
    target: &Target,
    device: &str,
    runtime: &str,
    samples: &[Sample],
    replays: &[Replay],
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
    // Launches count in those of the simplest kernel.
    let eager = fitted.get(&Class::Elementwise).map_or(ASSUMED_LAUNCH, |it| Micros(round(it.floor.max(it.added))));
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

/// Makes the model of a kind of which nothing was measured: its forms with the coefficients that they assume.
pub fn assumed(kind: &dyn DeviceKind) -> Model {
    let Reference { rates, machine } = kind.reference();
    let mut classes = BTreeMap::new();
    add_assumed(kind, &mut classes);
    let (device, runtime) = ("none".to_owned(), "assumed".to_owned());
    let (eager, captured) = (rates.launch.unwrap_or(ASSUMED_LAUNCH), None);
    Model { kind: kind.name().to_owned(), device, runtime, rates, machine, eager, captured, classes }
}

/// Adds the classes that were not measured, one after the other: later ones may be like earlier ones.
fn add_assumed(kind: &dyn DeviceKind, fitted: &mut BTreeMap<Class, Coefficients>) {
    for (class, _) in crate::model::CLASSES {
        if !fitted.contains_key(class) {
            let mut assumed = form::assumed(kind, *class, fitted);
            assumed.terms.iter_mut().for_each(|(_, coefficient)| *coefficient = round(*coefficient));
            fitted.insert(*class, assumed);
        }
    }
}

/// Whether a convolution is a matrix product that takes longer than its launch.
fn is_product((work, sample): &(&Work, &Sample)) -> bool {
    matches!(work.geometry, Geometry::Conv { taps: 1, stride: 1, .. }) && sample.micros.0 > BORROWED_MICROS
}

/// Fits one class. The launch of `borrowed` samples is theirs alone; so are terms that the form does not share.
fn fit_class(
    target: &Target,
    class: Class,
    samples: &[(&Work, &Sample)],
    borrowed: &[(&Work, &Sample)],
) -> Coefficients {
    let Form { terms: form, has_bias_launch: has_bias, unshared } = target.kind.form(class);
    let apart = |term: Term| unshared.contains(&term);
    let mut columns = vec![Column::Launch];
    columns.extend(has_bias.then_some(Column::Launch));
    columns.extend(form.iter().map(|(_, assumed)| Column::Term(*assumed)));
    if !borrowed.is_empty() {
        columns.push(Column::Launch);
        columns.extend(form.iter().filter(|(term, _)| apart(*term)).map(|(_, assumed)| Column::Term(*assumed)));
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
        features.extend(form.iter().map(|(term, _)| if apart(*term) { own * time(*term) } else { time(*term) }));
        if !borrowed.is_empty() {
            features.push(1.0 - own);
            let terms = form.iter().filter(|(term, _)| apart(*term));
            features.extend(terms.map(|(term, _)| (1.0 - own) * time(*term)));
        }
        let weight = sample.count as f64 * if is_own { 1.0 } else { BORROWED_WEIGHT };
        Row { features, micros: sample.micros.0, weight, is_own }
    };
    let own = samples.iter().map(|sample| row(sample, true));
    let rows = own.chain(borrowed.iter().map(|sample| row(sample, false))).collect();
    let Solution { floor, coefficients } = search::solve(&Problem { rows, columns });
    let terms = &coefficients[1 + usize::from(has_bias)..];
    Coefficients {
        samples: samples.len(),
        floor,
        added: coefficients[0],
        bias: if has_bias { coefficients[1] } else { 0.0 },
        terms: form.iter().zip(terms).map(|((term, _), coefficient)| (*term, round(*coefficient))).collect(),
    }
}

/// The overhead of a captured launch with which whole models come out best, to a twentieth of a microsecond.
fn fit_captured(model: &Model, replays: &[Replay]) -> Micros {
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

/// To four digits: more are noise.
fn round(value: f64) -> f64 {
    format!("{value:.3e}").parse().expect("a printed number can be read")
}

#[cfg(test)]
mod tests;
