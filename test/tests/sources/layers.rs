//! Layers: imports between the top-level modules of a crate must be acyclic.
//!
//! Imports are found in the sources: every path that begins with `crate::`, or with `super::` in a top-level file. A name that
//! the root re-exports counts as its original module. Test modules are excluded.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Path, PathBuf},
};

/// Modules and their imports.
type Imports = BTreeMap<String, BTreeSet<String>>;

#[test]
fn codegen_has_layers() {
    check("passes/codegen/src");
}

#[test]
fn passes_have_layers() {
    check("passes/mlir/src");
}

#[test]
fn planner_has_layers() {
    check("passes/planner/src");
    check_modules("passes/planner/src", "solvers");
}

#[test]
fn runtime_has_layers() {
    check("runtime/src");
}

/// Checks the top-level modules of a crate.
fn check(sources: &str) {
    check_folder(sources, "lib.rs", "crate::");
}

/// Checks the modules inside a top-level module.
fn check_modules(sources: &str, module: &str) {
    check_folder(&format!("{sources}/{module}"), &format!("../{module}.rs"), &format!("crate::{module}::"));
}

fn check_folder(sources: &str, library: &str, prefix: &str) {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(sources);
    let imports = imports(&root, library, prefix);
    assert!(imports.len() > 5, "{sources} has modules");
    let cycles = cycles(&imports);
    assert!(cycles.is_empty(), "{sources} has import cycles:\n{}", cycles.join("\n"));
}

#[test]
fn cycles_are_found() {
    let module = |name: &str, imported: &[&str]| (name.to_owned(), imported.iter().map(|&it| it.to_owned()).collect());
    let imports: Imports =
        [module("a", &["b"]), module("b", &["c", "d"]), module("c", &["a"]), module("d", &[])].into_iter().collect();
    assert_eq!(cycles(&imports), ["a -> b -> c -> a"]);
    let text = "use crate::{a::X, b::{self, Y}, Z};\nfn f(_: crate::c::W) {} // crate::d\n#[cfg(test)]\nmod tests {\n use crate::e;\n}\n";
    assert_eq!(paths(text, "crate::"), ["a", "b", "Z", "c"]);
}

/// Returns the imports of the modules in a folder, whose parent module is the file `library` with the path `prefix`.
fn imports(root: &Path, library: &str, prefix: &str) -> Imports {
    let library = fs::read_to_string(root.join(library)).expect("a library has a root");
    let exported = exported(&library);
    let mut files = vec![];
    collect(root, &mut files);
    let mut imports = Imports::new();
    for file in &files {
        let relative = file.strip_prefix(root).expect("files are below the root");
        let first = relative.components().next().expect("a file has a name").as_os_str().to_string_lossy();
        let module = first.trim_end_matches(".rs").to_owned();
        let text = fs::read_to_string(file).expect("sources are text");
        let mut names = paths(&text, prefix);
        if relative.components().count() == 1 {
            names.extend(paths(&text, "super::"));
        }
        let names = names.into_iter().map(|name| exported.get(&name).cloned().unwrap_or(name));
        imports.entry(module).or_default().extend(names);
    }
    let modules: BTreeSet<String> = imports.keys().cloned().collect();
    for (module, imported) in &mut imports {
        imported.retain(|name| name != module && modules.contains(name));
    }
    imports
}

/// Collects source files that are not tests.
fn collect(folder: &Path, files: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).expect("the folder is readable") {
        let path = entry.expect("the folder is readable").path();
        let name = path.file_name().expect("an entry has a name").to_string_lossy().into_owned();
        let is_test = ["test", "test.rs", "tests", "tests.rs", "testing.rs", "test_operator.rs"]
            .contains(&name.as_str())
            || name.ends_with("_test.rs");
        if path.is_dir() && !is_test {
            collect(&path, files);
        } else if name.ends_with(".rs") && !["lib.rs", "main.rs"].contains(&name.as_str()) && !is_test {
            files.push(path);
        }
    }
}

/// Returns the names that a root re-exports, with their original modules.
fn exported(library: &str) -> BTreeMap<String, String> {
    let mut exported = BTreeMap::new();
    for part in library.split("pub use ").skip(1) {
        let Some((path, _)) = part.split_once(';') else { continue };
        let Some((module, names)) = path.split_once("::") else { continue };
        for name in names.split(|c: char| !c.is_alphanumeric() && c != '_').filter(|name| !name.is_empty()) {
            exported.insert(name.to_owned(), module.to_owned());
        }
    }
    exported
}

/// Returns the first names behind a prefix, without those in comments and test modules.
fn paths(text: &str, prefix: &str) -> Vec<String> {
    let text = text.split("#[cfg(test)]\nmod test").next().unwrap_or_default();
    let lines = text.lines().map(|line| line.split("//").next().unwrap_or_default());
    let text: String = lines.flat_map(|line| [line, "\n"]).collect();
    let mut names = vec![];
    for (at, _) in text.match_indices(prefix) {
        let is_inside = text[..at].ends_with(|c: char| c.is_alphanumeric() || c == '_' || c == ':');
        if !is_inside {
            first_names(&text[at + prefix.len()..], &mut names);
        }
    }
    names
}

/// Collects the first name of a path, or those of the paths in braces.
fn first_names(text: &str, names: &mut Vec<String>) {
    let identifier =
        |text: &str| -> String { text.trim_start().chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect() };
    let Some(group) = text.strip_prefix('{') else {
        return names.push(identifier(text));
    };
    let (mut depth, mut start) = (0, 0);
    for (at, c) in group.char_indices() {
        match c {
            '{' => depth += 1,
            '}' if depth > 0 => depth -= 1,
            ',' | '}' if depth == 0 => {
                names.push(identifier(&group[start..at]));
                start = at + 1;
                if c == '}' {
                    break;
                }
            }
            _ => {}
        }
    }
    names.retain(|name| !name.is_empty());
}

/// Returns a cycle through each module that is on one, without modules of cycles found before.
fn cycles(imports: &Imports) -> Vec<String> {
    let mut seen: BTreeSet<&str> = BTreeSet::new();
    let mut found = vec![];
    for start in imports.keys() {
        if seen.contains(start.as_str()) {
            continue;
        }
        if let Some(cycle) = path(imports, start, start) {
            seen.extend(&cycle);
            found.push(format!("{} -> {start}", cycle.join(" -> ")));
        }
    }
    found
}

/// Returns the shortest path from a module to another, without the latter.
fn path<'a>(imports: &'a Imports, from: &'a str, to: &str) -> Option<Vec<&'a str>> {
    let mut before: BTreeMap<&str, &str> = BTreeMap::new();
    let mut queue = std::collections::VecDeque::from([from]);
    while let Some(module) = queue.pop_front() {
        for next in &imports[module] {
            if next == to {
                let mut path = vec![module];
                while let Some(&previous) = before.get(path[path.len() - 1]) {
                    path.push(previous);
                }
                path.reverse();
                return Some(path);
            }
            if next != from && !before.contains_key(next.as_str()) {
                before.insert(next, module);
                queue.push_back(next);
            }
        }
    }
    None
}
