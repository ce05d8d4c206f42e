//! Unsafe code and raw MLIR pointers occur in files named `ffi.rs` only; names of `divi` attributes and operations occur in
//! the dialect only.

use crate::scan::{Allowed, check, code, quoted};
use std::path::Path;

/// Folders of the compiler. The runtime handles memory and drivers, and has unsafe code in many places.
const COMPILER: &[&str] = &["dialect", "passes", "tools/opt", "tools/plugin"];

const UNSAFE: Allowed = &[
    ("passes/mlir/build/rust.rs", "generates the entry points that src/ffi.rs includes"),
    ("passes/report/src/html.rs", "a keyword of the Content Security Policy, not of Rust"),
];

#[test]
fn unsafe_code_is_in_files_named_ffi() {
    check("unsafe code outside of files named ffi.rs", COMPILER, UNSAFE, |path, text| {
        if is_ffi(path) { vec![] } else { lines_with(text, &["unsafe", "mlir_sys"]) }
    });
}

#[test]
fn names_of_the_dialect_are_in_the_dialect() {
    check("names of the divi dialect; use keys of `attr` and `op` instead", &["passes/mlir"], &[], |_, text| {
        let is_name =
            |text: &str| text.starts_with("divi.") && text[5..].chars().all(|c| c.is_ascii_lowercase() || c == '_');
        let names = |(number, line)| {
            quoted(line).filter(|text| is_name(text)).map(move |name| format!("{name} in line {number}"))
        };
        code(text).flat_map(names).collect()
    });
}

fn is_ffi(path: &Path) -> bool {
    path.file_name().is_some_and(|name| name == "ffi.rs")
}

/// Returns the lines that contain one of the words.
fn lines_with(text: &str, words: &[&str]) -> Vec<String> {
    let has = |line: &str| line.split(|c: char| !c.is_alphanumeric() && c != '_').any(|word| words.contains(&word));
    code(text).filter(|(_, line)| has(line)).map(|(number, _)| format!("line {number}")).collect()
}

#[test]
fn unsafe_lines_are_found() {
    assert_eq!(lines_with("fn f() {\n    unsafe { g() } // unsafe\n}\n// unsafe\n", &["unsafe"]), ["line 2"]);
    assert!(lines_with("fn unsafely() {}", &["unsafe"]).is_empty());
}
