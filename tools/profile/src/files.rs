//! Reading and writing files.

use std::io::{Read, Write};
use std::{fs, io, path::Path};

/// The text of a file, or of standard input.
pub(crate) fn read(name: &str) -> Result<String, String> {
    let text = if name == "-" {
        let mut text = String::new();
        io::stdin().read_to_string(&mut text).map(|_| text)
    } else {
        fs::read_to_string(name)
    };
    text.map_err(|error| format!("{name}: {error}"))
}

/// Writes a file whole or not at all, or to standard output.
pub(crate) fn write(name: Option<&str>, text: &str) -> Result<(), String> {
    let Some(name) = name.filter(|name| *name != "-") else {
        let written = io::stdout().write_all(text.as_bytes());
        return written.map_err(|error| format!("standard output: {error}"));
    };
    divi_files::write(Path::new(name), text).map_err(|error| format!("{name}: {error}"))
}
