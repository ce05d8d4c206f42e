//! Models compiled for GPUs: the vendor's assembler takes the code, for an older and a newer architecture. No GPU is needed.

use divi_codegen::Target;
use divi_passes::{
    import::{Options, Source, import},
    partition,
};
use divi_runtime::bundle::{Bundle, Library};
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
const ARCHITECTURES: [&str; 2] = ["sm_80", "sm_90"];

#[test]
fn the_assembler_takes_all_models() {
    let next = AtomicUsize::new(0);
    let complaints: Vec<String> = thread::scope(|scope| {
        let work = || {
            let mut complaints = vec![];
            while let Some(model) = MODELS.get(next.fetch_add(1, Ordering::Relaxed)) {
                complaints.extend(check(model).err().map(|problem| format!("{model}: {problem}")));
            }
            complaints
        };
        let cores = thread::available_parallelism().map_or(1, |count| count.get());
        let threads: Vec<_> = (0..cores).map(|_| scope.spawn(work)).collect();
        threads.into_iter().flat_map(|thread| thread.join().expect("what fails is said")).collect()
    });
    assert!(complaints.is_empty(), "{}", complaints.join("\n"));
}

fn check(model: &str) -> Result<(), String> {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("gpu-code").join(model);
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).map_err(|error| error.to_string())?;
    let bundle = compiled(model, &folder)?;
    for arch in ARCHITECTURES {
        assemble(&folder.join("bundle").join(format!("{arch}.ptx")), arch, &folder.join("assembled"))?;
    }
    let calls = bundle.stages.iter().flat_map(|stage| &stage.calls);
    let ways: Vec<_> =
        calls.filter_map(|call| call.launch.as_ref()?.library.as_ref()).map(|library| &library.way).collect();
    let is_text = ["bert", "gpt2"].iter().any(|name| model.starts_with(name));
    let is_wanted = |way: &&Library| matches!(way, Library::Convolution(_)) != is_text;
    if !ways.iter().any(is_wanted) {
        return Err("no call could be a library's".into());
    }
    fs::remove_dir_all(folder).map_err(|error| error.to_string())
}

/// The model on one GPU of a system that has two of different architectures.
fn compiled(model: &str, folder: &Path) -> Result<Bundle, String> {
    let device = |(index, arch): (usize, &str)| {
        format!("[[device]]\nid = \"gpu{index}\"\nkind = \"cuda\"\narch = \"{arch}\"\nmemory = \"80 GiB\"\n\n")
    };
    let link = "[[link]]\nfrom = \"gpu*\"\nto = \"gpu*\"\nbandwidth = \"10 GB/s\"\nlatency = \"10 us\"\n";
    let text: String = ARCHITECTURES.into_iter().enumerate().map(device).collect::<String>() + link;
    let system = folder.join("system.toml");
    fs::write(&system, text).map_err(|error| error.to_string())?;
    let context = divi_test::context();
    let source = Source::open(&divi_test::models().join(format!("{model}.onnx"))).map_err(|error| error.to_string())?;
    let options = Options { ir_folder: divi_test::models(), ..Options::default() };
    let module = import(&context, &source, &options).map_err(|error| error.to_string())?.0;
    let settings = Settings {
        system: system.to_string_lossy().into_owned(),
        plan: partition::Options { algorithm: "single".into(), ..Default::default() },
        seed: Some(1),
        ir_folder: divi_test::models(),
        target: Target::named("x86-64-v3").map_err(|error| error.to_string())?,
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
        .map_err(|error| format!("the assembler cannot be run: {error}; tools/setup installs it"))?;
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    output.status.success().then_some(()).ok_or(format!("{arch}: {text}"))
}

/// `ptxas`, which a Python package has.
fn assembler() -> PathBuf {
    let libraries = divi_test::repository().join(".venv/lib");
    let versions = fs::read_dir(libraries).into_iter().flatten().flatten();
    let places = versions.map(|version| version.path().join("site-packages/nvidia/cuda_nvcc/bin/ptxas"));
    places.into_iter().find(|place| place.exists()).unwrap_or_else(|| "ptxas".into())
}
