//! Detection of foreign files in an output folder.

use std::{collections::BTreeSet, fs, path::Path};

/// Checks that a folder contains no files other than `listed` (relative paths). The error names the first unlisted one.
pub fn check_listed<'a>(folder: &Path, listed: impl IntoIterator<Item = &'a str>) -> Result<(), String> {
    let listed: BTreeSet<&Path> = listed.into_iter().map(Path::new).collect();
    check(folder, Path::new(""), &listed)
}

fn check(folder: &Path, below: &Path, listed: &BTreeSet<&Path>) -> Result<(), String> {
    let cannot = |error: std::io::Error| format!("'{}': {error}", below.display());
    let entries: Result<Vec<_>, _> = fs::read_dir(folder.join(below)).map_err(cannot)?.collect();
    let mut entries = entries.map_err(cannot)?;
    entries.sort_by_key(fs::DirEntry::file_name);
    for entry in entries {
        let path = below.join(entry.file_name());
        let is_folder = entry.file_type().map_err(cannot)?.is_dir();
        if is_folder && listed.iter().any(|file| file.starts_with(&path) && *file != path) {
            check(folder, &path, listed)?;
        } else if is_folder || !listed.contains(path.as_path()) {
            return Err(format!(
                "'{}' is in it, which divi did not write: move it, or choose another folder",
                path.display()
            ));
        }
    }
    Ok(())
}
