//! Temporary folder for bundles and their inputs.

use std::{fs, path::PathBuf};

/// The folder; removed when dropped.
pub(super) struct Scratch(divi_files::Scratch);

impl Scratch {
    pub(super) fn new() -> Result<Self, String> {
        divi_files::Scratch::new("divi-profile").map(Self).map_err(|error| format!("temporary folder: {error}"))
    }

    /// Returns the path of a file in the folder.
    pub(super) fn join(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// Writes a file in the folder; returns its path.
    pub(super) fn write(&self, name: &str, text: &str) -> Result<PathBuf, String> {
        let path = self.join(name);
        fs::write(&path, text).map_err(|error| format!("{}: {error}", path.display()))?;
        Ok(path)
    }
}
