//! Comparison of outputs with expected ones.

use crate::{arguments::Arguments, files, inputs, numbers::numbers};
use divi_runtime::{DType, Runtime, TensorData, TensorRef, bundle::Tensor};
use std::{
    collections::HashSet,
    fmt::Write,
    path::{Path, PathBuf},
};

/// Expected values of one output.
pub(crate) struct Expected {
    path: PathBuf,
    tensor: TensorData,
}

/// Reads the expected outputs, one file for each output of the model, in their order.
pub(crate) fn read(runtime: &Runtime, arguments: &Arguments) -> Result<Vec<Expected>, String> {
    let Some(folder) = &arguments.expected else { return Ok(vec![]) };
    let read = |(name, path, described): (&str, PathBuf, &Tensor)| {
        let tensor = inputs::read(&path, described)?;
        if described.dtype != tensor.dtype().name() || described.shape != tensor.shape() {
            let (path, found) = (path.display(), tensor.view());
            return Err(format!("{path}: contains {found}, but output '{name}' is {described}"));
        }
        Ok(Expected { path, tensor })
    };
    files_of(runtime, folder).map(read).collect()
}

/// Returns name, file and type of each output whose values are in a folder.
pub(crate) fn files_of<'a>(
    runtime: &'a Runtime,
    folder: &'a Path,
) -> impl Iterator<Item = (&'a str, PathBuf, &'a Tensor)> {
    let mut taken = HashSet::new();
    runtime.outputs().map(move |(name, tensor)| (name, folder.join(files::file_name(name, &mut taken)), tensor))
}

/// Compares outputs with the expected ones. Returns a line for each output, or an error for the first one beyond the
/// tolerance.
pub(crate) fn compare(
    expected: &[Expected],
    outputs: &[(String, TensorData)],
    tolerance: f64,
) -> Result<String, String> {
    let mut text = String::new();
    for ((name, output), Expected { path, tensor }) in outputs.iter().zip(expected) {
        let largest = match (floats(output.view()), floats(tensor.view())) {
            (Some(found), Some(wanted)) => compare_numbers(&found, &wanted, tolerance),
            _ if output.bytes() == tensor.bytes() => Ok(0.0),
            _ => Err("the bytes differ".to_owned()),
        };
        let largest =
            largest.map_err(|reason| format!("output '{name}' differs from '{}': {reason}", path.display()))?;
        let _ = writeln!(text, "expected  output '{name}' with an error of {largest:.1e} of the largest element");
    }
    Ok(text)
}

/// Returns the largest error relative to the largest finite expected number. NaN equals NaN; infinities are equal if their
/// signs are.
fn compare_numbers(found: &[f64], expected: &[f64], tolerance: f64) -> Result<f64, String> {
    let finite = expected.iter().map(|number| number.abs()).filter(|number| number.is_finite());
    let scale = finite.fold(0.0, f64::max);
    let mut worst = 0.0;
    for (index, (&found, &expected)) in found.iter().zip(expected).enumerate() {
        if found == expected || found.is_nan() && expected.is_nan() {
            continue;
        }
        let error = (found - expected).abs() / scale;
        // The comparison is false for NaN.
        if error <= tolerance {
            worst = f64::max(worst, error);
        } else {
            return Err(format!(
                "element {index} is {found}, expected {expected}: an error of {error:.1e} of the largest element exceeds the \
                 tolerance of {tolerance:e}"
            ));
        }
    }
    Ok(worst)
}

/// Returns floating-point numbers; `None` for other types, which are compared by their bytes.
fn floats(tensor: TensorRef<'_>) -> Option<Vec<f64>> {
    let is_float = matches!(tensor.dtype, DType::F64 | DType::F32 | DType::F16 | DType::BF16);
    is_float.then(|| numbers(tensor)).flatten()
}

#[cfg(test)]
mod tests {
    use super::compare_numbers;

    #[test]
    fn errors_are_relative_to_the_largest_element() {
        let (nan, infinity) = (f64::NAN, f64::INFINITY);
        assert_eq!(compare_numbers(&[1.0, nan, infinity], &[1.0, nan, infinity], 0.0), Ok(0.0));
        assert_eq!(compare_numbers(&[0.5, 4.0], &[0.0, 4.0], 0.2), Ok(0.125));
        for (found, expected) in [(0.5, 0.0), (nan, 4.0), (4.0, nan), (infinity, -infinity), (infinity, 4.0)] {
            assert!(compare_numbers(&[found, 4.0], &[expected, 4.0], 0.1).is_err(), "{found} {expected}");
        }
        assert!(compare_numbers(&[1e-30], &[0.0], 0.1).is_err());
    }
}
