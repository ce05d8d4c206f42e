//! Files in and out: whole or not at all.

use std::fs::{self, OpenOptions};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

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

/// Writes a file through a temporary one beside it, so that a reader never sees half of it; `-` and no path are stdout.
pub(crate) fn write(path: Option<&Path>, text: &str) -> Result<(), String> {
    let Some(path) = path.filter(|path| !is_standard(path)) else { return print(text) };
    write_whole(path, text).map_err(|error| format!("{}: {error}", path.display()))
}

fn write_whole(path: &Path, text: &str) -> io::Result<()> {
    // A link stays a link, and what it leads to is replaced.
    let target = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    let existing = fs::metadata(&target).ok();
    if existing.as_ref().is_some_and(|metadata| !metadata.is_file()) {
        // Devices and pipes cannot be replaced; folders say so themselves.
        return OpenOptions::new().write(true).open(&target)?.write_all(text.as_bytes());
    }
    let temporary = beside(&target);
    let written = OpenOptions::new().write(true).create_new(true).open(&temporary).and_then(|mut file| {
        file.write_all(text.as_bytes())?;
        if let Some(metadata) = existing {
            file.set_permissions(metadata.permissions())?;
        }
        drop(file);
        fs::rename(&temporary, &target)
    });
    if written.is_err() {
        // It may not even be there; the error that matters is the first.
        let _ = fs::remove_file(&temporary);
    }
    written
}

fn beside(path: &Path) -> PathBuf {
    let mut name = std::ffi::OsString::from(".");
    name.push(path.file_name().unwrap_or_default());
    name.push(format!(".{}.tmp", std::process::id()));
    path.with_file_name(name)
}

pub(crate) fn is_standard(path: &Path) -> bool {
    path.as_os_str() == "-"
}

/// How messages call a file that is read.
pub(crate) fn label(path: &Path) -> String {
    if is_standard(path) { "stdin".to_owned() } else { path.display().to_string() }
}
