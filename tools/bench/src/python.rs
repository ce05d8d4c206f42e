//! Runs baselines, which are Python programs, in the environment of `tools/setup` or in one with more engines.

use std::{env, process::Command};

/// Runs a script with arguments; returns its standard output.
pub(crate) fn run(script: &str, arguments: &[&str]) -> Result<String, String> {
    run_in(&env::var("DIVI_PYTHON").unwrap_or_else(|_| ".venv/bin/python".into()), script, arguments)
}

/// Returns the Python interpreter with the engines that bundles are compared with.
pub(crate) fn bench() -> String {
    env::var("DIVI_BENCH_PYTHON").unwrap_or_else(|_| "target/bench/venv/bin/python".into())
}

pub(crate) fn run_in(python: &str, script: &str, arguments: &[&str]) -> Result<String, String> {
    let output = Command::new(python)
        .args(["-c", script])
        .args(arguments)
        .output()
        .map_err(|error| format!("cannot run {python}: {error}; use tools/divi-bench, or set DIVI_PYTHON"))?;
    if !output.status.success() {
        return Err(format!("the baseline failed:\n{}", String::from_utf8_lossy(&output.stderr)));
    }
    String::from_utf8(output.stdout).map_err(|_| "the output of the baseline is not UTF-8".to_owned())
}
