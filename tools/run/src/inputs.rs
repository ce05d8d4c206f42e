//! The inputs: from files, or made up.

use crate::{arguments::Arguments, files};
use divi_runtime::{
    DType, Runtime, TensorData,
    bundle::Tensor,
    npy, npz,
    random_weights::{Element, Recipe},
};
use std::path::Path;

/// All inputs of the model, as they were asked for.
pub(crate) fn gather(runtime: &Runtime, arguments: &Arguments) -> Result<Vec<(String, TensorData)>, String> {
    let mut given = Vec::new();
    for (name, path) in &arguments.inputs {
        let name = match (&name[..], runtime.inputs().next()) {
            ("", Some((only, _))) if runtime.inputs().count() == 1 => only.to_owned(),
            ("", _) => return Err(format!("--input {}: say which input it is: NAME=FILE", path.display())),
            _ => name.clone(),
        };
        let tensor = npy::read(&files::read(path)?).map_err(|reason| format!("{}: {reason}", path.display()))?;
        given.push((name, tensor));
    }
    for path in &arguments.archives {
        let arrays = npz::read(&files::read(path)?).map_err(|reason| format!("{}: {reason}", path.display()))?;
        given.extend(arrays);
    }
    let mut inputs = Vec::new();
    for (name, tensor) in given {
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
                inputs.push((name.to_owned(), random(name, tensor, seed)?));
            }
        }
        None if !missing.is_empty() => return Err(ask_for(&missing, &arguments.bundle)),
        None => {}
    }
    Ok(inputs)
}

fn ask_for(missing: &[(&str, &Tensor)], bundle: &Path) -> String {
    let lines: String = missing.iter().map(|(name, tensor)| format!("\n  {name}: {tensor}")).collect();
    let (name, bundle) = (missing.first().map_or("", |(name, _)| name), bundle.display());
    format!(
        "these inputs are missing:{lines}\ngive them (divi-run {bundle} --input {name}=FILE.npy) or have them made up \
         (--random-inputs)"
    )
}

/// Numbers in -1..1; integers 0 and 1, which are indices into anything.
fn random(name: &str, tensor: &Tensor, seed: u64) -> Result<TensorData, String> {
    let dtype = DType::from_name(&tensor.dtype).ok_or_else(|| format!("input '{name}' is {tensor}"))?;
    let (element, low) = match dtype {
        DType::F32 => (Element::F32, -1.0),
        DType::F16 => (Element::F16, -1.0),
        DType::BF16 => (Element::BF16, -1.0),
        DType::F64 => (Element::F64, -1.0),
        DType::Complex64 => (Element::F32, -1.0),
        DType::Complex128 => (Element::F64, -1.0),
        _ => (Element::Int { bits: dtype.bits() as u32, signed: false }, 0.0),
    };
    let mut made = TensorData::zeroed(dtype, &tensor.shape).map_err(|error| error.to_string())?;
    let count = tensor.bytes * 8 / u64::from(element.bits());
    Recipe { key: name.to_owned(), element, count, low, high: 1.0 }.fill(seed, 0, made.bytes_mut());
    Ok(made)
}
