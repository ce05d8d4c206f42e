//! Input and output files; outputs are written atomically.

use std::fs;
use std::io::{self, Read, Write};
use std::path::Path;

use divi_planner::{Plan, Problem};

/// Reads the text of a file, or of stdin for `-`.
pub(crate) fn read(path: &Path) -> Result<String, String> {
    let bytes = if is_standard(path) {
        let mut bytes = Vec::new();
        io::stdin().lock().read_to_end(&mut bytes).map(|_| bytes)
    } else {
        fs::read(path)
    };
    let bytes = bytes.map_err(|error| format!("{}: {error}", label(path)))?;
    String::from_utf8(bytes).map_err(|_| format!("{}: not UTF-8 text", label(path)))
}

pub(crate) fn problem(path: &Path) -> Result<Problem, String> {
    let problem = Problem::read(&read(path)?).and_then(|problem| problem.check_form().map(|()| problem));
    problem.map_err(|error| format!("{}: {error}", label(path)))
}

pub(crate) fn plan(path: &Path) -> Result<Plan, String> {
    Plan::read(&read(path)?).map_err(|error| format!("{}: {error}", label(path)))
}

pub(crate) fn print(text: &str) -> Result<(), String> {
    let mut stdout = io::stdout().lock();
    stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush()).map_err(|error| format!("stdout: {error}"))
}

/// Writes a file atomically; `-` and `None` are stdout.
pub(crate) fn write(path: Option<&Path>, text: &str) -> Result<(), String> {
    let Some(path) = path.filter(|path| !is_standard(path)) else { return print(text) };
    divi_files::write(path, text).map_err(|error| format!("{}: {error}", path.display()))
}

pub(crate) fn is_standard(path: &Path) -> bool {
    path.as_os_str() == "-"
}

/// Checks paths before any file is read: at most one input is stdin, and outputs, each with its option, are distinct and not inputs.
pub(crate) fn check(inputs: &[&Path], outputs: &[(&str, Option<&Path>)]) -> Result<(), String> {
    if inputs.iter().filter(|file| is_standard(file)).count() > 1 {
        return Err("stdin can be only one of the files".to_owned());
    }
    let mut read = divi_files::Inputs::default();
    inputs.iter().filter(|file| !is_standard(file)).for_each(|file| read.add("an input", file));
    let given = outputs.iter().filter_map(|&(option, path)| Some((option, path?)));
    let written: Vec<_> = given.filter(|(_, path)| !is_standard(path)).collect();
    written.iter().try_for_each(|(_, output)| read.check_file(output))?;
    divi_files::check_distinct(&written)
}

/// Returns the name of an input file in messages.
pub(crate) fn label(path: &Path) -> String {
    if is_standard(path) { "stdin".to_owned() } else { path.display().to_string() }
}
