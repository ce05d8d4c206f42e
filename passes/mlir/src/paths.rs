//! Relative paths.

use std::path::{Component, Path, PathBuf};

/// Returns `path` relative to `folder`. Both are absolute or relative to the working directory, which an empty folder
/// means.
pub(crate) fn relative(path: &Path, folder: &Path) -> PathBuf {
    let (Some(path), Some(folder)) = (resolve(path), resolve(&folder.join("."))) else {
        return path.to_owned();
    };
    let shared = path.components().zip(folder.components()).take_while(|(a, b)| a == b).count();
    let up = folder.components().skip(shared).map(|_| Component::ParentDir);
    up.chain(path.components().skip(shared)).collect()
}

/// Returns an absolute path without `.` and `..`. Symbolic links to folders are resolved, because `..` refers to the
/// parent of their target; the last component need not exist.
fn resolve(path: &Path) -> Option<PathBuf> {
    let path = std::path::absolute(path).ok()?;
    if path.is_dir() {
        return path.canonicalize().ok();
    }
    match (path.parent().and_then(|parent| parent.canonicalize().ok()), path.file_name()) {
        (Some(parent), Some(name)) => Some(parent.join(name)),
        _ => Some(normalize(&path)),
    }
}

/// Resolves `.` and `..` lexically.
fn normalize(path: &Path) -> PathBuf {
    let mut normal = PathBuf::new();
    for component in path.components() {
        match component {
            Component::CurDir => {}
            Component::ParentDir => {
                normal.pop();
            }
            component => normal.push(component),
        }
    }
    normal
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_relative_to_the_folder() {
        let check = |path: &str, folder: &str, expected: &str| {
            assert_eq!(relative(Path::new(path), Path::new(folder)), Path::new(expected));
        };
        check("models/weights.bin", "", "models/weights.bin");
        check("models/weights.bin", "models", "weights.bin");
        check("models/weights.bin", "out", "../models/weights.bin");
        check("/a/b/w.bin", "/a/c/d", "../../b/w.bin");
        check("./a/../w.bin", ".", "w.bin");
    }
}
