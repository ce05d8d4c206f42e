//! Models with random weights: ONNX files for other engines, and bundles.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
    time::Instant,
};

/// Value of `--weights`.
pub(crate) const WEIGHTS: &str = "random:1";

const FOLDER: &str = "target/bench/run";

/// Target of a plan: a system, and options of `divi-opt`.
pub(crate) struct Plan {
    pub(crate) system: PathBuf,
    pub(crate) options: Vec<String>,
}

impl Plan {
    /// Everything on one CPU device with a number of threads.
    pub(crate) fn single(threads: usize) -> Result<Self, String> {
        let text = format!(
            "name = \"cpu-{threads}\"\n\n[[device]]\nid = \"cpu0\"\nkind = \"cpu\"\nmemory = \"64 GiB\"\nthreads = {threads}\n"
        );
        Ok(Self { system: write(&format!("one-{threads}.toml"), &text)?, options: vec!["--algorithm=single".into()] })
    }

    /// Everything on one GPU, for a batch of inputs.
    pub(crate) fn gpu(batch: u32) -> Result<Self, String> {
        let text =
            "name = \"gpu\"\n\n[[device]]\nid = \"gpu0\"\nkind = \"cuda\"\narch = \"sm_90\"\nmemory = \"100 GiB\"\n";
        let batch = (batch > 1).then(|| format!("--batch={batch}"));
        let options = ["--algorithm=single".to_owned(), "--cpu=x86-64-v3".to_owned()].into_iter().chain(batch);
        Ok(Self { system: write("gpu.toml", text)?, options: options.collect() })
    }

    /// Everything on one CPU device, for processors other than this machine's.
    pub(crate) fn any_cpu() -> Result<Self, String> {
        let mut plan = Self::single(8)?;
        plan.options.push("--cpu=x86-64-v3".into());
        Ok(plan)
    }
}

/// Source of the weights.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Weights {
    /// Generated when the bundle is loaded.
    Seed,
    /// Read from a file.
    File,
}

/// Compiles a bundle; returns its folder and the compile time in seconds.
pub(crate) fn bundle(model: &str, name: &str, weights: Weights, plan: &Plan) -> Result<(PathBuf, f64), String> {
    bundle_in(Path::new(FOLDER), model, name, weights, plan)
}

/// Compiles a bundle into another folder.
pub(crate) fn bundle_in(
    folder: &Path,
    model: &str,
    name: &str,
    weights: Weights,
    plan: &Plan,
) -> Result<(PathBuf, f64), String> {
    let output = folder.join(format!("{model}-{name}"));
    let source = match weights {
        Weights::Seed => original(model)?,
        Weights::File => exported(model)?,
    };
    let mut command = Command::new(program("divi-opt")?);
    command.arg(source).arg("--emit=bundle").arg("-q").arg("-o").arg(&output);
    command.arg(format!("--system={}", plan.system.display())).args(&plan.options);
    if weights == Weights::Seed {
        command.arg(format!("--weights={WEIGHTS}"));
    }
    let start = Instant::now();
    output_of(command, model)?;
    Ok((output, start.elapsed().as_secs_f64()))
}

/// Exports the model with its weights in a file next to it, unless that was done since the model changed.
pub(crate) fn exported(model: &str) -> Result<PathBuf, String> {
    let folder = Path::new(FOLDER).join("models");
    fs::create_dir_all(&folder).map_err(|error| error.to_string())?;
    let source = original(model)?;
    let output = folder.join(format!("{model}.onnx"));
    let modified = |path: &Path| fs::metadata(path).and_then(|file| file.modified()).ok();
    if modified(&output).is_some_and(|time| Some(time) > modified(&source)) {
        return Ok(output);
    }
    // Paths in the module are relative to its own file; missing weights are generated.
    let module = folder.join(format!("{model}.mlir"));
    let mut command = Command::new(program("divi-opt")?);
    command.arg(source).arg("-q").arg("-o").arg(&module);
    let (file, folder) = (output.display(), folder.display());
    command.arg(format!("--divi-emit-onnx=output={file} weights-dir={folder} weights={WEIGHTS}"));
    output_of(command, model)?;
    Ok(output)
}

pub(crate) fn original(model: &str) -> Result<PathBuf, String> {
    let path = Path::new("test/models").join(format!("{model}.onnx"));
    if path.exists() { Ok(path) } else { Err(format!("unknown model '{model}'; expected a model of test/models")) }
}

/// Writes a file into the folder of the benchmark.
pub(crate) fn write(name: &str, text: &str) -> Result<PathBuf, String> {
    let path = Path::new(FOLDER).join(name);
    fs::create_dir_all(FOLDER).and_then(|()| fs::write(&path, text)).map_err(|error| error.to_string())?;
    Ok(path)
}

/// Returns the path of a program or library that was built with this one.
pub(crate) fn program(name: &str) -> Result<PathBuf, String> {
    Ok(std::env::current_exe().map_err(|error| error.to_string())?.with_file_name(name))
}

/// Runs a command; returns its standard output.
pub(crate) fn output_of(mut command: Command, model: &str) -> Result<String, String> {
    let output = command
        .output()
        .map_err(|error| format!("cannot run {}: {error}; use tools/divi-bench", command.get_program().display()))?;
    if !output.status.success() {
        return Err(format!("{model}: {}", String::from_utf8_lossy(&output.stderr).trim()));
    }
    String::from_utf8(output.stdout).map_err(|_| format!("{model}: the output is not UTF-8"))
}
