//! Files that a program reads, which its outputs must not replace.

use crate::path::{identity, resolve};
use std::path::{Path, PathBuf};

/// Files that a program reads, each with a description, as "the model".
#[derive(Clone, Debug, Default)]
pub struct Inputs(Vec<(String, PathBuf)>);

impl Inputs {
    /// Adds a file or a folder.
    pub fn add(&mut self, description: &str, path: &Path) {
        self.0.push((description.to_owned(), path.to_owned()));
    }

    /// Says why a file cannot be written, if it is one of these or lies in one of these.
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

    /// Says why a folder cannot be written, if one of these lies in it or is it.
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

/// Says which of the outputs, each with the option that names it, are the same file.
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
