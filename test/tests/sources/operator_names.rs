//! Operators are named in one table (`dialect/onnx/src/operators/table.rs`): other sources have `Op`, not strings.

use divi_onnx::Op;
use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
};

/// Sources that may quote the name of an operator, and why. A folder stands for all files in it.
const ALLOWED: &[(&str, &str)] = &[
    ("dialect/onnx/src/schema_table.rs", "generated from ONNX's schemas, which know operators by name"),
    ("passes/src/import/upgrade.rs", "translates operators of older opsets, some of which the dialect does not have"),
    ("passes/src/import/upgrade", "as upgrade.rs"),
    ("passes/cost/src/model/json.rs", "names of cost classes, some of which are also names of operators"),
    ("passes/cost/src/pytorch/operators.rs", "names of PyTorch's modules, some of which are also names of operators"),
    ("passes/codegen/src/ops/recurrent", "names of activation functions, values of an attribute"),
];

/// Folders of the workspace that hold no sources of the compiler: tests, builds, and tools that generate test models.
const SKIPPED: &[&str] = &["target", "test", "lit", ".git", ".venv", ".highs"];

#[test]
fn operators_are_named_in_the_table_alone() {
    let root = divi_test::repository();
    let mut files = vec![];
    sources(root, &mut files);
    assert!(files.len() > 300, "{} sources", files.len());
    let mut found: BTreeMap<String, Vec<String>> = BTreeMap::new();
    let mut unused: Vec<_> = ALLOWED.iter().map(|(path, _)| *path).collect();
    for file in files {
        let path = file.strip_prefix(root).expect("it was found there").to_string_lossy().into_owned();
        let names = quoted_operators(&fs::read_to_string(&file).expect("sources are text"));
        if names.is_empty() {
            continue;
        }
        match ALLOWED.iter().find(|(allowed, _)| Path::new(&path).starts_with(allowed)) {
            Some((allowed, _)) => unused.retain(|path| path != allowed),
            None => {
                found.insert(path, names);
            }
        }
    }
    assert!(found.is_empty(), "quoted names of operators, where `Op` should be: {found:#?}");
    assert!(unused.is_empty(), "exceptions that no source needs any more: {unused:?}");
}

/// Collects the Rust files of all `src` folders, without tests.
fn sources(folder: &Path, files: &mut Vec<PathBuf>) {
    let mut entries: Vec<_> = fs::read_dir(folder).expect("the folder is there").flatten().collect();
    entries.sort_by_key(|entry| entry.file_name());
    for entry in entries {
        let name = entry.file_name().to_string_lossy().into_owned();
        let path = entry.path();
        if path.is_dir() {
            if !SKIPPED.contains(&name.as_str()) && name != "tests" {
                sources(&path, files);
            }
        } else if name.ends_with(".rs") && !matches!(name.as_str(), "tests.rs" | "testing.rs" | "case.rs") {
            files.push(path);
        }
    }
}

/// The operators whose names a source quotes, with the line, outside of comments and of the tests at its end.
fn quoted_operators(text: &str) -> Vec<String> {
    let mut names = vec![];
    for (number, line) in text.lines().enumerate() {
        if line.starts_with("#[cfg(test)]") && !text.lines().nth(number + 1).is_some_and(|next| next.ends_with(';')) {
            break;
        }
        let code = line.split("//").next().unwrap_or_default();
        // Quotes alternate: what is between the first and the second is text, and so on.
        let texts = code.split('"').skip(1).step_by(2);
        let quoted = texts.filter_map(|text| Op::from_name(text.strip_prefix("onnx.").unwrap_or(text)));
        names.extend(quoted.map(|op| format!("{op} in line {}", number + 1)));
    }
    names
}

#[test]
fn quoted_names_are_found() {
    let text = "match op {\n    \"Conv\" | \"onnx.Relu\" => 1, // \"Add\"\n}\n#[cfg(test)]\nmod tests {\n\"Mul\"\n";
    assert_eq!(quoted_operators(text), ["Conv in line 2", "Relu in line 2"]);
}
