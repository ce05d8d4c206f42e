//! Small valid files of each format, in the repository.

use std::{
    fs,
    path::{Path, PathBuf},
};

/// Returns the folder of a reader's corpus.
pub fn folder(reader: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus").join(reader)
}

/// Returns the files of a reader's corpus with their names, sorted by name.
pub fn files(reader: &str) -> Vec<(String, Vec<u8>)> {
    let folder = folder(reader);
    let entries = fs::read_dir(&folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    let mut paths: Vec<_> = entries.flatten().map(|entry| entry.path()).collect();
    paths.sort();
    let name = |path: &Path| path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    paths.into_iter().map(|path| (name(&path), fs::read(&path).unwrap_or_default())).collect()
}
