//! The problems that models pose, as `divi-opt` writes them.

use std::fs;
use std::path::Path;
use std::process::Command;

use divi_planner::Problem;

use crate::files::read;

/// A model of `test/models` on a system: a preset, or a file.
pub(crate) fn problem(model: &str, system: &str, inputs: u32) -> Result<Problem, String> {
    let opt = std::env::current_exe().map_err(|error| error.to_string())?.with_file_name("divi-opt");
    let name = Path::new(system).file_stem().unwrap_or_default().to_string_lossy();
    let file = format!("target/bench/{model}_{name}_{inputs}.json");
    fs::create_dir_all("target/bench").map_err(|error| error.to_string())?;
    let output = Command::new(&opt)
        .arg(Path::new("test/models").join(format!("{model}.onnx")))
        .args(["-q", &format!("--system={system}"), "--emit=problem", &format!("--inputs={inputs}"), "-o", &file])
        .output()
        .map_err(|error| format!("cannot run {}: {error}; use tools/divi-bench", opt.display()))?;
    if !output.status.success() {
        return Err(format!("{model}: {}", String::from_utf8_lossy(&output.stderr)));
    }
    read(&file)
}
