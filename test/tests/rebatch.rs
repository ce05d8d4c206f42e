//! Other batch sizes: real models verify at them, and operators compute for several inputs at once what they compute for
//! each.

use divi_dialect::{Operation, tensor_type_of};
use divi_onnx::{Node, Op, infer};
use divi_passes::{
    canonicalize::canonicalize,
    export,
    import::Options,
    rebatch::{Batch, Rebatched, rebatch},
};
use divi_test::{exceptions::Exceptions, model, node_cases};
use melior::{Context, ir::Module};
use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

fn models() -> Vec<PathBuf> {
    let folder = fs::read_dir(divi_test::models()).expect("the models are there");
    let mut models: Vec<_> = folder.map(|entry| entry.expect("the folder can be read").path()).collect();
    models.retain(|path| path.extension().is_some_and(|extension| extension == "onnx"));
    models.sort();
    models
}

/// No model mixes the inputs of a batch, and each is what it was, with another batch.
#[test]
fn models_verify_at_other_batches() {
    let models = models();
    assert_eq!(models.len(), 19);
    for path in models {
        for batch in [4, 16] {
            let context = divi_test::context();
            let (module, _) = divi_test::import_file(&context, &path, Options::default()).unwrap();
            let name = path.file_stem().unwrap().to_string_lossy();
            let before = count(&module);
            let ((), messages) = divi_test::with_diagnostics(&context, || {
                rebatch(Operation::from(&module), batch).unwrap_or_else(|_| panic!("{name} has no batch {batch}"));
            });
            assert_eq!(messages, "", "{name} at {batch}");
            divi_test::verify(&context, &module).unwrap_or_else(|messages| panic!("{name} at {batch}: {messages}"));
            // A class token is repeated, and operators that shared a constant may have one each.
            assert!(count(&module) <= before + 8, "{name} at {batch} has {} operators, not {before}", count(&module));
            for ty in divi_test::result_types(&module) {
                let shape = tensor_type_of(ty).unwrap().static_shape().unwrap();
                assert_eq!(shape[0], batch, "{name} returns {ty}");
            }
        }
    }
}

fn count(module: &Module<'_>) -> usize {
    let mut count = 0;
    divi_test::walk(module, &mut |_| count += 1);
    count
}

/// Without a change of the module, every operator can be inferred at another batch from what the analysis says of its
/// operands, and comes out as it says.
#[test]
fn every_operator_of_a_model_can_be_inferred_at_another_batch() {
    let mut inferred = 0;
    for path in models() {
        let context = divi_test::context();
        let (module, _) = divi_test::import_file(&context, &path, Options::default()).unwrap();
        let printed = divi_test::print(&module);
        for factor in [2, 32] {
            let rebatched = Rebatched::of(divi_test::function(&module), factor).unwrap();
            assert!(rebatched.repeated().is_empty());
            divi_test::walk(&module, &mut |operation| {
                let Some(op) = Op::from_operation(divi_test::operation_name(operation)) else { return };
                if op != Op::Constant && op.is_inferred() {
                    check_inference(&rebatched, operation, op);
                    inferred += 1;
                }
            });
        }
        assert!(divi_test::print(&module) == printed, "the analysis has changed the module");
    }
    assert!(inferred > 10_000, "{inferred}");
}

fn check_inference(rebatched: &Rebatched<'_>, operation: Operation<'_>, op: Op) {
    let operands = rebatched.operands_of(operation);
    let inputs: Vec<_> = operands.iter().map(Option::as_ref).collect();
    let (attributes, results) = (divi_dialect::node::attributes_of(operation), operation.results());
    let outputs = divi_dialect::node::present_results(operation);
    let types = infer::infer(&Node { op, inputs: &inputs, attributes: &attributes, outputs });
    let types = types.unwrap_or_else(|error| panic!("{op} {error}"));
    for (result, ty) in results.into_iter().zip(types).filter(|(result, _)| !result.is_none()) {
        assert_eq!(rebatched.result_of(operation, result), Some(ty.clone()), "{op}");
        assert_eq!(rebatched.type_of(result), Some(ty), "{op}");
    }
}

/// How many runs there are at once.
const FACTOR: i64 = 3;

/// How many graphs are made up.
const RANDOM_GRAPHS: usize = 400;

/// Cases that at least must be compared and the same, and that at least must not repeat anything: as many as are today, less a few that
/// a new version of the cases may lose.
const MIN_SAME: usize = 2_780;
const MIN_APART: usize = 2_050;

/// Runs ONNX's node test cases and random graphs on several inputs one by one, and at once as `divi-rebatch` makes them, and as
/// `divi-canonicalize` does, in ONNX's reference implementation. Whether an operator is claimed to keep inputs apart or is
/// unrolled, the numbers must be the same.
#[test]
fn several_inputs_at_once_give_what_each_gives() {
    let cases = node_cases::node_cases(env!("CARGO_TARGET_TMPDIR"));
    let nodes = Path::new(env!("CARGO_TARGET_TMPDIR")).parent().unwrap().join("onnx-nodes");
    let root = Path::new(env!("CARGO_TARGET_TMPDIR")).join("rebatch");
    let _ = fs::remove_dir_all(&root);
    fs::create_dir_all(&root).unwrap();
    let graphs = RANDOM_GRAPHS.to_string();
    python(&["prepare".as_ref(), nodes.as_os_str(), root.as_os_str(), graphs.as_ref()]);
    let index = fs::read_to_string(root.join("index.tsv")).unwrap();
    let (mut claimed, mut apart) = (0, 0);
    for line in index.lines() {
        let (name, unit) = line.split_once('\t').unwrap();
        let case = name.strip_suffix(".first").unwrap_or(name);
        assert!(name.starts_with("random_") || cases.iter().any(|other| other.name == case));
        match write_claim(&root.join(name), unit.parse().unwrap()) {
            Ok(repeats) => {
                claimed += 1;
                apart += usize::from(!repeats);
            }
            Err(message) => println!("{name} is not compared: {message}"),
        }
    }
    let output = python(&["compare".as_ref(), root.as_os_str(), FACTOR.to_string().as_ref()]);
    let verdicts: Vec<_> = output.lines().filter_map(|line| line.split_once('\t')).collect();
    assert_eq!(verdicts.len(), claimed);
    let same = verdicts.iter().filter(|(_, verdict)| *verdict == "same").count();
    for (name, verdict) in verdicts.iter().filter(|(_, verdict)| verdict.starts_with("skipped")) {
        println!("{name} is {verdict}");
    }
    println!("{same} of {} cases with a batch are the same; in {apart} nothing is unrolled", index.lines().count());
    let exceptions = Exceptions::parse("incomparable.txt", include_str!("rebatch/incomparable.txt"));
    let verdicts = verdicts.iter().map(|&(name, verdict)| {
        let right = verdict == "same" || verdict.starts_with("skipped");
        (name, (!right).then(|| verdict.to_owned()))
    });
    let complaints = exceptions.complaints(verdicts);
    assert!(complaints.is_empty(), "{} complaints:\n{}", complaints.len(), complaints.join("\n"));
    assert!(same >= MIN_SAME && apart >= MIN_APART, "{same} and {apart}");
}

fn python(arguments: &[&std::ffi::OsStr]) -> String {
    let script = divi_test::repository().join("test/tests/rebatch/run_cases.py");
    let output = Command::new(divi_test::python()).arg(&script).args(arguments).output().expect("tools/setup makes it");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("names are ASCII")
}

/// Writes the models to run, and where their outputs have the runs. Says whether anything repeats.
fn write_claim(folder: &Path, unit: i64) -> Result<bool, String> {
    let import = |context| {
        let import = divi_test::import_file(context, &folder.join("model.onnx"), Options::default());
        import.map(|(module, _)| module).map_err(|error| error.to_string())
    };
    let write = |context: &Context, module: &Module<'_>, name: &str| -> Result<(), String> {
        divi_test::verify(context, module)?;
        let options = export::Options { ir_folder: folder.to_owned(), ..export::Options::default() };
        let raw = Operation::from(module);
        let (exported, messages) = divi_test::with_diagnostics(context, || export::to_model(raw, &options));
        let bytes = model::encode(&exported.map_err(|_| messages)?);
        fs::write(folder.join(name), bytes).expect("the folder is ours");
        Ok(())
    };
    let context = divi_test::context();
    let canonical = import(&context)?;
    canonicalize(Operation::from(&canonical));
    write(&context, &canonical, "canonical.onnx")?;

    let module = import(&context)?;
    let raw = Operation::from(&module);
    let mut claim = String::new();
    let (outcome, messages) = divi_test::with_diagnostics(&context, || {
        let rebatched = Rebatched::of(divi_test::function(&module), FACTOR)?;
        divi_test::walk(&module, &mut |operation| {
            if divi_test::operation_name(operation) != "func.return" {
                return;
            }
            for value in operation.operands() {
                claim += &match rebatched.batch_of(value) {
                    Batch::Same => "same\n".to_owned(),
                    Batch::At(layout) => format!("at {} {}\n", layout.axis, layout.outer),
                    Batch::Apart => "apart\n".to_owned(),
                };
            }
        });
        let repeats = !rebatched.repeated().is_empty();
        rebatch(raw, unit * FACTOR).map(|_| repeats)
    });
    let repeats = outcome.map_err(|_| messages)?;
    write(&context, &module, "together.onnx")?;
    fs::write(folder.join("claim.tsv"), claim).expect("the folder is ours");
    Ok(repeats)
}
