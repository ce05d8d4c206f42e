//! `divi-compute`: compiles and runs many models in one process, for tests that compare with other runtimes.
//!
//! Each line of standard input has the paths of a model, of its inputs (`.npz`) and of its outputs (`.npz`), separated by
//! tabs. The response is a line: `ok`, or `refused` or `failed` with the reason. Models are compiled for one CPU device.

use divi_codegen::error::BUG;
use divi_npy::npz;
use divi_passes::import::Options;
use divi_runtime::{Runtime, TensorRef};
use divi_test::compiled::{Settings, compile};
use std::{
    fs,
    io::{self, Write},
    path::{Path, PathBuf},
};

const ONE_DEVICE: &str = "[[device]]\nid = \"cpu0\"\nkind = \"cpu\"\nmemory = \"4 GiB\"\nthreads = 1\n";

enum Failure {
    /// divi reports that it cannot compile the model.
    Refused(String),
    /// A bug of divi.
    Failed(String),
}

fn main() -> io::Result<()> {
    let mut arguments = std::env::args().skip(1);
    let folder = PathBuf::from(arguments.next().expect("the first argument is a folder for bundles"));
    fs::create_dir_all(&folder)?;
    let system = folder.join("system.toml");
    fs::write(&system, ONE_DEVICE)?;
    let settings = Settings::single(system.to_str().expect("the folder's name is UTF-8"));
    for line in io::stdin().lines() {
        let line = line?;
        let paths: Vec<&Path> = line.split('\t').map(Path::new).collect();
        let [model, inputs, outputs] = paths[..] else { continue };
        let answer = match compute(model, inputs, outputs, &folder, &settings) {
            Ok(()) => "ok".to_owned(),
            Err(Failure::Refused(reason)) => format!("refused {}", reason.replace('\n', " ")),
            Err(Failure::Failed(reason)) => format!("failed {}", reason.replace('\n', " ")),
        };
        println!("{answer}");
        io::stdout().flush()?;
    }
    Ok(())
}

fn compute(model: &Path, inputs: &Path, outputs: &Path, folder: &Path, settings: &Settings) -> Result<(), Failure> {
    // A new context for each model: contexts keep all types and attributes.
    let context = divi_test::context();
    let imported = divi_test::import_file(&context, model, Options::default());
    let (module, _) = imported.map_err(|error| Failure::Refused(error.to_string()))?;
    let bundle = folder.join("bundle");
    let _ = fs::remove_dir_all(&bundle);
    compile(&context, &module, &bundle, &settings.for_model(model)).map_err(|messages| {
        let last = messages.lines().next_back().unwrap_or_default().to_owned();
        if last.contains(BUG) { Failure::Failed(last) } else { Failure::Refused(last) }
    })?;
    let failed = |error: divi_runtime::Error| Failure::Failed(error.to_string());
    let options = divi_runtime::Options { threads: Some(1), ..Default::default() };
    let runtime = Runtime::load(&bundle, options).map_err(failed)?;
    let read = fs::read(inputs).map_err(|error| error.to_string()).and_then(|bytes| npz::read(&bytes));
    let tensors = read.map_err(Failure::Failed)?;
    let is_input = |name: &str| runtime.inputs().any(|(input, _)| input == name);
    let named: Vec<(&str, TensorRef<'_>)> = tensors
        .iter()
        .map(|(name, tensor)| (name.as_str(), tensor.view()))
        .filter(|(name, _)| is_input(name))
        .collect();
    let computed = runtime.run(&named).map_err(failed)?;
    let views: Vec<_> = computed.iter().map(|(name, tensor)| (name.as_str(), tensor.view())).collect();
    let archive = npz::write(&views).map_err(Failure::Failed)?;
    fs::write(outputs, archive).map_err(|error| Failure::Failed(error.to_string()))
}
