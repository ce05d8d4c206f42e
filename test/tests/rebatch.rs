//! Other batch sizes: models verify at them, and operators compute for several inputs at once the same results as for each
//! input separately.

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
    env, fs,
    path::{Path, PathBuf},
    process::Command,
};

fn models() -> Vec<PathBuf> {
    let folder = fs::read_dir(divi_test::models()).expect("the folder of models is readable");
    let mut models: Vec<_> = folder.map(|entry| entry.expect("the folder is readable").path()).collect();
    models.retain(|path| path.extension().is_some_and(|extension| extension == "onnx"));
    models.sort();
    models
}

/// Tests that models can be rebatched: their inputs are independent, and the operators stay the same.
#[test]
fn models_verify_at_other_batches() {
    let models = models();
    assert_eq!(models.len(), 21);
    for path in models {
        for batch in [4, 16] {
            let context = divi_test::context();
            let (module, _) = divi_test::import_file(&context, &path, Options::default()).unwrap();
            let name = path.file_stem().unwrap().to_string_lossy();
            let before = count(&module);
            let ((), messages) = divi_test::with_diagnostics(&context, || {
                rebatch(Operation::from(&module), batch)
                    .unwrap_or_else(|_| panic!("{name} cannot be rebatched to {batch}"));
            });
            assert_eq!(messages, "", "{name} at {batch}");
            divi_test::verify(&context, &module).unwrap_or_else(|messages| panic!("{name} at {batch}: {messages}"));
            // A class token is repeated, and a shared constant may be duplicated.
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

/// Tests that every operator can be inferred at another batch size from the analysis of its operands, without a change of the
/// module, and that the result matches the analysis.
#[test]
fn every_operator_of_a_model_can_be_inferred_at_another_batch() {
    let mut inferred = 0;
    for path in models() {
        let context = divi_test::context();
        let (module, _) = divi_test::import_file(&context, &path, Options::default()).unwrap();
        let printed = divi_test::print(&module);
        for factor in [2, 32] {
            let rebatched = Rebatched::of(divi_test::function(&module), factor).unwrap();
            assert!(rebatched.unrolled().is_empty());
            divi_test::walk(&module, &mut |operation| {
                let Some(op) = Op::from_operation(divi_test::operation_name(operation)) else { return };
                if op != Op::Constant && op.is_inferred() {
                    check_inference(&rebatched, operation, op);
                    inferred += 1;
                }
            });
        }
        assert!(divi_test::print(&module) == printed, "the analysis changes the module");
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

/// Number of inputs that are stacked.
const FACTOR: i64 = 3;

/// Number of random graphs.
const RANDOM_GRAPHS: usize = 400;

/// Without `DIVI_ALL`, one case in this many is compared: all take two minutes in the reference implementation.
const SAMPLE: usize = 3;

/// Minimum number of cases that are compared and equal: the current number minus a few that a new version may lose.
const MIN_SAME: usize = 2_780;
/// Minimum number of cases in which nothing is unrolled.
const MIN_APART: usize = 2_050;

/// Runs ONNX's node test cases and random graphs on several inputs one by one, and stacked after `divi-rebatch`, and after
/// `divi-canonicalize`, in ONNX's reference implementation. The results must be equal, whether the analysis considers an
/// operator independent per input or unrolls it.
#[test]
fn stacked_inputs_give_the_results_of_single_inputs() {
    let cases = node_cases::node_cases(env!("CARGO_TARGET_TMPDIR"));
    let nodes = Path::new(env!("CARGO_TARGET_TMPDIR")).parent().unwrap().join("onnx-nodes");
    let root = Path::new(env!("CARGO_TARGET_TMPDIR")).join("rebatch");
    let _ = fs::remove_dir_all(&root);
    fs::create_dir_all(&root).unwrap();
    let graphs = RANDOM_GRAPHS.to_string();
    python(&["prepare".as_ref(), nodes.as_os_str(), root.as_os_str(), graphs.as_ref()]);
    let index = fs::read_to_string(root.join("index.tsv")).unwrap();
    let (mut claimed, mut apart) = (0, 0);
    let every = if env::var_os("DIVI_ALL").is_some() { 1 } else { SAMPLE };
    for line in index.lines().step_by(every) {
        let (name, unit) = line.split_once('\t').unwrap();
        let case = name.strip_suffix(".first").unwrap_or(name);
        assert!(name.starts_with("random_") || cases.iter().any(|other| other.name == case));
        match write_claim(&root.join(name), unit.parse().unwrap()) {
            Ok(is_unrolled) => {
                claimed += 1;
                apart += usize::from(!is_unrolled);
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
    println!("{same} of {claimed} cases with a batch are the same; in {apart} nothing is unrolled");
    let exceptions = Exceptions::parse("incomparable.txt", include_str!("rebatch/incomparable.txt"));
    let verdicts = verdicts.iter().map(|&(name, verdict)| {
        let right = verdict == "same" || verdict.starts_with("skipped");
        (name, (!right).then(|| verdict.to_owned()))
    });
    let complaints = if every == 1 { exceptions.complaints(verdicts) } else { exceptions.complaints_of_some(verdicts) };
    assert!(complaints.is_empty(), "{} failures:\n{}", complaints.len(), complaints.join("\n"));
    assert!(same >= MIN_SAME / every && apart >= MIN_APART / every, "{same} and {apart}");
}

fn python(arguments: &[&std::ffi::OsStr]) -> String {
    let script = divi_test::repository().join("test/tests/rebatch/run_cases.py");
    let output =
        Command::new(divi_test::python()).arg(&script).args(arguments).output().expect("tools/setup installs Python");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("names are ASCII")
}

/// Writes the models to run and the batch layout of their outputs. Returns true if anything is unrolled.
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
        fs::write(folder.join(name), bytes).expect("the folder is writable");
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
                    Batch::Separate => "separate\n".to_owned(),
                };
            }
        });
        let is_unrolled = !rebatched.unrolled().is_empty();
        rebatch(raw, unit * FACTOR).map(|_| is_unrolled)
    });
    let is_unrolled = outcome.map_err(|_| messages)?;
    write(&context, &module, "together.onnx")?;
    fs::write(folder.join("claim.tsv"), claim).expect("the folder is writable");
    Ok(is_unrolled)
}
