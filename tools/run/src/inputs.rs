//! Inputs from files, or random ones.

use crate::{arguments::Arguments, files};
use divi_npy::{npy, npz};
use divi_runtime::{DType, Runtime, TensorData, bundle::Tensor, random_input};
use std::{path::Path, sync::Arc};

/// Returns all inputs of the model as requested by the arguments.
pub(crate) fn gather(runtime: &Runtime, arguments: &Arguments) -> Result<Vec<(String, Arc<TensorData>)>, String> {
    let mut inputs = Vec::new();
    for (name, path) in &arguments.inputs {
        let name = match (&name[..], runtime.inputs().next()) {
            ("", Some((only, _))) if runtime.inputs().count() == 1 => only.to_owned(),
            ("", _) => return Err(format!("--input {}: missing name; use NAME=FILE", path.display())),
            _ => name.clone(),
        };
        let tensor = read(path, find(runtime, &name)?)?;
        inputs.push((name, tensor));
    }
    for path in &arguments.archives {
        let all = runtime.inputs().map(|(_, tensor)| file_bytes(tensor)).fold(MOST_HEADER_BYTES, u64::saturating_add);
        let may_read = |name: &str, bytes: u64| match find(runtime, name)? {
            tensor if bytes > file_bytes(tensor) => {
                Err(format!("it has {bytes} bytes, more than any file of {tensor}"))
            }
            _ => Ok(()),
        };
        let arrays = npz::read_bounded(&files::read(path, all)?, may_read);
        for (name, tensor) in arrays.map_err(|reason| format!("{}: {reason}", path.display()))? {
            let tensor = reinterpret(tensor, find(runtime, &name)?);
            inputs.push((name, tensor));
        }
    }
    let missing: Vec<_> = runtime.inputs().filter(|(name, _)| inputs.iter().all(|(given, _)| given != name)).collect();
    match arguments.seed {
        Some(seed) => {
            for (name, tensor) in missing {
                inputs.push((name.to_owned(), random_input(name, tensor, seed).map_err(|error| error.to_string())?));
            }
        }
        None if !missing.is_empty() => return Err(ask_for(&missing, &arguments.bundle)),
        None => {}
    }
    let adopt = |(name, tensor)| Ok((name, Arc::new(runtime.adopt(tensor).map_err(|error| error.to_string())?)));
    inputs.into_iter().map(adopt).collect()
}

/// Returns the input with a name; an unknown name is an error.
fn find<'a>(runtime: &'a Runtime, name: &str) -> Result<&'a Tensor, String> {
    if let Some((_, tensor)) = runtime.inputs().find(|(known, _)| *known == name) {
        return Ok(tensor);
    }
    let list = runtime.inputs().map(|(known, _)| format!("'{known}'")).collect::<Vec<_>>().join(", ");
    match list.is_empty() {
        true => Err(format!("unknown input '{name}'; the model has no inputs")),
        false => Err(format!("unknown input '{name}'; expected one of {list}")),
    }
}

/// Reads a NumPy file for the described tensor; the caller checks its type and shape.
pub(crate) fn read(path: &Path, described: &Tensor) -> Result<TensorData, String> {
    let tensor = npy::read(&files::read(path, file_bytes(described))?);
    Ok(reinterpret(tensor.map_err(|reason| format!("{}: {reason}", path.display()))?, described))
}

/// Reinterprets the bits as the described type, if NumPy lacks that type and has one of the same width.
fn reinterpret(tensor: TensorData, described: &Tensor) -> TensorData {
    match DType::from_name(&described.dtype) {
        Some(dtype) => npy::reinterpret(tensor, dtype).unwrap_or_else(|tensor| tensor),
        None => tensor,
    }
}

/// Maximum size of a NumPy header: usually about a hundred bytes, but it may be padded.
pub(crate) const MOST_HEADER_BYTES: u64 = 1 << 17;

/// Returns the maximum size of a file with an array of this shape, for any element type.
pub(crate) fn file_bytes(tensor: &Tensor) -> u64 {
    let elements = tensor.shape.iter().fold(1, |count: u64, &size| count.saturating_mul(size));
    elements.saturating_mul(16).saturating_add(MOST_HEADER_BYTES)
}

fn ask_for(missing: &[(&str, &Tensor)], bundle: &Path) -> String {
    let lines: String = missing.iter().map(|(name, tensor)| format!("\n  {name}: {tensor}")).collect();
    let (name, bundle) = (missing.first().map_or("", |(name, _)| name), bundle.display());
    format!(
        "missing inputs:{lines}\npass them (divi-run {bundle} --input {name}=FILE.npy) or generate them \
         (--random-inputs)"
    )
}
