//! Reading of problem files.

use std::fs;

use divi_planner::Problem;

pub(crate) fn read(file: &str) -> Result<Problem, String> {
    let text = fs::read_to_string(file).map_err(|error| format!("{file}: {error}"))?;
    Problem::read(&text).map_err(|error| format!("{file}: {error}"))
}
