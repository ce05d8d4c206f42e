use super::*;
use crate::device::{CPU, CUDA};
use crate::model::overlap;
use divi_onnx::DType;

/// Returns a task of a class on `count` elements.
fn function(class: Class, count: u64) -> Task {
    Task::from(Work {
        class,
        flops: count,
        read: 4 * count,
        weights: 0,
        resident_weights: 0,
        written: 4 * count,
        scratch: 0,
        dtype: DType::F32,
        geometry: Geometry::Elements { count },
    })
}

/// Returns samples of a device with a launch floor of 8 µs, 2 µs of added launch time and half of the peak bandwidth. Every
/// seventh sample is an outlier.
fn measured(class: Class) -> Vec<Sample> {
    let sample = |index: u32| {
        let task = function(class, 1 << (10 + index % 18));
        let body = 2.0 * (task.read + task.written) as f64 / Target::of(CUDA).rates.bytes_per_s * 1e6;
        let outlier = if index % 7 == 3 { 3.0 } else { 1.0 };
        Sample { micros: Micros(overlap(8.0, 2.0 + body) * outlier), task, count: 1 }
    };
    (0..54).map(sample).collect()
}

fn fitted(samples: &[Sample], replays: &[CapturedNetwork]) -> Model {
    fit(&Target::of(CUDA), "device", "runtime", samples, replays).unwrap()
}

#[test]
fn coefficients_are_recovered_despite_outliers() {
    let model = fitted(&measured(Class::Elementwise), &[]);
    let found = model.coefficients(Class::Elementwise).unwrap();
    let bytes: f64 = found.terms.iter().filter(|(term, _)| *term != Term::Weights).map(|(_, it)| it).sum();
    assert!((bytes - 4.0).abs() < 0.1, "{found:?}");
    assert!((model.eager.0 - 8.0).abs() < 0.2 && (found.added * model.eager.0 - 2.0).abs() < 0.5, "{model:?}");
    assert_eq!(found.samples, 54);
}

#[test]
fn the_same_samples_give_the_same_model() {
    let samples = measured(Class::Softmax);
    assert_eq!(fitted(&samples, &[]).to_json(), fitted(&samples, &[]).to_json());
}

/// Classes that were not measured have prior coefficients, relative to those that were.
#[test]
fn all_classes_have_coefficients() {
    let model = fitted(&measured(Class::Elementwise), &[]);
    for (class, name) in crate::model::CLASSES {
        let coefficients = model.coefficients(*class).unwrap();
        assert_eq!(coefficients.samples > 0, *class == Class::Elementwise, "{name}");
        assert!(coefficients.terms.iter().any(|(_, coefficient)| *coefficient > 0.0), "{name}");
    }
    let time = |class| model.time(&model.rates, &function(class, 1 << 28), Launch::Eager).micros.0;
    assert!(time(Class::Softmax) > 1.5 * time(Class::Elementwise));
    assert!(time(Class::Gather) > 2.0 * time(Class::Elementwise));
}

#[test]
fn captured_launches_are_recovered() {
    let samples = measured(Class::Elementwise);
    let free = fitted(&samples, &[]);
    let free = Model { captured: Some(Micros(3.0)), ..free };
    let tasks: Vec<(Task, u64)> = (10..24).map(|size| (function(Class::Elementwise, 1 << size), 5)).collect();
    let time = |(task, count): &(Task, u64)| *count as f64 * free.time(&free.rates, task, Launch::Captured).micros.0;
    let replay = CapturedNetwork { micros: Micros(tasks.iter().map(time).sum()), tasks };
    assert_eq!(fitted(&samples, &[replay]).captured, Some(Micros(3.0)));
}

#[test]
fn no_samples_is_an_error() {
    let error = fit(&Target::of(CPU), "", "", &[], &[]).unwrap_err();
    assert_eq!(error.to_string(), "no measured operator to fit a model to");
    let view = Sample { task: function(Class::View, 1), micros: Micros(1.0), count: 1 };
    assert_eq!(fit(&Target::of(CPU), "", "", &[view], &[]), Err(Error::NoSamples));
}
