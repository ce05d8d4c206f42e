//! Models with random weights, compiled and run, compared with ONNX Runtime with the same weights.
//!
//! A selection of models and plans is quick enough for every run; `DIVI_MODELS=GLOB` runs all matching models instead, `*`
//! every model.

use divi_codegen::Target;
use divi_dialect::Operation;
use divi_npy::npy;
use divi_passes::{
    export::{self, write_model},
    import::{Options, Source, import},
    partition,
};
use divi_planner::{Objective, plan::Limit};
use divi_runtime::{Runtime, TensorData, TensorRef};
use divi_test::{
    compiled::{Settings, compile},
    exceptions::matches,
};
use melior::{Context, ir::Module};
use std::{
    env, fs,
    path::{Path, PathBuf},
    process::Command,
    time::Instant,
};

const SEED: u64 = 11;

/// Maximum rounding error, relative to the largest output. Transformers have longer sums.
const TOLERANCE: f64 = 1e-4;
const TRANSFORMER_TOLERANCE: f64 = 1e-3;
const TRANSFORMERS: [&str; 4] = ["bert", "gpt2", "llama", "vit"];

/// Planning configuration of a model.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Plan {
    /// One device.
    Single,
    /// Latency of one input.
    Latency,
    /// Pipeline of stages.
    Pipeline,
    /// Pipeline whose stages take batches or have several devices.
    Turns,
    /// Queue of this many inputs.
    Batch(u32),
    /// Branches of GoogLeNet pinned to alternating devices, so that activations are transferred back and forth.
    Scattered,
}

/// Models and plans of every run.
const QUICK: &[(&str, &[Plan])] = &[
    ("squeezenet1_1", &[Plan::Single, Plan::Batch(3), Plan::Turns]),
    ("mobilenet_v2", &[Plan::Single]),
    ("resnet18", &[Plan::Single]),
    ("googlenet", &[Plan::Latency, Plan::Pipeline, Plan::Scattered]),
    ("bert_base_128", &[Plan::Pipeline]),
];

/// All models. The largest, openllama_3b, takes 16 GB of memory and 30 GB of disk.
const ALL: &[&str] = &[
    "alexnet",
    "bert_base_128",
    "convnext_tiny",
    "densenet121",
    "efficientnet_b0",
    "googlenet",
    "gpt2_large_1x128",
    "gpt2_small_1x128",
    "inception_v3",
    "llama_2l_1x128",
    "mobilenet_v2",
    "mobilenet_v3_large",
    "openllama_3b_1x128",
    "regnet_y_400mf",
    "resnet18",
    "resnet50",
    "resnet50_dyn_batch",
    "resnext50_32x4d",
    "squeezenet1_1",
    "vgg16",
    "vit_b_16",
];
const ALL_PLANS: &[Plan] = &[Plan::Single, Plan::Latency, Plan::Pipeline];

#[test]
fn models_agree_with_onnx_runtime() {
    let chosen: Vec<(&str, &[Plan])> = match env::var("DIVI_MODELS") {
        Ok(pattern) => ALL.iter().filter(|name| matches(&pattern, name)).map(|&name| (name, ALL_PLANS)).collect(),
        Err(_) => QUICK.to_vec(),
    };
    assert!(!chosen.is_empty(), "no model matches DIVI_MODELS");
    let mut complaints = vec![];
    for (name, plans) in chosen {
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("run-models").join(name);
        let _ = fs::remove_dir_all(&folder);
        fs::create_dir_all(&folder).expect("the target folder is writable");
        let written = write_original(name, &folder);
        for &plan in plans {
            if let Err(problem) = check(name, plan, &written, &folder) {
                println!("{name}, {plan:?}: {problem}");
                complaints.push(format!("{name}, {plan:?}: {problem}"));
            }
        }
        fs::remove_dir_all(folder).expect("the folder is writable");
    }
    assert!(complaints.is_empty(), "{} failures:\n{}", complaints.len(), complaints.join("\n"));
}

fn imported<'c>(context: &'c Context, name: &str) -> Module<'c> {
    let source = Source::open(&divi_test::models().join(format!("{name}.onnx"))).expect("the model is readable");
    // Kernels require static shapes.
    let batch = name.ends_with("dyn_batch").then_some(1);
    let options = Options { batch, ir_folder: divi_test::models(), ..Options::default() };
    import(context, &source, &options).expect("the model is valid").0
}

/// Writes the model with its random weights for ONNX Runtime.
fn write_original(name: &str, folder: &Path) -> PathBuf {
    let context = divi_test::context();
    let module = imported(&context, name);
    let file = folder.join("original.onnx");
    let options = export::Options { ir_folder: divi_test::models(), random_seed: Some(SEED), referenced: None };
    let write = || write_model(Operation::from(&module), &file, &options);
    let (outcome, messages) = divi_test::with_diagnostics(&context, write);
    outcome.unwrap_or_else(|_| panic!("{name}: {messages}"));
    file
}

/// Compiles and runs a model; returns an error if its outputs exceed the tolerance.
fn check(name: &str, plan: Plan, original: &Path, folder: &Path) -> Result<(), String> {
    let (data, bundle) = (folder.join("data"), folder.join("bundle"));
    fs::create_dir_all(&data).expect("the folder is writable");
    let context = divi_test::context();
    let module = imported(&context, name);
    let start = Instant::now();
    let system = if name.starts_with("openllama") { large(folder) } else { "cpu-2".to_owned() };
    compile(&context, &module, &bundle, &settings(plan, system)).map_err(|messages| last_line(&messages))?;
    let compiled = start.elapsed();
    // With the plan's number of threads, and with all cores.
    let threads: &[Option<usize>] = if plan == Plan::Single { &[None, Some(0)] } else { &[None] };
    let start = Instant::now();
    for &threads in threads {
        let options = divi_runtime::Options { threads, ..Default::default() };
        let runtime = Runtime::load(&bundle, options).map_err(|error| error.to_string())?;
        let inputs = runtime.bundle().objective.inputs;
        if matches!(plan, Plan::Batch(_) | Plan::Turns) != (inputs > 1) {
            return Err(format!("a request has {inputs} inputs"));
        }
        expect(original, &data, inputs as u32)?;
        let devices = runtime.bundle().stages.iter().map(|stage| stage.device).max().map_or(0, |last| last + 1);
        let error = largest_error(&runtime, &data)?;
        let run = start.elapsed();
        println!(
            "{name}, {plan:?} on {devices} devices: relative error {error:.1e}; compiled in {compiled:.1?}, run in {run:.1?}"
        );
        let is_transformer = TRANSFORMERS.iter().any(|prefix| name.contains(prefix));
        if error.is_nan() || error > if is_transformer { TRANSFORMER_TOLERANCE } else { TOLERANCE } {
            return Err(format!("outputs differ by {error:e} of the largest"));
        }
    }
    Ok(())
}

fn last_line(messages: &str) -> String {
    messages.lines().next_back().unwrap_or_default().to_owned()
}

/// Returns a system like `cpu-2` with more memory.
fn large(folder: &Path) -> String {
    let device = |id| format!("[[device]]\nid = \"{id}\"\nkind = \"cpu\"\nmemory = \"16 GiB\"\nthreads = 1\n\n");
    let link = "[[link]]\nfrom = \"*\"\nto = \"*\"\nbandwidth = \"10 GB/s\"\nlatency = \"2 us\"\n";
    let file = folder.join("system.toml");
    fs::write(&file, device("cpu0") + &device("cpu1") + link).expect("the folder is writable");
    file.to_string_lossy().into_owned()
}

fn settings(plan: Plan, system: String) -> Settings {
    let (objective, inputs) = match plan {
        Plan::Single | Plan::Latency | Plan::Scattered => (Objective::Latency, None),
        Plan::Pipeline | Plan::Turns => (Objective::Pipeline, None),
        Plan::Batch(inputs) => (Objective::Batch, Some(inputs)),
    };
    let most = (plan == Plan::Turns).then_some(2);
    let planner = divi_planner::Options {
        inputs,
        limit: Some(Limit::Iterations(50)),
        max_batch: most,
        max_replicas: most,
        ..Default::default()
    };
    let algorithm = if plan == Plan::Single { "single" } else { "auto" }.to_owned();
    let pins = match plan {
        Plan::Scattered => (1..5).map(|branch| format!("*/branch{branch}/*=cpu{}", branch % 2)).collect(),
        _ => vec![],
    };
    Settings {
        system,
        plan: partition::Options { objective: Some(objective), algorithm, planner, pins, ..Default::default() },
        seed: Some(SEED),
        ir_folder: divi_test::models(),
        target: Target::named("native").unwrap_or_else(|error| panic!("{error}")),
        fuse: Default::default(),
    }
}

/// Generates inputs and expected outputs with ONNX Runtime.
fn expect(model: &Path, data: &Path, count: u32) -> Result<(), String> {
    let script = divi_test::repository().join("test/tests/run_models/expect.py");
    let output = Command::new(divi_test::python())
        .args([&script, model, data])
        .arg(count.to_string())
        .output()
        .expect("tools/setup installs Python");
    output.status.success().then_some(()).ok_or_else(|| String::from_utf8_lossy(&output.stderr).into_owned())
}

/// Returns the largest difference of the outputs, relative to the largest output.
fn largest_error(runtime: &Runtime, data: &Path) -> Result<f64, String> {
    let inputs = runtime.inputs().map(|(name, _)| Ok((name, read(data, "in", name)?)));
    let inputs = inputs.collect::<Result<Vec<(&str, TensorData)>, String>>()?;
    let named: Vec<(&str, TensorRef<'_>)> = inputs.iter().map(|(name, tensor)| (*name, tensor.view())).collect();
    let outputs = runtime.run(&named).map_err(|error| error.to_string())?;
    let (mut difference, mut largest) = (0f64, 0f64);
    for (name, actual) in outputs {
        let expected = read(data, "out", &name)?;
        if actual.shape() != expected.shape() {
            return Err(format!("'{name}' has shape {:?}, not {:?}", actual.shape(), expected.shape()));
        }
        let numbers = actual.to_f32().zip(expected.to_f32());
        let (actual, expected) = numbers.ok_or_else(|| format!("'{name}' has elements other than f32"))?;
        for (actual, expected) in actual.into_iter().zip(expected) {
            let apart = f64::from(actual - expected).abs();
            // NaN counts as an infinite difference.
            difference = if apart.is_nan() { f64::INFINITY } else { difference.max(apart) };
            largest = largest.max(f64::from(expected).abs());
        }
    }
    Ok(difference / largest)
}

fn read(data: &Path, side: &str, name: &str) -> Result<TensorData, String> {
    let path = data.join(format!("{side}.{name}.npy"));
    let bytes = fs::read(&path).map_err(|error| format!("{}: {error}", path.display()))?;
    npy::read(&bytes)
}
