//! The inputs: from files, or made up.

use crate::{arguments::Arguments, files};
use divi_runtime::{DType, Runtime, TensorData, bundle::Tensor, npy, npz, random_input};
use std::{path::Path, sync::Arc};

/// All inputs of the model, as they were asked for.
pub(crate) fn gather(runtime: &Runtime, arguments: &Arguments) -> Result<Vec<(String, Arc<TensorData>)>, String> {
    let mut given = Vec::new();
    for (name, path) in &arguments.inputs {
        let name = match (&name[..], runtime.inputs().next()) {
            ("", Some((only, _))) if runtime.inputs().count() == 1 => only.to_owned(),
            ("", _) => return Err(format!("--input {}: say which input it is: NAME=FILE", path.display())),
            _ => name.clone(),
        };
        check_name(runtime, &name)?;
        let tensor = npy::read(&files::read(path)?).map_err(|reason| format!("{}: {reason}", path.display()))?;
        given.push((name, tensor));
    }
    for path in &arguments.archives {
        let arrays = npz::read(&files::read(path)?).map_err(|reason| format!("{}: {reason}", path.display()))?;
        given.extend(arrays);
    }
    let mut inputs = Vec::new();
    for (name, tensor) in given {
        check_name(runtime, &name)?;
        let wanted = runtime.inputs().find(|(known, _)| *known == name).and_then(|(_, it)| DType::from_name(&it.dtype));
        // What does not fit is refused where it is used.
        let tensor = match wanted {
            Some(dtype) => tensor.reinterpret(dtype).unwrap_or_else(|tensor| tensor),
            None => tensor,
        };
        inputs.push((name, tensor));
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

/// Refuses a name that no input has.
fn check_name(runtime: &Runtime, name: &str) -> Result<(), String> {
    let known: Vec<_> = runtime.inputs().map(|(known, _)| known).collect();
    if known.contains(&name) {
        return Ok(());
    }
    let list = known.iter().map(|name| format!("'{name}'")).collect::<Vec<_>>().join(", ");
    match known.is_empty() {
        true => Err(format!("there is no input '{name}': the model has none")),
        false => Err(format!("there is no input '{name}': the inputs are {list}")),
    }
}

fn ask_for(missing: &[(&str, &Tensor)], bundle: &Path) -> String {
    let lines: String = missing.iter().map(|(name, tensor)| format!("\n  {name}: {tensor}")).collect();
    let (name, bundle) = (missing.first().map_or("", |(name, _)| name), bundle.display());
    format!(
        "these inputs are missing:{lines}\ngive them (divi-run {bundle} --input {name}=FILE.npy) or have them made up \
         (--random-inputs)"
    )
}
