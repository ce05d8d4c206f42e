//! A device kind defined outside the workspace's crates: an interpreter of graphs with its own executable format. A model is
//! planned, compiled and run on `cpu` and `toy` devices through public interfaces only.

#![allow(clippy::unwrap_used, reason = "a test fails if something is missing")]

#[path = "toy_backend/backend.rs"]
mod backend;
#[path = "toy_backend/driver.rs"]
mod driver;
#[path = "toy_backend/kind.rs"]
mod kind;

use divi_codegen::backends;
use divi_cost::device;
use divi_onnx::{DType, Tensor};
use divi_passes::{fuse, partition};
use divi_runtime::{Drivers, Options, Runtime, bundle::Bundle};
use divi_test::{
    compiled::{Settings, compile, run},
    context, import_bytes,
    model::{encode, graph, initializer, model, node, value},
    verify,
};
use std::{
    fs,
    path::{Path, PathBuf},
    sync::{Arc, Once},
};

/// A CPU, and a toy that is faster at everything it supports.
const SYSTEM: &str = r#"
[[device]]
id = "cpu0"
kind = "cpu"
threads = 1
memory = "1 GiB"

[[device]]
id = "toy0"
kind = "toy"
arch = "toy1"
memory = "1 GiB"

[[link]]
from = "cpu0"
to = "toy0"
bandwidth = "100 GB/s"
latency = "1 us"
duplex = "full"
"#;

const SIZE: i64 = 64;

fn register() {
    static REGISTERED: Once = Once::new();
    REGISTERED.call_once(|| {
        device::register(Box::new(kind::Toy)).expect("the name is free");
        assert!(backends::register(Box::new(backend::ToyBackend)));
        assert!(!backends::register(Box::new(backend::ToyBackend)), "a kind has one back end");
    });
}

fn folder(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("toy-backend").join(name);
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).unwrap();
    folder
}

/// Returns the model `relu(x * w + b) * b`, with a matrix product.
fn network() -> Vec<u8> {
    let floats = |count: i64, step: f32| {
        (0..count).flat_map(|i| ((i % 7) as f32 * step - 0.5).to_le_bytes()).collect::<Vec<u8>>()
    };
    let weights = initializer("w", DType::F32, &[SIZE, SIZE], floats(SIZE * SIZE, 0.2));
    let bias = initializer("b", DType::F32, &[SIZE], floats(SIZE, 0.3));
    let nodes = vec![
        node("MatMul", &["x", "w"], &["product"]),
        node("Add", &["product", "b"], &["sum"]),
        node("Relu", &["sum"], &["relu"]),
        node("Mul", &["relu", "b"], &["y"]),
    ];
    encode(&model(graph(vec![value("x", DType::F32, &[2, SIZE])], vec![weights, bias], nodes, &["y"])))
}

fn settings(folder: &Path, system: &str, pins: &[&str]) -> Settings {
    let path = folder.join("system.toml");
    fs::write(&path, system).unwrap();
    let plan = partition::Options {
        pins: pins.iter().map(|&pin| pin.to_owned()).collect(),
        min_gain: Some(0.0),
        ..Default::default()
    };
    Settings { plan, ..Settings::single(path.to_str().unwrap()) }
}

/// Compiles the network without fusion. The error has the diagnostics.
fn compiled(folder: &Path, settings: &Settings) -> Result<PathBuf, String> {
    let context = context();
    let (module, _) = import_bytes(&context, "toy.onnx", network().into()).map_err(|error| error.to_string())?;
    let fuse = fuse::Options { level: fuse::Level::None, ..Default::default() };
    let settings = Settings { fuse, ..settings.clone() };
    compile(&context, &module, &folder.join("bundle"), &settings)?;
    Ok(folder.join("bundle"))
}

fn outputs(bundle: &Path) -> Vec<Tensor> {
    let drivers = Drivers::default().with(Arc::new(driver::ToyDriver::default()));
    let runtime = Runtime::load(bundle, Options { drivers, ..Options::default() }).unwrap();
    let numbers: Vec<f64> = (0..2 * SIZE).map(|i| (i % 11) as f64 * 0.1).collect();
    run(&runtime, &[Tensor::from_floats(DType::F32, vec![2, SIZE], &numbers).unwrap()]).unwrap()
}

#[test]
fn a_model_runs_on_a_cpu_and_a_toy() {
    register();
    let both = folder("both");
    let bundle = compiled(&both, &settings(&both, SYSTEM, &["node_relu=toy0", "node_y=toy0"])).unwrap();
    let description = Bundle::read_for(&bundle, &drivers()).unwrap();
    let formats: Vec<_> = description.executables.iter().map(|executable| executable.format.as_str()).collect();
    assert_eq!(formats, ["elf-x86-64", backend::FORMAT]);
    let kinds: Vec<_> =
        description.stages.iter().map(|stage| description.devices[stage.device].kind.as_str()).collect();
    assert!(kinds.contains(&"cpu") && kinds.contains(&"toy"), "{kinds:?}");
    let on_toy = description.stages.iter().find(|stage| description.devices[stage.device].kind == "toy").unwrap();
    assert_eq!(on_toy.constants.len(), 1);

    // The result is bitwise equal to that of the CPU alone: the interpreter rounds each operator as ONNX's does.
    let alone = folder("alone");
    let cpu = &SYSTEM[..SYSTEM.find("[[device]]\nid = \"toy0\"").unwrap()];
    let expected = outputs(&compiled(&alone, &settings(&alone, cpu, &[])).unwrap());
    assert_eq!(outputs(&bundle), expected);
}

fn drivers() -> Drivers {
    Drivers::default().with(Arc::new(driver::ToyDriver::default()))
}

#[test]
fn unsupported_tasks_are_planned_on_other_devices() {
    register();
    let free = folder("free");
    let description = Bundle::read_for(&compiled(&free, &settings(&free, SYSTEM, &[])).unwrap(), &drivers()).unwrap();
    let on_toy = description.stages.iter().filter(|stage| description.devices[stage.device].kind == "toy");
    let names: Vec<_> = on_toy.flat_map(|stage| stage.tasks.iter().map(|task| task.name.as_str())).collect();
    assert!(!names.contains(&"node_product"), "{names:?}");

    let pinned = folder("pinned");
    let error = compiled(&pinned, &settings(&pinned, SYSTEM, &["node_product=toy0"])).unwrap_err();
    assert!(error.contains("1 task cannot run on @toy0: MatMul (no code for this operator)"), "{error}");
    assert!(error.contains("'node_product' is pinned to @toy0, and excluded from it"), "{error}");

    // A device without code generation is left idle, with a reason.
    let old = folder("old");
    let system = SYSTEM.replace("toy1", "toy0");
    let description = Bundle::read_for(&compiled(&old, &settings(&old, &system, &[])).unwrap(), &drivers()).unwrap();
    assert!(description.stages.iter().all(|stage| description.devices[stage.device].kind == "cpu"));
}

#[test]
fn the_verifier_accepts_the_kind() {
    register();
    let context = context();
    let text = "module { divi.device @toy0 {kind = \"toy\", memory = 1 : i64} }";
    verify(&context, &divi_test::parse(&context, text.as_bytes()).unwrap()).unwrap();
    let error = divi_test::parse(&context, text.replace("\"toy\"", "\"other\"").as_bytes()).unwrap_err();
    assert!(error.contains("has kind \"other\": expected one of cpu, cuda, toy"), "{error}");
}
