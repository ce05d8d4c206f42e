//! Searches the sources of the workspace, except allowed files.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
};

/// Sources that may contain a match, with reasons. A folder stands for all files in it.
pub(crate) type Allowed = &'static [(&'static str, &'static str)];

/// Folders without sources of the compiler: tests, builds, and environments.
const SKIPPED: &[&str] = &["target", "test", "lit", ".git", ".venv", ".highs"];

/// Checks that `find` returns nothing for the sources below `folders` (all, if empty) except the allowed ones, and that all
/// exceptions are needed. `what` describes the matches in messages.
pub(crate) fn check(what: &str, folders: &[&str], allowed: Allowed, find: impl Fn(&Path, &str) -> Vec<String>) {
    let root = divi_test::repository();
    let mut files = vec![];
    sources(root, &mut files);
    assert!(files.len() > 300, "{} sources", files.len());
    let mut found: BTreeMap<String, Vec<String>> = BTreeMap::new();
    let mut unused: Vec<_> = allowed.iter().map(|(path, _)| *path).collect();
    for file in files {
        let path = file.strip_prefix(root).expect("files are below the root");
        if !folders.is_empty() && !folders.iter().any(|folder| path.starts_with(folder)) {
            continue;
        }
        let places = find(path, &fs::read_to_string(&file).expect("sources are UTF-8"));
        if places.is_empty() {
            continue;
        }
        match allowed.iter().find(|(allowed, _)| path.starts_with(allowed)) {
            Some((allowed, _)) => unused.retain(|path| path != allowed),
            None => {
                found.insert(path.to_string_lossy().into_owned(), places);
            }
        }
    }
    assert!(found.is_empty(), "{what}: {found:#?}");
    assert!(unused.is_empty(), "unused exceptions: {unused:?}");
}

/// Collects the Rust files of all `src` folders, without tests.
fn sources(folder: &Path, files: &mut Vec<PathBuf>) {
    let mut entries: Vec<_> = fs::read_dir(folder).expect("the folder is readable").flatten().collect();
    entries.sort_by_key(|entry| entry.file_name());
    for entry in entries {
        let name = entry.file_name().to_string_lossy().into_owned();
        let path = entry.path();
        if path.is_dir() {
            if !SKIPPED.contains(&name.as_str()) && name != "tests" {
                sources(&path, files);
            }
        } else if name.ends_with(".rs") && !matches!(name.as_str(), "tests.rs" | "testing.rs" | "test_operator.rs") {
            files.push(path);
        }
    }
}

/// Returns the lines of a source with their numbers, without comments and without the tests at its end.
pub(crate) fn code(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let is_test = |number: usize, line: &str| {
        line.starts_with("#[cfg(test)]") && !text.lines().nth(number + 1).is_some_and(|next| next.ends_with(';'))
    };
    let lines = text.lines().enumerate().take_while(move |(number, line)| !is_test(*number, line));
    lines.map(|(number, line)| (number + 1, line.split("//").next().unwrap_or_default()))
}

/// Returns the quoted strings of a line.
pub(crate) fn quoted(code: &str) -> impl Iterator<Item = &str> {
    // Quotes alternate: strings are between the first and the second, the third and the fourth, and so on.
    code.split('"').skip(1).step_by(2)
}
