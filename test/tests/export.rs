//! Round trips: models that are imported and exported again are unchanged.

use divi_dialect::Operation;
use divi_passes::{
    export::{self, to_model},
    import::{Options, Source, import},
};
use divi_test::{model::encode, node_cases};
use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

fn folder(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).expect("the target folder is writable");
    folder
}

#[derive(Debug, PartialEq)]
enum Trip {
    Same,
    Refused,
}

/// Imports a model, exports it to `copy`, and imports that. The error describes the difference. A model that import rejects
/// is not exported.
fn round_trip(path: &Path, copy: &Path) -> Result<Trip, String> {
    let models = path.parent().expect("a file has a folder");
    let options = Options { ir_folder: models.into(), weights_dir: Some(models.into()), ..Options::default() };
    // Contexts keep the names of resources.
    let (context, other) = (divi_test::context(), divi_test::context());
    let source = Source::open(path).map_err(|error| error.to_string())?;
    let Ok((module, _)) = import(&context, &source, &options) else { return Ok(Trip::Refused) };
    // Weights stay in their files, so that the copy refers to the same ones.
    let export = export::Options { ir_folder: models.into(), referenced: Some(models.into()), random_seed: None };
    let raw = Operation::from(&module);
    let (exported, messages) = divi_test::with_diagnostics(&context, || to_model(raw, &export));
    let bytes = encode(&exported.map_err(|_| messages)?);
    fs::write(copy, &bytes).expect("the folder is writable");
    // A model in memory has no file that weights could be relative to.
    let source = Source::from_memory(&source.name, bytes.into());
    let (again, _) = import(&other, &source, &options).map_err(|error| format!("cannot be imported again: {error}"))?;
    let (before, after) = (divi_test::print(&module), divi_test::print(&again));
    // The constant of a folded node may have the name of its result, which now names another value.
    let unnumbered = |line: &str| line.replace("_1\"}", "\"}").replace("_1>", ">").replace("_1: \"0x", ": \"0x");
    let is_constant = |line: &str| line.contains("onnx.Constant") || line.contains(": \"0x");
    let is_same = |a: &str, b: &str| a == b || is_constant(a) && a == unnumbered(b);
    match before.lines().zip(after.lines()).find(|(a, b)| !is_same(a, b)) {
        Some((a, b)) => Err(format!("'{a}' became '{b}'")),
        None if before.lines().count() != after.lines().count() => Err("the number of operations differs".into()),
        None => Ok(Trip::Same),
    }
}

fn check(folder: &Path) -> String {
    let script = divi_test::repository().join("test/tests/export/check.py");
    let output =
        Command::new(divi_test::python()).arg(script).arg(folder).output().expect("tools/setup installs Python");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("names are ASCII")
}

#[test]
fn models_round_trip() {
    let copies = folder("export-models");
    let mut models: Vec<_> = fs::read_dir(divi_test::models()).unwrap().map(|entry| entry.unwrap().path()).collect();
    models.retain(|path| path.extension().is_some_and(|extension| extension == "onnx"));
    models.sort();
    assert_eq!(models.len(), 21);
    for path in models {
        let name = path.file_name().unwrap();
        round_trip(&path, &copies.join(name)).unwrap_or_else(|problem| panic!("{} {problem}", path.display()));
    }
    assert_eq!(check(&copies), "");
}

#[test]
fn node_cases_round_trip() {
    let cases = node_cases::node_cases(env!("CARGO_TARGET_TMPDIR"));
    let copies = folder("export-nodes");
    let verdicts = node_cases::for_each_case(&cases, |_, case| {
        let verdict = round_trip(&case.model(), &copies.join(format!("{}.onnx", case.name)));
        verdict.map_err(|problem| format!("{} {problem}", case.name))
    });
    let complaints: Vec<_> = verdicts.iter().filter_map(|verdict| verdict.as_ref().err()).collect();
    assert!(complaints.is_empty(), "{complaints:#?}");
    // The tests of import list them.
    let refused = verdicts.iter().filter(|&verdict| *verdict == Ok(Trip::Refused)).count();
    assert_eq!((refused, cases.len() > 1800), (8, true), "{refused} of {}", cases.len());
    assert_eq!(check(&copies), "");
}
