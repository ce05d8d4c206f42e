//! `divi-opt --partition` from model file to outlined module: every model, machine and objective.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Instant;

use serde_json::Value;

use super::Settings;

const SYSTEMS: [&str; 3] = ["cpu+h200", "diviml", "cpu-2"];

const OBJECTIVES: [(&str, &[&str]); 3] = [
    ("latency", &["--objective=latency"]),
    ("batch", &["--objective=batch", "--inputs=16"]),
    ("pipeline", &["--objective=pipeline"]),
];

/// Suffix of models with a dynamic batch dimension, which need a batch size.
const OPEN_BATCH: &str = "dyn_batch";

pub(super) fn run(settings: &Settings) -> Result<(), String> {
    let limit = settings.limit.map_or("no limit".to_owned(), |seconds| format!("a limit of {seconds} s"));
    println!("divi-opt --partition with {limit}: milliseconds, gap, seconds of the command");
    print!("{:<20} {:<9}", "model", "objective");
    SYSTEMS.iter().for_each(|system| print!(" {system:>30}"));
    println!();
    let mut slowest = (0.0, String::new());
    let mut refused = Vec::new();
    for model in models()? {
        for (objective, flags) in OBJECTIVES {
            print!("{model:<20} {objective:<9}");
            for system in SYSTEMS {
                match partition(&model, system, flags, settings.limit)? {
                    Ok(Outcome { value, gap, seconds }) => {
                        let cell = format!("{:.3} {:6.2} % {seconds:6.2} s", value / 1e3, 100.0 * gap);
                        print!(" {cell:>30}");
                        if seconds > slowest.0 {
                            slowest = (seconds, format!("{model}, {objective}, {system}"));
                        }
                    }
                    Err(message) => {
                        print!(" {:>30}", "rejected");
                        refused.push(format!("{model}, {objective}, {system}: {message}"));
                    }
                }
            }
            println!();
        }
    }
    println!("the slowest took {:.2} s: {}", slowest.0, slowest.1);
    refused.iter().for_each(|refusal| println!("rejected: {refusal}"));
    Ok(())
}

fn models() -> Result<Vec<String>, String> {
    let folder = Path::new("test/models");
    let entries = fs::read_dir(folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    let names = entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
    let mut models: Vec<String> = names.filter_map(|name| name.strip_suffix(".onnx").map(str::to_owned)).collect();
    models.sort();
    Ok(models)
}

struct Outcome {
    value: f64,
    gap: f64,
    seconds: f64,
}

/// Runs the command; returns its plan's summary, or its error message.
fn partition(model: &str, system: &str, flags: &[&str], limit: Option<f64>) -> Result<Result<Outcome, String>, String> {
    let opt = std::env::current_exe().map_err(|error| error.to_string())?.with_file_name("divi-opt");
    fs::create_dir_all("target/bench").map_err(|error| error.to_string())?;
    let mut command = Command::new(&opt);
    command
        .arg(Path::new("test/models").join(format!("{model}.onnx")))
        .args(["--partition", "--json", &format!("--system={system}"), "-o", "target/bench/partition.mlir"])
        .args(flags);
    if model.ends_with(OPEN_BATCH) {
        command.arg("--batch=1");
    }
    if let Some(seconds) = limit {
        command.arg(format!("--time-limit={seconds}"));
    }
    let started = Instant::now();
    let output =
        command.output().map_err(|error| format!("cannot run {}: {error}; use tools/divi-bench", opt.display()))?;
    let seconds = started.elapsed().as_secs_f64();
    let stderr = String::from_utf8_lossy(&output.stderr);
    if !output.status.success() {
        return Ok(Err(stderr.trim().to_owned()));
    }
    let last = stderr.lines().last().unwrap_or_default();
    let summary: Value = serde_json::from_str(last).map_err(|error| format!("{model}: {error}: {last}"))?;
    let number = |key: &str| summary[key].as_f64().ok_or_else(|| format!("{model}: the summary has no {key}"));
    Ok(Ok(Outcome { value: number("value")?, gap: number("gap")?, seconds }))
}
