//! Files in and out: whole or not at all.

use std::fs;
use std::io::{self, Read, Write};
use std::path::Path;

use divi_planner::{Plan, Problem};

/// A file's text, or that of stdin for `-`.
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

/// Writes a file whole or not at all; `-` and no path are stdout.
pub(crate) fn write(path: Option<&Path>, text: &str) -> Result<(), String> {
    let Some(path) = path.filter(|path| !is_standard(path)) else { return print(text) };
    divi_files::write(path, text).map_err(|error| format!("{}: {error}", path.display()))
}

pub(crate) fn is_standard(path: &Path) -> bool {
    path.as_os_str() == "-"
}

/// How messages call a file that is read.
pub(crate) fn label(path: &Path) -> String {
    if is_standard(path) { "stdin".to_owned() } else { path.display().to_string() }
}
