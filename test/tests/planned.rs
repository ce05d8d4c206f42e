//! A plan for a bundle can always be compiled: devices that do not support a task are excluded before planning.
//!
//! A sample of ONNX's node cases is compiled for a GPU, and all of them with `DIVI_ALL=1`; `onnx_run` compiles and runs them
//! on CPUs. `DIVI_MODELS=GLOB` also compiles the matching models of `test/models` for a CPU and for a GPU, which takes minutes.
//! `DIVI_VERBOSE=1` prints why a case was not planned.

use divi_passes::import::Options;
use divi_test::{
    compiled::{PLANNED_ONLY, Settings, compile},
    exceptions::matches,
    import_file, models,
    node_cases::node_cases,
};
use std::{
    env, fs,
    path::{Path, PathBuf},
    sync::{
        Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    thread,
};

const GPU: &str = "[[device]]\nid = \"gpu0\"\nkind = \"cuda\"\narch = \"sm_90\"\nmemory = \"80 GiB\"\n";
const CPU: &str = "[[device]]\nid = \"cpu0\"\nkind = \"cpu\"\nthreads = 2\nmemory = \"80 GiB\"\n";

/// Without `DIVI_ALL`, one case in this many is compiled; `onnx_run` compiles more of them for CPUs.
const SAMPLE: usize = 8;

/// Numbers of models that were compiled, rejected before planning, or planned but not compiled.
#[derive(Default)]
struct Counts {
    compiled: usize,
    refused: Vec<String>,
    /// Models with a plan that cannot be compiled.
    broken: Vec<String>,
}

fn folder(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("planned").join(name);
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).expect("the folder is writable");
    folder
}

/// Compiles models in parallel.
fn check(name: &str, system: &str, models: &[PathBuf]) -> Counts {
    let folder = folder(name);
    let path = folder.join("system.toml");
    fs::write(&path, system).expect("the folder is writable");
    let settings = Settings { seed: Some(1), ..Settings::single(path.to_str().expect("the path is UTF-8")) };
    let (next, counts) = (AtomicUsize::new(0), Mutex::new(Counts::default()));
    let threads = thread::available_parallelism().map_or(1, |count| count.get());
    thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                loop {
                    let index = next.fetch_add(1, Ordering::Relaxed);
                    let Some(model) = models.get(index) else { break };
                    let output = folder.join(index.to_string());
                    let outcome = compile_model(model, &output, &settings);
                    let _ = fs::remove_dir_all(&output);
                    let mut counts = counts.lock().expect("no thread panics");
                    match outcome {
                        Ok(()) => counts.compiled += 1,
                        Err(message) => {
                            let is_broken = message.starts_with(PLANNED_ONLY);
                            let list = if is_broken { &mut counts.broken } else { &mut counts.refused };
                            list.push(format!("{}: {message}", model.display()));
                        }
                    }
                }
            });
        }
    });
    let _ = fs::remove_dir_all(folder);
    let counts = counts.into_inner().expect("no thread panics");
    println!("{name}: {} compiled, {} rejected before planning", counts.compiled, counts.refused.len());
    if env::var_os("DIVI_VERBOSE").is_some() {
        counts.refused.iter().for_each(|line| println!("{line}"));
    }
    counts
}

fn compile_model(model: &Path, output: &Path, settings: &Settings) -> Result<(), String> {
    let context = divi_test::context();
    let options = Options { batch: Some(1), ..Options::default() };
    let (module, _) = match import_file(&context, model, options) {
        Ok(imported) => imported,
        // Cases without a batch dimension.
        Err(_) => import_file(&context, model, Options::default()).map_err(|error| error.to_string())?,
    };
    compile(&context, &module, output, &settings.for_model(model).with_seed(settings.seed))
}

#[test]
fn node_cases_planned_for_gpus_are_compiled() {
    let cases = node_cases(env!("CARGO_TARGET_TMPDIR"));
    let every = if env::var_os("DIVI_ALL").is_some() { 1 } else { SAMPLE };
    let cases = cases.iter().step_by(every).map(|case| case.parameter_model().unwrap_or_else(|| case.model()));
    let counts = check("nodes", GPU, &cases.collect::<Vec<_>>());
    assert!(counts.broken.is_empty(), "{}", counts.broken.join("\n"));
    assert!(counts.compiled > 1500 / every, "{} were compiled", counts.compiled);
}

#[test]
fn planned_models_are_compiled() {
    let Ok(pattern) = env::var("DIVI_MODELS") else { return };
    let entries = fs::read_dir(models()).expect("the folder of models is readable");
    let mut all: Vec<_> = entries.filter_map(|entry| Some(entry.ok()?.path())).collect();
    all.retain(|path| path.file_stem().is_some_and(|stem| matches(&pattern, &stem.to_string_lossy())));
    all.sort();
    for (name, system) in [("models-cpu", CPU), ("models-gpu", GPU)] {
        let counts = check(name, system, &all);
        assert!(counts.broken.is_empty(), "{}", counts.broken.join("\n"));
        assert_eq!(counts.refused, Vec::<String>::new());
    }
}
