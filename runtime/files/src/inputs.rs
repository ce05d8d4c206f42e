//! Input files of a program, which its outputs must not replace.

use crate::path::{identity, resolve};
use std::path::{Path, PathBuf};

/// Input files and folders, each with a description for messages, such as "the model".
#[derive(Clone, Debug, Default)]
pub struct Inputs(Vec<(String, PathBuf)>);

impl Inputs {
    /// Adds a file or a folder.
    pub fn add(&mut self, description: &str, path: &Path) {
        self.0.push((description.to_owned(), path.to_owned()));
    }

    /// Returns an error if `output` is one of the inputs or lies inside one of them.
    pub fn check_file(&self, output: &Path) -> Result<(), String> {
        let Some(wanted) = identity(output) else { return Ok(()) };
        let place = resolve(output);
        for (description, input) in &self.0 {
            if identity(input).is_some_and(|identity| identity == wanted) {
                return Err(format!(
                    "cannot write '{}': it is {description} itself: choose another name",
                    output.display()
                ));
            }
            let folder = input.canonicalize().ok().or_else(|| resolve(input));
            if folder.is_some_and(|folder| place.as_ref().is_some_and(|place| place.starts_with(folder))) {
                return Err(format!(
                    "cannot write '{}': it is in {description} '{}': choose another place",
                    output.display(),
                    input.display()
                ));
            }
        }
        Ok(())
    }

    /// Returns an error if the folder `output` is, contains, or lies inside one of the inputs.
    pub fn check_folder(&self, output: &Path) -> Result<(), String> {
        self.check_file(output)?;
        let Ok(folder) = output.canonicalize() else { return Ok(()) };
        for (description, input) in &self.0 {
            let places = [input.canonicalize().ok(), resolve(input)];
            if places.iter().flatten().any(|place| place.starts_with(&folder)) {
                return Err(format!(
                    "cannot write '{}': it contains {description} '{}': choose another folder",
                    output.display(),
                    input.display()
                ));
            }
        }
        Ok(())
    }
}

/// Returns an error if two of the outputs are the same file. Each output comes with the option that names it.
pub fn check_distinct(outputs: &[(&str, &Path)]) -> Result<(), String> {
    for (index, (option, output)) in outputs.iter().enumerate() {
        for (other, path) in &outputs[..index] {
            if identity(output).is_some_and(|output| Some(output) == identity(path)) {
                return Err(format!("{other} and {option} both write '{}': choose two names", output.display()));
            }
        }
    }
    Ok(())
}
