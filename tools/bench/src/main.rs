//! `divi-bench`: tables of divi against baselines, measured in the same run, as ratios.

mod arguments;
mod cost;
mod edge;
mod files;
mod import;
mod models;
mod nodes;
mod pipeline;
mod plan;
mod python;
mod run;
mod runs;

use std::process::ExitCode;

const USAGE: &str = "\
usage: divi-bench import [MODEL.onnx …]
       divi-bench cost [TABLE.json]
       divi-bench plan [PART …] [OPTIONS]
       divi-bench pipeline [PART …] [OPTIONS]
       divi-bench edge [PART …] [OPTIONS]
       divi-bench nodes [PART …] [OPTIONS]
       divi-bench run [PART …] [OPTIONS]";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let outcome = match arguments.split_first() {
        Some((command, rest)) if command == "cost" => cost::run(rest),
        Some((command, rest)) if command == "edge" => edge::run(rest),
        Some((command, rest)) if command == "import" => import::run(rest),
        Some((command, rest)) if command == "nodes" => nodes::run(rest),
        Some((command, rest)) if command == "pipeline" => pipeline::run(rest),
        Some((command, rest)) if command == "plan" => plan::run(rest),
        Some((command, rest)) if command == "run" => run::run(rest),
        _ => Err(USAGE.to_owned()),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("divi-bench: {message}");
            ExitCode::FAILURE
        }
    }
}
