//! GPU bundles compared with PyTorch, and with the same models on CPUs. The bundles are compiled here; without a GPU, a
//! script is written next to them for a machine that has one.

use super::{
    MODELS, Settings,
    build::{Plan, Weights, bundle_in, program},
};
use crate::python;
use std::{fs, path::Path};

const SCRIPT: &str = include_str!("gpu.py");
const FOLDER: &str = "target/bench/gpu";
const BATCHES: [u32; 2] = [1, 16];

pub(super) fn gpu(settings: &Settings) -> Result<(), String> {
    let folder = Path::new(FOLDER);
    let failed = |error: std::io::Error| format!("{FOLDER}: {error}");
    fs::create_dir_all(folder).map_err(failed)?;
    for model in settings.models_or(&MODELS) {
        let batches: &[u32] =
            if model.starts_with("bert") || model.starts_with("gpt2") { &BATCHES[..1] } else { &BATCHES };
        for &batch in batches {
            bundle_in(folder, &model, &format!("b{batch}"), Weights::Seed, &Plan::gpu(batch)?)?;
        }
        bundle_in(folder, &model, "cpu", Weights::Seed, &Plan::any_cpu()?)?;
    }
    fs::copy(program("divi-run")?, folder.join("divi-run")).map_err(failed)?;
    fs::write(folder.join("compare.py"), SCRIPT).map_err(failed)?;
    if !Path::new("/dev/nvidia0").exists() {
        println!("no GPU found; copy {FOLDER} to a machine with a GPU and PyTorch, and run compare.py there");
        return Ok(());
    }
    print!("{}", python::run_in("python3", SCRIPT, &[FOLDER])?);
    Ok(())
}
