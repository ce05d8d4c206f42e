//! Imports every model of `test/models` and checks the invariants that later phases rely on: verified, static, folded,
//! named, deterministic, and unchanged after a round trip through text or bytecode.

use divi_dialect::{
    Operation,
    node::{attributes_of, inference_value, present_results},
};
use divi_onnx::{Dim, Node, Op, Value, fold, infer, node::KnownElements};
use divi_passes::import::Options;
use melior::ir::Module;
use std::{path::PathBuf, process::Command};

macro_rules! models {
    ($($name:ident)*) => {
        const NAMES: &[&str] = &[$(stringify!($name)),*];
        $(
            #[test]
            fn $name() {
                check_model(stringify!($name));
            }
        )*
    };
}

models! {
    alexnet
    bert_base_128
    convnext_tiny
    densenet121
    efficientnet_b0
    googlenet
    gpt2_large_1x128
    gpt2_small_1x128
    inception_v3
    llama_2l_1x128
    mobilenet_v2
    mobilenet_v3_large
    openllama_3b_1x128
    regnet_y_400mf
    resnet18
    resnet50
    resnet50_dyn_batch
    resnext50_32x4d
    squeezenet1_1
    vgg16
    vit_b_16
}

/// The only model with a dynamic batch dimension.
const DYNAMIC: &str = "resnet50_dyn_batch";

fn path(name: &str) -> PathBuf {
    divi_test::models().join(format!("{name}.onnx"))
}

/// Imports a model into a new context; returns its text.
fn text(name: &str, options: Options) -> String {
    let context = divi_test::context();
    let (module, _) = divi_test::import_file(&context, &path(name), options).unwrap_or_else(|error| panic!("{error}"));
    divi_test::print(&module)
}

fn check_model(name: &str) {
    let context = divi_test::context();
    let import = divi_test::import_file(&context, &path(name), Options::default());
    let (module, warnings) = import.unwrap_or_else(|error| panic!("{error}"));
    // All operators are known; only the dynamic model causes a warning.
    assert_eq!(warnings.len(), usize::from(name == DYNAMIC), "{warnings:?}");
    divi_test::verify(&context, &module).unwrap_or_else(|messages| panic!("{messages}"));

    let printed = divi_test::print(&module);
    assert_eq!(text(name, Options::default()), printed, "a second import differs");
    check_round_trips(&module, &printed);
    check_operations(&module, if name == DYNAMIC { Batch::Open } else { Batch::Fixed });
}

/// Batch dimension of a model.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Batch {
    /// All dimensions are static.
    Fixed,
    /// The first dimension of results may be dynamic.
    Open,
}

fn check_round_trips(module: &Module<'_>, printed: &str) {
    let print_again = |bytes: &[u8]| {
        let context = divi_test::context();
        let module = divi_test::parse(&context, bytes).unwrap_or_else(|messages| panic!("{messages}"));
        divi_test::verify(&context, &module).unwrap_or_else(|messages| panic!("{messages}"));
        divi_test::print(&module)
    };
    assert!(print_again(printed.as_bytes()) == printed, "the text does not round-trip");
    assert!(print_again(&divi_test::bytecode(module)) == printed, "the bytecode does not round-trip");
}

fn check_operations(module: &Module<'_>, batch: Batch) {
    let mut count = 0;
    divi_test::walk(module, &mut |operation| {
        let Some(op) = divi_test::operation_name(operation).strip_prefix("onnx.") else { return };
        count += 1;
        // `NoValue` does not correspond to a node.
        assert!(
            op == "NoValue" || divi_test::attribute(operation, "onnx_node_name").is_some(),
            "an {op} has no node name"
        );
        assert!(!matches!(op, "Identity" | "Dropout"), "an {op} is left");
        check_result_types(operation, batch);
        if op != "Constant" {
            assert!(!folds(operation, op), "an {op} with constant operands was not folded: {}", node_name(operation));
        }
    });
    assert!(count > 10, "the module has too few operations");
}

fn check_result_types(operation: Operation<'_>, batch: Batch) {
    for result in operation.results().into_iter().filter(|result| !result.is_none()) {
        let ty = result.r#type();
        let shape = result.tensor_type().and_then(|ty| ty.shape);
        let shape = shape.unwrap_or_else(|| panic!("{} has a result of type {ty}", node_name(operation)));
        let skipped = usize::from(batch == Batch::Open);
        assert!(
            shape.iter().skip(skipped).all(|dim| matches!(dim, Dim::Known(_))),
            "{} has a result of type {ty}",
            node_name(operation)
        );
    }
}

/// Returns true if folding could replace an operation: all its operands are constant, and the results can be computed.
fn folds(operation: Operation<'_>, op: &str) -> bool {
    let Some(op) = Op::from_name(op).filter(|op| op.is_inferred()) else { return false };
    let values: Vec<Option<Value>> = operation.operands().into_iter().map(inference_value).collect();
    if !values.iter().flatten().all(|value| value.tensor().is_some()) {
        return false;
    }
    let inputs: Vec<_> = values.iter().map(Option::as_ref).collect();
    let attributes = attributes_of(operation);
    let node = Node { op, inputs: &inputs, attributes: &attributes, outputs: present_results(operation) };
    let types = infer::infer(&node).expect("the operation is verified");
    fold::fold(&node, &types).iter().any(|content| matches!(content, Some(KnownElements::Constant(_))))
}

fn node_name(operation: Operation<'_>) -> String {
    let name = divi_test::attribute(operation, "onnx_node_name");
    name.map_or_else(|| "?".into(), |name| name.to_string())
}

#[test]
fn every_model_is_tested() {
    let folder = std::fs::read_dir(divi_test::models()).unwrap();
    let mut files: Vec<_> = folder
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "onnx"))
        .map(|path| path.file_stem().unwrap().to_str().unwrap().to_owned())
        .collect();
    files.sort();
    assert_eq!(files, NAMES);
}

/// Tests that the dynamic model with a batch size is as static as the others.
#[test]
fn a_batch_makes_everything_static() {
    let context = divi_test::context();
    let options = Options { batch: Some(8), ..Options::default() };
    let (module, warnings) = divi_test::import_file(&context, &path(DYNAMIC), options).unwrap();
    assert!(warnings.is_empty(), "{warnings:?}");
    divi_test::verify(&context, &module).unwrap();
    check_operations(&module, Batch::Fixed);
    let results: Vec<_> = divi_test::result_types(&module).into_iter().map(|ty| ty.to_string()).collect();
    assert_eq!(results, ["tensor<8x1000xf32>"]);
}

/// Tests that a dynamic dimension is named at inputs and outputs, so that later passes can fix it.
#[test]
fn an_open_batch_keeps_its_name() {
    let printed = text(DYNAMIC, Options::default());
    let signature = printed.lines().find(|line| line.contains("func.func @main")).unwrap();
    assert_eq!(signature.matches("onnx.dim_params").count(), 2, "{signature}");
}

/// Environment variable of the process that [`a_large_model_takes_little_memory`] starts.
const MEASURED: &str = "DIVI_TEST_MEASURED_MODEL";

/// Weights are not read, so that the largest model takes about as much memory as its graph. The import runs in a separate
/// process, this executable with only this test, so that other tests do not count.
#[test]
fn a_large_model_takes_little_memory() {
    const LIMIT_BYTES: u64 = 300 << 20;
    if let Ok(name) = std::env::var(MEASURED) {
        let printed = text(&name, Options::default());
        println!("\npeak {} for {} bytes of text", divi_test::memory::peak_resident_bytes(), printed.len());
        return;
    }
    let executable = std::env::current_exe().unwrap();
    let output = Command::new(executable)
        .args(["--exact", "a_large_model_takes_little_memory", "--nocapture", "--test-threads=1"])
        .env(MEASURED, "openllama_3b_1x128")
        .output()
        .unwrap();
    let stdout = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{stdout}{}", String::from_utf8_lossy(&output.stderr));
    let line = stdout.lines().find_map(|line| line.strip_prefix("peak ")).expect("the process prints its peak");
    let peak: u64 = line.split_whitespace().next().unwrap().parse().unwrap();
    println!("openllama_3b_1x128: {} MiB resident at the peak", peak >> 20);
    assert!(peak < LIMIT_BYTES, "{} MiB resident at the peak", peak >> 20);
}
