//! Models compiled for GPUs pass NVIDIA's assembler for an older and a newer architecture. No GPU is needed.

use divi_codegen::Target;
use divi_passes::{
    import::{Options, Source, import},
    partition,
};
use divi_runtime::{
    bundle::{Bundle, Stage, Tensor},
    drivers::cuda::launch::{Launch, LibraryOp},
};
use divi_test::compiled::{Settings, compile};
use std::{
    env, fs,
    path::{Path, PathBuf},
    process::Command,
    sync::atomic::{AtomicUsize, Ordering},
    thread,
};

const MODELS: [&str; 15] = [
    "densenet121",
    "inception_v3",
    "googlenet",
    "efficientnet_b0",
    "resnet50",
    "mobilenet_v3_large",
    "mobilenet_v2",
    "convnext_tiny",
    "vit_b_16",
    "gpt2_small_1x128",
    "bert_base_128",
    "resnet18",
    "squeezenet1_1",
    "vgg16",
    "alexnet",
];
/// Without `DIVI_ALL`, one model in this many is assembled.
const SAMPLE: usize = 5;
const ARCHITECTURES: [&str; 2] = ["sm_80", "sm_90"];

#[test]
fn models_are_assembled() {
    let every = if env::var_os("DIVI_ALL").is_some() { 1 } else { SAMPLE };
    let models: Vec<&str> = MODELS.into_iter().step_by(every).collect();
    let next = AtomicUsize::new(0);
    let complaints: Vec<String> = thread::scope(|scope| {
        let work = || {
            let mut complaints = vec![];
            while let Some(model) = models.get(next.fetch_add(1, Ordering::Relaxed)) {
                complaints.extend(check(model).err().map(|problem| format!("{model}: {problem}")));
            }
            complaints
        };
        let cores = thread::available_parallelism().map_or(1, |count| count.get());
        let threads: Vec<_> = (0..cores).map(|_| scope.spawn(work)).collect();
        threads.into_iter().flat_map(|thread| thread.join().expect("failures are returned, not panics")).collect()
    });
    assert!(complaints.is_empty(), "{}", complaints.join("\n"));
}

fn check(model: &str) -> Result<(), String> {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("gpu-code").join(model);
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).map_err(|error| error.to_string())?;
    let device = |(index, arch): (usize, &str)| {
        format!("[[device]]\nid = \"gpu{index}\"\nkind = \"cuda\"\narch = \"{arch}\"\nmemory = \"80 GiB\"\n\n")
    };
    let system: String = ARCHITECTURES.into_iter().enumerate().map(device).collect();
    let plan = partition::Options { algorithm: "single".into(), ..Default::default() };
    let bundle = compiled(model, &folder, &system, plan)?;
    for arch in ARCHITECTURES {
        assemble(&folder.join("bundle").join(format!("{arch}.ptx")), arch, &folder.join("assembled"))?;
    }
    let calls = bundle.stages.iter().flat_map(|stage| &stage.calls);
    let launches = calls.map(Launch::of).collect::<Result<Vec<_>, _>>()?;
    let libraries: Vec<_> = launches.iter().filter_map(|launch| Some(&launch.library.as_ref()?.computation)).collect();
    let is_text = ["bert", "gpt2"].iter().any(|name| model.starts_with(name));
    let is_wanted = |op: &&LibraryOp| matches!(op, LibraryOp::Convolution(_)) != is_text;
    if !libraries.iter().any(is_wanted) {
        return Err("no call is a library candidate".into());
    }
    fs::remove_dir_all(folder).map_err(|error| error.to_string())
}

/// Tests GPU code for blocked layouts (NCHWc) at boundaries between CPU and GPU stages.
#[test]
fn blocked_layouts_at_device_boundaries_are_assembled() {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("gpu-code").join("borders");
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).unwrap();
    let arch = ARCHITECTURES[1];
    let system = format!(
        "[[device]]\nid = \"cpu0\"\nkind = \"cpu\"\nthreads = 2\nmemory = \"8 GiB\"\n\n\
         [[device]]\nid = \"gpu0\"\nkind = \"cuda\"\narch = \"{arch}\"\nmemory = \"80 GiB\"\n\n"
    );
    let pins = ["*/branch1/*=cpu0", "*/branch2/*=gpu0", "*/branch3/*=cpu0", "*/branch4/*=gpu0"];
    let pins = pins.map(str::to_owned).to_vec();
    let bundle = compiled("googlenet", &folder, &system, partition::Options { pins, ..Default::default() }).unwrap();
    let is_on_gpu = |stage: &&Stage| bundle.devices[stage.device].kind == "cuda";
    let is_blocked = |tensor: &Tensor| !tensor.layout.is_row_major();
    let gpu_stages: Vec<_> = bundle.stages.iter().filter(is_on_gpu).collect();
    assert!(gpu_stages.iter().flat_map(|stage| &stage.inputs).any(is_blocked));
    assert!(gpu_stages.iter().flat_map(|stage| &stage.outputs).any(is_blocked));
    assemble(&folder.join("bundle").join(format!("{arch}.ptx")), arch, &folder.join("assembled")).unwrap();
    fs::remove_dir_all(folder).unwrap();
}

/// Compiles a model for the given devices, which are fully connected.
fn compiled(model: &str, folder: &Path, devices: &str, plan: partition::Options) -> Result<Bundle, String> {
    let link = "[[link]]\nfrom = \"*\"\nto = \"*\"\nbandwidth = \"10 GB/s\"\nlatency = \"10 us\"\n";
    let system = folder.join("system.toml");
    fs::write(&system, devices.to_owned() + link).map_err(|error| error.to_string())?;
    let context = divi_test::context();
    let source = Source::open(&divi_test::models().join(format!("{model}.onnx"))).map_err(|error| error.to_string())?;
    let options = Options { ir_folder: divi_test::models(), ..Options::default() };
    let module = import(&context, &source, &options).map_err(|error| error.to_string())?.0;
    let settings = Settings {
        system: system.to_string_lossy().into_owned(),
        plan,
        seed: Some(1),
        ir_folder: divi_test::models(),
        target: Target::named("x86-64-v3").map_err(|error| error.to_string())?,
        fuse: Default::default(),
    };
    let output = folder.join("bundle");
    compile(&context, &module, &output, &settings)?;
    Bundle::read(&output).map_err(|error| error.to_string())
}

fn assemble(code: &Path, arch: &str, output: &Path) -> Result<(), String> {
    let output = Command::new(assembler())
        .arg(format!("-arch={arch}"))
        .arg(code)
        .arg("-o")
        .arg(output)
        .output()
        .map_err(|error| format!("cannot run ptxas: {error}; run tools/setup to install it"))?;
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    output.status.success().then_some(()).ok_or(format!("{arch}: {text}"))
}

/// Returns the path of `ptxas` from the Python package, or the one in `PATH`.
fn assembler() -> PathBuf {
    let libraries = divi_test::repository().join(".venv/lib");
    let versions = fs::read_dir(libraries).into_iter().flatten().flatten();
    let places = versions.map(|version| version.path().join("site-packages/nvidia/cuda_nvcc/bin/ptxas"));
    places.into_iter().find(|place| place.exists()).unwrap_or_else(|| "ptxas".into())
}
