//! Input and output files.

use divi_files::{Inputs, check_distinct};
use std::io::{Read, Write};
use std::{fs, io, path::Path};

/// Reads the text of a file, or of standard input.
pub(crate) fn read(name: &str) -> Result<String, String> {
    let text = if name == "-" {
        let mut text = String::new();
        io::stdin().read_to_string(&mut text).map(|_| text)
    } else {
        fs::read_to_string(name)
    };
    text.map_err(|error| format!("{name}: {error}"))
}

/// Checks that outputs, each with its option, are distinct and not inputs.
pub(crate) fn check<'a>(
    inputs: impl IntoIterator<Item = &'a str>,
    outputs: &[(&str, Option<&str>)],
) -> Result<(), String> {
    let mut read = Inputs::default();
    inputs.into_iter().filter(|file| *file != "-").for_each(|file| read.add("an input", Path::new(file)));
    let given = outputs.iter().filter_map(|&(option, file)| Some((option, file.filter(|file| *file != "-")?)));
    let written: Vec<_> = given.map(|(option, file)| (option, Path::new(file))).collect();
    written.iter().try_for_each(|(_, output)| read.check_file(output))?;
    check_distinct(&written)
}

/// Checks that the folder of an output exists.
pub(crate) fn check_folder(file: &str) -> Result<(), String> {
    let folder = Path::new(file).parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    if folder.is_dir() { Ok(()) } else { Err(format!("{file}: '{}' is not a folder", folder.display())) }
}

/// Writes a file atomically, or to standard output.
pub(crate) fn write(name: Option<&str>, text: &str) -> Result<(), String> {
    let Some(name) = name.filter(|name| *name != "-") else {
        let written = io::stdout().write_all(text.as_bytes());
        return written.map_err(|error| format!("standard output: {error}"));
    };
    divi_files::write(Path::new(name), text).map_err(|error| format!("{name}: {error}"))
}
