//! Plans exported as ONNX models give the outputs of the original model under ONNX Runtime; explicit plans run as bundles.

use divi_codegen::Target;
use divi_dialect::Operation;
use divi_passes::{
    bundle::{self, emit_bundle},
    canonicalize::canonicalize,
    cost::annotate_cost,
    export::{self, Counts, Recipes, write_model, write_stages},
    fuse::{self, fuse},
    import::{Options, Source, import},
    outline::outline,
    partition::{self, partition},
};
use divi_planner::{Objective, plan::Limit};
use divi_runtime::{Runtime, TensorData};
use divi_test::{attribute, model, operation_name, walk};
use melior::{Context, ir::Module};
use std::{
    fs::{self, File},
    os::unix::fs::FileExt,
    path::{Path, PathBuf},
    process::Command,
};

const SEED: u64 = 11;

/// Maximum rounding error, relative to the largest output.
const TOLERANCE: f64 = 1e-4;

fn folder(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("stages").join(name);
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).expect("the target folder is writable");
    folder
}

fn python(script: &str, arguments: &[&Path]) -> String {
    let script = divi_test::repository().join("test").join(script);
    let output =
        Command::new(divi_test::python()).arg(&script).args(arguments).output().expect("tools/setup installs Python");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("names are ASCII")
}

/// Returns the largest difference relative to the largest output, and the largest output.
fn compare(original: &Path, other: &Path) -> (f64, f64) {
    let text = python("tests/stages/compare.py", &[original, other]);
    let (difference, largest) = text.trim().split_once(' ').expect("the script prints two numbers");
    let number = |text: &str| text.parse().unwrap_or_else(|_| panic!("'{text}' is not a number"));
    (number(difference), number(largest))
}

fn export_options(seed: Option<u64>) -> export::Options {
    export::Options { ir_folder: divi_test::models(), random_seed: seed, referenced: None }
}

fn imported<'c>(context: &'c Context, name: &str) -> Module<'c> {
    let source = Source::open(&divi_test::models().join(name)).expect("the model is readable");
    let options = Options { ir_folder: divi_test::models(), ..Options::default() };
    import(context, &source, &options).expect("the model is valid").0
}

/// Writes a model and the file with its random weights, at the offsets that the model refers to.
fn write_original(module: &Module<'_>, name: &str, folder: &Path) {
    fs::copy(divi_test::models().join(name), folder.join(name)).expect("the folder is writable");
    let recipes = Recipes::of(Operation::from(module));
    let file = File::create(folder.join("weights.bin")).expect("the folder is writable");
    walk(module, &mut |operation| {
        let value = attribute(operation, "value").filter(|_| operation_name(operation) == "onnx.Constant");
        let external = value.and_then(|value| {
            let external = divi_dialect::ExternalAttribute::from_attribute(value)?;
            Some((external, divi_dialect::tensor_type_of(divi_dialect::attr::type_of(value))?))
        });
        let Some((external, ty)) = external.filter(|(external, _)| external.path() == "weights.bin") else { return };
        let mut bytes = vec![0; external.length() as usize];
        let recipe = recipes.find(external, ty.dtype).unwrap_or_else(|message| panic!("{message}"));
        recipe.fill(SEED, 0, &mut bytes);
        file.write_all_at(&bytes, external.offset()).expect("the folder is writable");
    });
}

/// Tests that plans of models for each objective give the outputs of the originals with the same weights.
#[test]
fn plans_of_models_run_stage_by_stage() {
    let pipeline = |name| (name, Objective::Pipeline, 1, 2);
    let plans = [
        ("googlenet.onnx", Objective::Latency, 1, 3),
        ("resnet50.onnx", Objective::Batch, 5, 2),
        pipeline("bert_base_128.onnx"),
    ];
    for (name, objective, inputs, least_models) in plans {
        let context = divi_test::context();
        let module = imported(&context, name);
        let folder = folder(&format!("planned-{name}"));
        write_original(&module, name, &folder);
        let stages = folder.join("stages");
        let raw = Operation::from(&module);
        let (outcome, messages) = divi_test::with_diagnostics(&context, || {
            canonicalize(raw);
            fuse(raw, &fuse::Options::default());
            annotate_cost(raw, "cpu-2", None)?;
            let planner = divi_planner::Options {
                inputs: Some(inputs),
                limit: Some(Limit::Iterations(50)),
                ..Default::default()
            };
            let options = partition::Options { objective: Some(objective), planner, ..Default::default() };
            partition(raw, &options, None)?;
            outline(raw, 1, None)?;
            write_stages(raw, &stages, &export_options(Some(SEED)), &[])
        });
        let counts = outcome.unwrap_or_else(|_| panic!("{name}: {messages}"));
        assert!(counts.models >= least_models, "{name}: {counts:?}");
        let (difference, _) = compare(&folder.join(name), &stages);
        assert!(difference <= TOLERANCE, "{name}: outputs differ by {difference:e} of the largest");
        fs::remove_dir_all(folder).unwrap();
    }
}

/// Tests that exported models with random weights give the outputs of the originals with the same weights.
#[test]
fn models_run_with_random_weights() {
    for name in ["googlenet.onnx", "resnet50.onnx", "bert_base_128.onnx"] {
        let context = divi_test::context();
        let module = imported(&context, name);
        let folder = folder(name);
        write_original(&module, name, &folder);
        let written = folder.join("written.onnx");
        let counts = write_model(Operation::from(&module), &written, &export_options(Some(SEED))).unwrap();
        assert!(counts.random_weights > 50 && counts.weight_bytes > 20 << 20, "{name}: {counts:?}");
        let (difference, largest) = compare(&folder.join(name), &written);
        assert!(difference <= TOLERANCE, "{name}: outputs differ by {difference:e} of the largest");
        // Activations neither explode nor vanish.
        assert!((1e-2..1e3).contains(&largest), "{name} has outputs up to {largest:e}");
        fs::remove_dir_all(folder).unwrap();
    }
}

/// Tests that a model with missing weights is rejected, and that nothing is written.
#[test]
fn missing_weights_are_an_error() {
    let context = divi_test::context();
    let module = imported(&context, "resnet18.onnx");
    let folder = folder("missing");
    let raw = Operation::from(&module);
    let (outcome, messages) =
        divi_test::with_diagnostics(&context, || write_model(raw, &folder.join("written.onnx"), &export_options(None)));
    assert!(outcome.is_err());
    assert!(messages.contains("'onnx.Constant' op 'conv1.weight' refers to '"), "{messages}");
    assert!(messages.contains("which does not exist") && messages.contains("--weights=random:SEED"), "{messages}");
    assert_eq!(fs::read_dir(&folder).unwrap().count(), 0);
}

/// Two stages in sequence, and two in parallel that share a weight, on two devices.
const DIAMOND: &str = include_str!("stages/diamond.mlir");

/// The same model without a plan.
const DIAMOND_MODEL: &str = include_str!("stages/diamond-model.mlir");

/// Four queued inputs in two batches: the first and the last, and those in between; in the result, the batch is merged into
/// another dimension.
const QUEUE: &str = include_str!("stages/queue.mlir");

const QUEUE_MODEL: &str = include_str!("stages/queue-model.mlir");

fn write_text(
    context: &Context,
    text: &str,
    write: impl FnOnce(Operation<'_>) -> Result<Counts, divi_passes::Failure>,
) -> Counts {
    let module = divi_test::parse(context, text.as_bytes()).unwrap_or_else(|messages| panic!("{messages}"));
    divi_test::verify(context, &module).unwrap_or_else(|messages| panic!("{messages}"));
    let (counts, messages) = divi_test::with_diagnostics(context, || write(Operation::from(&module)));
    counts.unwrap_or_else(|_| panic!("{messages}"))
}

#[test]
fn plans_run_stage_by_stage() {
    let context = divi_test::context();
    let options = export_options(Some(SEED));
    for (name, plan, whole, models) in [("diamond", DIAMOND, DIAMOND_MODEL, 4), ("queue", QUEUE, QUEUE_MODEL, 4)] {
        let folder = folder(name);
        let original = folder.join("original.onnx");
        write_text(&context, whole, |module| write_model(module, &original, &options));
        let stages = folder.join("stages");
        let counts =
            write_text(&context, plan, |module| write_stages(module, &stages, &options, &[("plan.json", b"{}")]));
        assert_eq!(counts.models, models);
        let (difference, _) = compare(&original, &stages);
        assert!(difference <= TOLERANCE, "{name}: outputs differ by {difference:e} of the largest");
        // A weight that two stages read is stored once.
        let expected = if name == "diamond" { 16384 } else { 0 };
        assert_eq!((counts.weight_bytes, counts.random_weights), (expected, usize::from(expected > 0)));
        // Output is deterministic, and an earlier output folder is replaced.
        let before = contents(&stages);
        write_text(&context, plan, |module| write_stages(module, &stages, &options, &[("plan.json", b"{}")]));
        assert!(before == contents(&stages) && before.len() >= models + 2);
        assert_eq!(fs::read_dir(&folder).unwrap().count(), if expected > 0 { 3 } else { 2 });
    }
}

/// Slices and gathers on an axis behind others move one part per row, not the tensor as a whole.
#[test]
fn queued_plans_run_as_bundles() {
    let context = divi_test::context();
    let bundle = folder("queue-bundle").join("bundle");
    let module = divi_test::parse(&context, QUEUE.as_bytes()).unwrap_or_else(|messages| panic!("{messages}"));
    let options = bundle::Options {
        model: "queue".to_owned(),
        target: Target::named("native").unwrap(),
        ir_folder: PathBuf::new(),
        random_seed: None,
    };
    let (outcome, messages) =
        divi_test::with_diagnostics(&context, || emit_bundle(Operation::from(&module), &bundle, &options));
    outcome.unwrap_or_else(|_| panic!("{messages}"));
    let runtime = Runtime::load(&bundle, divi_runtime::Options::default()).unwrap();
    let x: Vec<f32> = (0..24_u8).map(|i| f32::from(i) / 16.0).collect();
    let outputs = runtime.run(&[("x", TensorData::from_f32(&[4, 6], &x).unwrap().view())]).unwrap();
    // The model of queue-model.mlir: y is the transposed -exp(x), z its columns 2 and 0.
    let y = |row: usize, column: usize| -x[column * 6 + row].exp();
    let expected = [
        (0..24).map(|i| y(i / 4, i % 4)).collect::<Vec<_>>(),
        (0..12).map(|i| y(i / 2, [2, 0][i % 2])).collect::<Vec<_>>(),
    ];
    for ((name, output), expected) in outputs.iter().zip(&expected) {
        let output = output.to_f32().unwrap();
        let is_close = |(a, b): (&f32, &f32)| (a - b).abs() <= 1e-5 * b.abs();
        assert!(output.iter().zip(expected).all(is_close), "{name}: {output:?} instead of {expected:?}");
    }
}

/// Returns the files of a folder, recursively, with their contents.
fn contents(folder: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let entries = fs::read_dir(folder).expect("the folder is readable").flatten();
    let mut entries: Vec<_> = entries.map(|entry| entry.path()).collect();
    entries.sort();
    let read = |path: PathBuf| match path.is_dir() {
        true => contents(&path),
        false => vec![(path.clone(), fs::read(&path).expect("the file is readable"))],
    };
    entries.into_iter().flat_map(read).collect()
}

/// Tests that a constant output becomes a launch without inputs.
#[test]
fn constants_may_be_outputs() {
    let context = divi_test::context();
    let plan = r#"
    divi.device @gpu0 {kind = "cuda", memory = 1000 : i64}
    divi.device @cpu0 {kind = "cpu", memory = 1000 : i64}
    func.func private @main.cpu0.0(%x: tensor<2xf32>) -> tensor<2xf32> attributes {divi.device = @cpu0} {
      %0 = "onnx.Neg"(%x) : (tensor<2xf32>) -> tensor<2xf32>
      return %0 : tensor<2xf32>
    }
    func.func @main(%x: tensor<2xf32>) -> (tensor<2xf32>, tensor<2xf32>) {
      %c = onnx.Constant dense<[1.5, 2.5]> : tensor<2xf32> {onnx_node_name = "anchors"}
      %y = divi.launch @main.cpu0.0(%x) on @cpu0 : (tensor<2xf32>) -> tensor<2xf32>
      return %c, %y : tensor<2xf32>, tensor<2xf32>
    }"#;
    let stages = folder("constants").join("stages");
    write_text(&context, plan, |module| write_stages(module, &stages, &export_options(None), &[]));
    let text = fs::read_to_string(stages.join("stages.json")).unwrap();
    let step = r#"{"launch":"main.constants","device":"cpu0","inputs":[],"outputs":["anchors_output_0"]}"#;
    assert!(text.contains(step) && text.contains(r#""value":"anchors_output_0""#), "{text}");
    let printed = python("run_stages.py", &[&stages]);
    assert!(printed.starts_with("output_0: float32[2], [1.5 2.5]"), "{printed}");
}

#[test]
fn the_description_lists_stages_and_steps() {
    let context = divi_test::context();
    let stages = folder("description").join("stages");
    write_text(&context, DIAMOND, |module| write_stages(module, &stages, &export_options(Some(SEED)), &[]));
    let expected = r#"{
  "format": "divi-stages/1",
  "inputs": [
    {"name":"x","type":"float","shape":[2,64]}
  ],
  "outputs": [
    {"name":"y","type":"float","shape":[2,64],"value":"y"},
    {"name":"hidden","type":"float","shape":[2,64],"value":"hidden@cpu0"}
  ],
  "stages": [
    {"name":"main.gpu0.0","device":"gpu0","model":"stages/main.gpu0.0.onnx","inputs":["x"],"outputs":["hidden","output_1"]},
    {"name":"main.gpu0.1","device":"gpu0","model":"stages/main.gpu0.1.onnx","inputs":["hidden"],"outputs":["left_output_0"]},
    {"name":"main.cpu0.0","device":"cpu0","model":"stages/main.cpu0.0.onnx","inputs":["hidden"],"outputs":["right_output_0"]},
    {"name":"main.cpu0.1","device":"cpu0","model":"stages/main.cpu0.1.onnx","inputs":["left_output_0","right_output_0","output_1"],"outputs":["y"]}
  ],
  "steps": [
    {"transfer":"x","from":"cpu0","to":"gpu0","output":"x@gpu0","start":0.0},
    {"launch":"main.gpu0.0","device":"gpu0","inputs":["x@gpu0"],"outputs":["hidden","output_1"],"start":10.0},
    {"launch":"main.gpu0.1","device":"gpu0","inputs":["hidden"],"outputs":["left_output_0"],"start":13.0},
    {"transfer":"hidden","from":"gpu0","to":"cpu0","output":"hidden@cpu0","start":13.0},
    {"transfer":"output_1","from":"gpu0","to":"cpu0","output":"output_1@cpu0","start":13.0},
    {"transfer":"left_output_0","from":"gpu0","to":"cpu0","output":"left_output_0@cpu0","start":16.0},
    {"launch":"main.cpu0.0","device":"cpu0","inputs":["hidden@cpu0"],"outputs":["right_output_0"],"start":23.0},
    {"launch":"main.cpu0.1","device":"cpu0","inputs":["left_output_0@cpu0","right_output_0","output_1@cpu0"],"outputs":["y"],"start":30.0}
  ]
}
"#;
    assert_eq!(fs::read_to_string(stages.join("stages.json")).unwrap(), expected);
}

/// Tests the error messages, and that existing files are kept.
#[test]
fn errors_name_the_cause() {
    let context = divi_test::context();
    let folder = folder("errors");
    let fail = |text: &str, target: &str, options: &export::Options, expected: &str| {
        let module = divi_test::parse(&context, text.as_bytes()).unwrap();
        let raw = Operation::from(&module);
        let write = || write_stages(raw, &folder.join(target), options, &[]);
        let (outcome, messages) = divi_test::with_diagnostics(&context, write);
        assert!(outcome.is_err() && messages.contains(expected), "{messages}");
    };
    fs::create_dir(folder.join("other")).unwrap();
    fs::write(folder.join("other/thesis.txt"), "precious").unwrap();
    let random = export_options(Some(SEED));
    fail(DIAMOND, "other", &random, "'thesis.txt' is in it, which divi did not write");
    fs::create_dir_all(folder.join("half/stages")).unwrap();
    fail(DIAMOND, "half", &random, "'stages' is in it, which divi did not write");
    fail(DIAMOND, "new", &export_options(None), "'onnx.Constant' op 'w' refers to");
    fail(DIAMOND_MODEL, "new", &random, "'onnx.MatMul' op is not a step of a plan");
    let linalg = DIAMOND.replace("\"onnx.Tanh\"(%y) {onnx_node_name = \"right\"}", "\"math.tanh\"(%y)");
    context.set_allow_unregistered_dialects(true);
    fail(&linalg, "new", &random, "'math.tanh' op is not an ONNX operator");
    let indices = DIAMOND_MODEL.replace("return %5, %1", "%i = onnx.Constant #divi.external<\"ids.bin\", offset = 0, length = 800> : tensor<100xi64> {onnx_node_name = \"ids\"}\n  %6 = \"onnx.Gather\"(%x, %i) {axis = 1 : si64} : (tensor<2x64xf32>, tensor<100xi64>) -> tensor<2x100xf32>\n  return %5, %1");
    let module = divi_test::parse(&context, indices.as_bytes()).unwrap();
    let raw = Operation::from(&module);
    let (outcome, messages) =
        divi_test::with_diagnostics(&context, || write_model(raw, &folder.join("ids.onnx"), &random));
    assert!(
        outcome.is_err() && messages.contains("'onnx.Constant' op 'ids' has int64 elements in 'ids.bin'"),
        "{messages}"
    );
    let mut names: Vec<_> = fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    names.sort();
    assert_eq!(names, ["half", "other"]);
    assert_eq!(fs::read_to_string(folder.join("other/thesis.txt")).unwrap(), "precious");
}

/// Tests that existing weights are copied unchanged.
#[test]
fn weights_are_copied() {
    let context = divi_test::context();
    let folder = folder("copied");
    let bytes: Vec<u8> = (0..4096u32).flat_map(|i| (i as f32 / 4096.0).to_le_bytes()).collect();
    fs::write(folder.join("weights.bin"), &bytes).unwrap();
    let options = export::Options { ir_folder: folder.clone(), ..export::Options::default() };
    write_text(&context, DIAMOND, |module| write_stages(module, &folder.join("stages"), &options, &[]));
    assert_eq!(fs::read(folder.join("stages/stages/weights.bin")).unwrap(), bytes);
    // Or referenced.
    let referring = export::Options { referenced: Some(folder.clone()), ..options.clone() };
    let file = folder.join("referring.onnx");
    let counts = write_text(&context, DIAMOND_MODEL, |module| write_model(module, &file, &referring));
    assert_eq!((counts.weight_bytes, folder.join("referring.onnx.data").exists()), (0, false));
    let (difference, _) = compare(&file, &folder.join("stages"));
    assert!(difference <= TOLERANCE, "{difference:e}");
    let module = divi_test::parse(&context, DIAMOND_MODEL.as_bytes()).unwrap();
    let whole = export::to_model(Operation::from(&module), &options).unwrap();
    assert!(model::encode(&whole).windows(bytes.len()).any(|window| window == bytes));
}
