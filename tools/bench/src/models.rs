//! Problems of models, and the operations of their tasks, as written by `divi-opt`.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Command;

use divi_planner::Problem;

use crate::files::read;

/// Vision models in `test/models`; those of DiviML's figures come first.
pub(crate) const VISION: [&str; 13] = [
    "alexnet",
    "vgg16",
    "resnet18",
    "resnet50",
    "squeezenet1_1",
    "mobilenet_v2",
    "mobilenet_v3_large",
    "densenet121",
    "googlenet",
    "inception_v3",
    "efficientnet_b0",
    "convnext_tiny",
    "vit_b_16",
];

/// Returns the problem of a model of `test/models` on a system (a preset or a file).
pub(crate) fn problem(model: &str, system: &str, inputs: u32) -> Result<Problem, String> {
    emitted(model, system, &inputs.to_string(), &[&format!("--inputs={inputs}")])
}

/// Returns the cold-start problem for one input: parameters are still in host memory.
pub(crate) fn cold_problem(model: &str, system: &str) -> Result<Problem, String> {
    emitted(model, system, "cold", &["--cold"])
}

fn emitted(model: &str, system: &str, what: &str, options: &[&str]) -> Result<Problem, String> {
    let name = Path::new(system).file_stem().unwrap_or_default().to_string_lossy();
    let file = format!("target/bench/{model}_{name}_{what}.json");
    fs::create_dir_all("target/bench").map_err(|error| error.to_string())?;
    opt_on(model, system, &[&["--emit=problem", "-o", &file], options].concat())?;
    read(&file)
}

/// Returns the operations of each task of a model by name.
pub(crate) fn operations(model: &str, system: &str) -> Result<BTreeMap<String, f64>, String> {
    let row = |(line, fields): (String, Vec<String>)| {
        let operations = fields.get(2).and_then(|field| field.parse().ok());
        operations.map(|operations: f64| (fields[0].clone(), operations)).ok_or_else(|| format!("{model}: {line}"))
    };
    costs(model, system)?.into_iter().map(row).collect()
}

/// Returns the cost table: each line with its fields.
fn costs(model: &str, system: &str) -> Result<Vec<(String, Vec<String>)>, String> {
    let table = opt_on(model, system, &["--cost-table=csv"])?;
    Ok(table.lines().skip(1).map(|line| (line.to_owned(), fields(line))).collect())
}

/// Runs `divi-opt` on a model; returns its standard output.
fn opt_on(model: &str, system: &str, arguments: &[&str]) -> Result<String, String> {
    let opt = std::env::current_exe().map_err(|error| error.to_string())?.with_file_name("divi-opt");
    let output = Command::new(&opt)
        .arg(Path::new("test/models").join(format!("{model}.onnx")))
        .args(["-q", &format!("--system={system}")])
        .args(arguments)
        .output()
        .map_err(|error| format!("cannot run {}: {error}; use tools/divi-bench", opt.display()))?;
    if !output.status.success() {
        return Err(format!("{model}: {}", String::from_utf8_lossy(&output.stderr)));
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// Splits a line of comma-separated values, some of which may be quoted.
fn fields(line: &str) -> Vec<String> {
    let (mut fields, mut quoted) = (vec![String::new()], false);
    for character in line.chars() {
        match character {
            '"' => quoted = !quoted,
            ',' if !quoted => fields.push(String::new()),
            other => fields.iter_mut().last().into_iter().for_each(|field| field.push(other)),
        }
    }
    fields
}
