//! Doc comments must not contain Rust examples, since `tools/run-tests` does not run doctests.

use std::{fs, path::Path};

#[test]
fn doc_comments_have_no_rust_examples() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let mut found = vec![];
    for folder in ["dialect", "passes", "runtime", "test", "tools"] {
        collect(&root.join(folder), &mut found);
    }
    assert!(found.is_empty(), "doc examples are not run; turn them into tests:\n{}", found.join("\n"));
}

/// Collects the files below a folder whose doc comments have a code block without a language or with that of Rust.
fn collect(folder: &Path, found: &mut Vec<String>) {
    for entry in fs::read_dir(folder).expect("the folder is readable") {
        let path = entry.expect("the folder is readable").path();
        if path.is_dir() {
            if path.file_name().is_some_and(|name| name != "target") {
                collect(&path, found);
            }
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            let text = fs::read_to_string(&path).expect("sources are UTF-8");
            let fences = text.lines().map(str::trim_start).filter_map(|line| {
                line.strip_prefix("///").or_else(|| line.strip_prefix("//!"))?.trim_start().strip_prefix("```")
            });
            // Every second fence ends a block.
            if fences.step_by(2).any(|language| language.is_empty() || language.starts_with("rust")) {
                found.push(path.display().to_string());
            }
        }
    }
}
