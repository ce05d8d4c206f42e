//! Rust examples in doc comments: there are none, since `tools/run-tests` runs test binaries only.

use std::{fs, path::Path};

#[test]
fn doc_comments_have_no_rust_examples() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let mut found = vec![];
    for folder in ["dialect", "passes", "runtime", "test", "tools"] {
        collect(&root.join(folder), &mut found);
    }
    assert!(found.is_empty(), "examples that nothing runs; make them tests:\n{}", found.join("\n"));
}

/// Collects the files below a folder in whose doc comments a code block has no language, or that of Rust.
fn collect(folder: &Path, found: &mut Vec<String>) {
    for entry in fs::read_dir(folder).expect("sources are there") {
        let path = entry.expect("a folder can be listed").path();
        if path.is_dir() {
            if path.file_name().is_some_and(|name| name != "target") {
                collect(&path, found);
            }
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            let text = fs::read_to_string(&path).expect("sources are text");
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
