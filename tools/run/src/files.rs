//! Input and output files; outputs are written atomically.

use crate::{arguments::Arguments, measure::Measured};
use divi_files::{Inputs, check_distinct};
use divi_npy::npy;
use divi_runtime::{
    Runtime, TensorData,
    bundle::{Bundle, DESCRIPTION},
    profiles, trace,
};
use std::{
    collections::HashSet,
    fs,
    io::{self, Read, Write},
    path::{Path, PathBuf},
};

pub(crate) fn print(text: &str) -> Result<(), String> {
    let mut stdout = io::stdout().lock();
    stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush()).map_err(|error| format!("stdout: {error}"))
}

/// Reads a file, or a pipe, of at most `limit` bytes.
pub(crate) fn read(path: &Path, limit: u64) -> Result<Vec<u8>, String> {
    let failed = |error: io::Error| format!("{}: {error}", path.display());
    let mut bytes = Vec::new();
    fs::File::open(path).and_then(|file| file.take(limit.saturating_add(1)).read_to_end(&mut bytes)).map_err(failed)?;
    if bytes.len() as u64 > limit {
        return Err(format!("{}: it has more than {limit} bytes, too many for the model's inputs", path.display()));
    }
    Ok(bytes)
}

/// Writes a file atomically.
fn write(path: &Path, contents: &[u8]) -> Result<(), String> {
    divi_files::write(path, contents).map_err(|error| format!("{}: {error}", path.display()))
}

/// Checks that outputs do not replace inputs, the bundle, or weights that it refers to. `bundle` is `None` if it cannot be read,
/// which is reported later.
pub(crate) fn check_outputs(arguments: &Arguments, bundle: Option<&Bundle>) -> Result<(), String> {
    let mut inputs = Inputs::default();
    arguments.inputs.iter().for_each(|(_, path)| inputs.add("an input", path));
    arguments.archives.iter().for_each(|path| inputs.add("an input", path));
    arguments.expected.iter().for_each(|path| inputs.add("the folder of expected outputs", path));
    arguments.compare.iter().for_each(|path| inputs.add("the reference of --compare", path));
    for path in bundle.iter().flat_map(|bundle| bundle.weight_files()) {
        inputs.add("a file with weights of the bundle", &arguments.bundle.join(path));
    }
    // The choices file is read and written; it may be in the bundle's folder, but must not replace a file of the bundle.
    if let Some(path) = &arguments.choices {
        let mut files = inputs.clone();
        let listed = bundle.iter().flat_map(|bundle| &bundle.files).map(|file| file.path.as_str());
        listed.chain([DESCRIPTION]).for_each(|file| files.add("a file of the bundle", &arguments.bundle.join(file)));
        files.check_file(path)?;
    }
    inputs.add("the bundle", &arguments.bundle);
    let mut outputs = vec![];
    for (option, path) in [("--trace", &arguments.trace), ("--profile-out", &arguments.profile)] {
        if let Some(path) = path {
            inputs.check_file(path)?;
            outputs.push((option, path.clone()));
        }
    }
    if let Some(path) = &arguments.choices {
        outputs.push(("--choices", path.clone()));
    }
    if let Some(folder) = &arguments.output {
        // Files are only added to the folder.
        inputs.check_file(folder)?;
        let mut taken = HashSet::new();
        for port in bundle.iter().flat_map(|bundle| &bundle.outputs) {
            let path = folder.join(file_name(&port.name, &mut taken));
            inputs.check_file(&path)?;
            outputs.push(("--output", path));
        }
    }
    let outputs: Vec<_> = outputs.iter().map(|(option, path)| (*option, path.as_path())).collect();
    check_distinct(&outputs)
}

pub(crate) fn write_outputs(arguments: &Arguments, outputs: &[(String, TensorData)]) -> Result<(), String> {
    let Some(folder) = &arguments.output else { return Ok(()) };
    fs::create_dir_all(folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    let mut taken = HashSet::new();
    for (name, tensor) in outputs {
        write(&folder.join(file_name(name, &mut taken)), &npy::write(tensor.view()))?;
    }
    Ok(())
}

/// Returns a file name for an output, sanitized and unique.
pub(crate) fn file_name(name: &str, taken: &mut HashSet<String>) -> String {
    let is_safe = |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '.' | '_' | '-');
    let safe: String = name.chars().map(|letter| if is_safe(letter) { letter } else { '_' }).take(200).collect();
    let safe = if safe.is_empty() || safe.starts_with('.') { format!("_{safe}") } else { safe };
    let mut file = format!("{safe}.npy");
    let mut number = 2;
    while !taken.insert(file.clone()) {
        file = format!("{safe}_{number}.npy");
        number += 1;
    }
    file
}

pub(crate) fn write_measurements(arguments: &Arguments, runtime: &Runtime, measured: &Measured) -> Result<(), String> {
    if let Some(path) = &arguments.trace {
        write(path, trace(runtime.plan(), &measured.spans, &measured.clocks).as_bytes())?;
    }
    if let Some(path) = &arguments.profile {
        let profiles = profiles(runtime, &measured.spans);
        if profiles.is_empty() {
            return Err("--profile-out: the bundle does not describe what its tasks compute".to_owned());
        }
        for (index, (kind, text)) in profiles.iter().enumerate() {
            let path = if index == 0 { path.clone() } else { with_kind(path, kind) };
            write(&path, text.as_bytes())?;
        }
    }
    if measured.left_out > 0 && !arguments.is_quiet {
        eprintln!("divi-run: warning: {} spans were dropped; measure fewer runs", measured.left_out);
    }
    Ok(())
}

/// Inserts the device kind: `profile.json` becomes `profile.cuda.json`.
fn with_kind(path: &Path, kind: &str) -> PathBuf {
    let extension = path.extension().map_or(String::new(), |extension| format!(".{}", extension.to_string_lossy()));
    path.with_extension(format!("{kind}{extension}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_made_safe() {
        let mut taken = HashSet::new();
        let names = ["out", "a/b:0", "a_b_0", "../x", ""].map(|name| file_name(name, &mut taken));
        assert_eq!(names, ["out.npy", "a_b_0.npy", "a_b_0_2.npy", "_.._x.npy", "_.npy"]);
    }
}
