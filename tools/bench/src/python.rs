//! Baselines are Python programs; this runs them in the environment that `tools/setup` makes, or in one with more engines.

use std::{env, process::Command};

/// Runs a script with arguments and returns what it prints.
pub(crate) fn run(script: &str, arguments: &[&str]) -> Result<String, String> {
    run_in(&env::var("DIVI_PYTHON").unwrap_or_else(|_| ".venv/bin/python".into()), script, arguments)
}

/// The Python that has the engines which bundles are compared with.
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
    String::from_utf8(output.stdout).map_err(|_| "the baseline printed no text".to_owned())
}
