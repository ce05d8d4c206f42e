//! Pipelines of two devices: predicted and measured throughput, compared with one core.

use super::{
    Settings,
    build::{Plan, Weights, bundle, write},
    launch::{launch, repeat},
};
use crate::runs::median;
use std::{fs, path::Path};

const MODELS: [&str; 2] = ["resnet50", "googlenet"];

/// Number of alternations between the pipeline and one core, so that other load affects both equally.
const TURNS: usize = 5;

pub(super) fn pipeline(settings: &Settings) -> Result<(), String> {
    println!(
        "two devices of one core each, planned with times measured on one; inputs per second, medians of {TURNS} alternations"
    );
    println!("{:<20} {:>10} {:>10} {:>9} {:>10} {:>9}", "model", "predicted", "measured", "error", "one core", "gain");
    for model in settings.models_or(&MODELS) {
        let row = measure(&model, settings.seconds)?;
        println!(
            "{model:<20} {:>10.2} {:>10.2} {:>+7.1} % {:>10.2} {:>8.2}x",
            row.predicted,
            row.measured,
            (row.measured / row.predicted - 1.0) * 100.0,
            row.one_core,
            row.gain
        );
    }
    Ok(())
}

struct Row {
    predicted: f64,
    measured: f64,
    one_core: f64,
    /// Median over the alternations of the ratio to one core's throughput.
    gain: f64,
}

fn measure(model: &str, seconds: f64) -> Result<Row, String> {
    let (single, _) = bundle(model, "one-core", Weights::Seed, &Plan::single(1)?)?;
    let profile = profile(model, &single, seconds)?;
    let system = write(&format!("{model}-two.toml"), &two_devices(&profile))?;
    let options = ["--objective=pipeline", "--k=2"].map(str::to_owned).to_vec();
    let (pipeline, _) = bundle(model, "pipeline", Weights::Seed, &Plan { system, options })?;
    let turn = seconds / TURNS as f64;
    let (many, few) = ([repeat(&pipeline, turn)?], [repeat(&single, turn)?]);
    let (mut predicted, mut measured, mut one_core) = (0.0, vec![], vec![]);
    for _ in 0..TURNS {
        let launched = launch(&pipeline, &many)?;
        predicted = launched.number("/predicted_throughput_per_s")?;
        measured.push(launched.number("/throughput_per_s")?);
        one_core.push(launch(&single, &few)?.number("/throughput_per_s")?);
    }
    let gains: Vec<f64> = measured.iter().zip(&one_core).map(|(both, one)| both / one).collect();
    Ok(Row { predicted, measured: median(&measured), one_core: median(&one_core), gain: median(&gains) })
}

/// Measures the tasks of a model on one core; returns the path of the profile.
pub(crate) fn profile(model: &str, single: &Path, seconds: f64) -> Result<String, String> {
    let file = write(&format!("{model}-profile.json"), "")?;
    launch(single, &[repeat(single, seconds)?, format!("--profile-out={}", file.display())])?;
    let file = fs::canonicalize(&file).map_err(|error| format!("{}: {error}", file.display()))?;
    Ok(file.to_string_lossy().into_owned())
}

/// The preset `cpu-2` with measured times.
fn two_devices(profile: &str) -> String {
    let device = |id: &str| {
        format!("[[device]]\nid = \"{id}\"\nkind = \"cpu\"\nmemory = \"4 GiB\"\nthreads = 1\nprofile = '{profile}'\n\n")
    };
    format!(
        "name = \"cpu-2-measured\"\n\n{}{}[[link]]\nfrom = \"cpu0\"\nto = \"cpu1\"\nbandwidth = \"10 GB/s\"\n\
         latency = \"5 us\"\nbus = \"memory\"\nduplex = \"half\"\n",
        device("cpu0"),
        device("cpu1")
    )
}
