//! Checks of output paths for the driver.

use divi_cost::system::System;
use divi_files::{Inputs, check_distinct};
use std::path::Path;

/// Paths of a run; empty if not given.
pub(crate) struct Outputs<'a> {
    pub(crate) input: &'a Path,
    pub(crate) system: &'a Path,
    pub(crate) plan: &'a Path,
    pub(crate) placement: &'a Path,
    pub(crate) output: &'a Path,
    pub(crate) report: &'a Path,
    /// The output is a folder.
    pub(crate) is_folder: bool,
    /// The output may replace the model.
    pub(crate) in_place: bool,
}

/// Formats an error as LLVM does, without its number.
pub(crate) fn plain(problem: &std::io::Error) -> String {
    let text = problem.to_string();
    text.split(" (os error").next().unwrap_or_default().to_owned()
}

/// Checks that outputs replace neither inputs nor each other.
pub(crate) fn check(outputs: &Outputs<'_>) -> Result<(), String> {
    let &Outputs { input, system, plan, placement, output, report, .. } = outputs;
    let is_given = |path: &Path| !path.as_os_str().is_empty() && path != Path::new("-");
    let mut read = Inputs::default();
    for (description, path) in [("the plan", plan), ("the placement", placement)] {
        if is_given(path) {
            read.add(description, path);
        }
    }
    // A preset name need not be a file.
    if system.is_file() {
        read.add("the system", system);
        let described = system.to_str().and_then(|system| System::load(system).ok());
        let profiles = described.iter().flat_map(|system| &system.devices).filter_map(|device| device.profile.as_ref());
        profiles.for_each(|path| read.add("a profile of the system", path));
    }
    let mut all = read.clone();
    if is_given(input) {
        all.add("the model", input);
    }
    if is_given(report) {
        all.check_file(report)?;
    }
    if !is_given(output) {
        return Ok(());
    }
    let inputs = if outputs.in_place { read } else { all };
    if outputs.is_folder {
        inputs.check_folder(output)?;
        let mut folder = Inputs::default();
        folder.add("the folder that -o replaces,", output);
        return if is_given(report) { folder.check_file(report) } else { Ok(()) };
    }
    inputs.check_file(output)?;
    if is_given(report) { check_distinct(&[("-o", output), ("--report", report)]) } else { Ok(()) }
}
