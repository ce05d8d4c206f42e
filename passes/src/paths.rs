//! Paths as seen from folders.

use std::path::{Component, Path, PathBuf};

/// `path` as seen from `folder`. Both are absolute or relative to the working directory; an empty folder is the latter.
pub(crate) fn relative(path: &Path, folder: &Path) -> PathBuf {
    let (Ok(path), Ok(folder)) = (std::path::absolute(path), std::path::absolute(folder.join("."))) else {
        return path.to_owned();
    };
    let (path, folder) = (normalize(&path), normalize(&folder));
    let shared = path.components().zip(folder.components()).take_while(|(a, b)| a == b).count();
    let up = folder.components().skip(shared).map(|_| Component::ParentDir);
    up.chain(path.components().skip(shared)).collect()
}

/// Resolves `.` and `..` by name.
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
