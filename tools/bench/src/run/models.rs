//! Bundles compared with ONNX Runtime and OpenVINO.

use super::{
    MODELS, Settings,
    build::{Plan, Weights, bundle, exported, program},
};
use crate::{
    python,
    runs::{geometric_mean, median},
};
use serde_json::Value;

const SCRIPT: &str = include_str!("compare.py");

/// Maximum error of outputs in `f32`, relative to the largest output; in half precision in addition to [`AS_OTHERS`]. Times of models with
/// larger errors are not counted.
const TOLERANCE: f64 = 1e-3;
/// Maximum error in half precision, relative to that of OpenVINO.
const AS_OTHERS: f64 = 2.0;

/// Names of the engines in the script's output.
const ENGINES: [&str; 3] = ["divi", "onnxruntime", "openvino"];

pub(super) fn models(settings: &Settings) -> Result<(), String> {
    for (index, &threads) in settings.threads.iter().enumerate() {
        if index > 0 {
            println!();
        }
        table(settings, threads)?;
    }
    Ok(())
}

fn table(settings: &Settings, threads: usize) -> Result<(), String> {
    println!(
        "{threads} threads, {}, {} rounds: milliseconds, median and minimum, and ratio to the others; OpenVINO in {}",
        settings.precision,
        settings.rounds,
        if settings.precision == "f32" { "f32" } else { "its default precision" }
    );
    println!(
        "{:<20} {:>17} {:>17} {:>17} {:>9} {:>9} {:>9} {:>9}",
        "model", "divi", "ONNX Runtime", "OpenVINO", "/ ORT", "/ OV", "rel. err", "OV's err"
    );
    let mut plan = Plan::single(threads)?;
    plan.options.push(format!("--precision={}", settings.precision));
    let mut ratios: [Vec<(f64, String)>; 2] = Default::default();
    for model in settings.models_or(&MODELS) {
        match measure(&model, threads, settings, &plan) {
            Ok(row) => {
                row.print(&model);
                if !row.is_right() {
                    continue;
                }
                ratios
                    .iter_mut()
                    .zip([row.ratio(1), row.ratio(2)])
                    .for_each(|(all, one)| all.push((one, model.clone())));
            }
            // A failing model does not affect the others.
            Err(problem) => println!("{model:<20} {}", problem.lines().next_back().unwrap_or_default()),
        }
    }
    let [ort, openvino] = ratios.map(|ratios| summary(&ratios));
    println!("geometric mean: {} of ONNX Runtime, {} of OpenVINO", ort.0, openvino.0);
    println!("worst: {} of ONNX Runtime, {} of OpenVINO", ort.1, openvino.1);
    Ok(())
}

/// Returns the geometric mean, and the maximum with its name.
fn summary(ratios: &[(f64, String)]) -> (String, String) {
    let numbers: Vec<f64> = ratios.iter().map(|(ratio, _)| *ratio).collect();
    match ratios.iter().max_by(|a, b| a.0.total_cmp(&b.0)) {
        Some((worst, name)) => (format!("{:.3}x", geometric_mean(&numbers)), format!("{worst:.3}x ({name})")),
        None => ("-".to_owned(), "-".to_owned()),
    }
}

/// Milliseconds of each engine in each round.
struct Row {
    times: [Vec<f64>; 3],
    /// Of divi and of OpenVINO.
    errors: [f64; 2],
    tolerance: f64,
}

fn measure(model: &str, threads: usize, settings: &Settings, plan: &Plan) -> Result<Row, String> {
    let (bundle, _) = bundle(model, &format!("threads-{threads}-{}", settings.precision), Weights::Seed, plan)?;
    let model = exported(model)?;
    let library = program("libdivirun.so")?;
    let text = |path: &std::path::Path| path.to_string_lossy().into_owned();
    let numbers = [threads, settings.rounds].map(|number| number.to_string());
    let [threads, rounds] = numbers;
    let arguments = [text(&library), text(&bundle), text(&model), threads, rounds, settings.precision.clone()];
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let printed = python::run_in(&python::bench(), SCRIPT, &arguments)?;
    let value: Value =
        serde_json::from_str(&printed).map_err(|error| format!("the output of the script is not JSON: {error}"))?;
    let times = ENGINES.map(|engine| {
        let times = value["times"][engine].as_array().map(Vec::as_slice).unwrap_or_default();
        times.iter().filter_map(Value::as_f64).collect()
    });
    let errors = ["divi", "openvino"].map(|engine| value["errors"][engine].as_f64().unwrap_or(f64::NAN));
    let tolerance = if settings.precision == "f32" { TOLERANCE } else { TOLERANCE + AS_OTHERS * errors[1] };
    Ok(Row { times, errors, tolerance })
}

impl Row {
    /// Returns the ratio to another engine's time: the median over rounds, since both share the load of a round.
    fn ratio(&self, other: usize) -> f64 {
        let ratios = self.times[0].iter().zip(&self.times[other]).map(|(ours, other)| ours / other);
        median(&ratios.collect::<Vec<_>>())
    }

    fn is_right(&self) -> bool {
        self.errors[0] <= self.tolerance
    }

    fn print(&self, model: &str) {
        let shown = |times: &[f64]| {
            format!("{:>8.2} {:>8.2}", median(times), times.iter().copied().fold(f64::INFINITY, f64::min))
        };
        let [ours, ort, openvino] = self.times.each_ref().map(|times| shown(times));
        println!(
            "{model:<20} {ours:>17} {ort:>17} {openvino:>17} {:>8.3}x {:>8.3}x {:>9.1e} {:>9.1e}{}",
            self.ratio(1),
            self.ratio(2),
            self.errors[0],
            self.errors[1],
            if self.is_right() { "" } else { "  WRONG, not counted" }
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ratios_are_medians_over_rounds() {
        // The machine was slow for both in the second round.
        let row = Row {
            times: [vec![1.0, 9.0, 1.1], vec![2.0, 18.0, 2.0], vec![1.0, 1.0, 1.0]],
            errors: [0.0; 2],
            tolerance: 0.0,
        };
        assert_eq!((row.ratio(1), row.ratio(2)), (0.5, 1.1));
        let (mean, worst) = summary(&[(0.5, "a".to_owned()), (2.0, "b".to_owned())]);
        assert_eq!((&mean[..], &worst[..]), ("1.000x", "2.000x (b)"));
        assert_eq!(summary(&[]).0, "-");
    }
}
