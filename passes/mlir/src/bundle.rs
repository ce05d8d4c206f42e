//! Lowers an outlined plan to a bundle: the entry function becomes a list of steps, and each stage a graph that code is
//! generated for.

mod constants;
mod graph;
mod losses;
mod pass;
mod steps;
mod support;

pub(crate) use constants::Constants;
pub(crate) use graph::{Refusal, check_signature};
pub use pass::emit_bundle;
pub(crate) use steps::described as described_device;
pub(crate) use support::{Gap, constant_gaps, gaps, report};

use crate::{
    export::Recipes,
    ir::{Failure, error, warning},
    paths::relative,
    weights::check_outputs,
};
use divi_codegen::Target;
use divi_dialect::Operation;
use divi_files::Draft;
use divi_runtime::{bundle::check_replaceable, weights};
use std::{
    io,
    path::{Path, PathBuf},
};

/// Target of code generation and source of weights.
#[derive(Clone, Debug)]
pub struct Options {
    /// Name of the model.
    pub model: String,
    /// CPU that code is generated for.
    pub target: Target,
    /// Folder of the IR; paths of weights are relative to it.
    pub ir_folder: PathBuf,
    /// Seed of random weights that replace missing files.
    pub random_seed: Option<u64>,
}

/// Writes a bundle. An existing folder is replaced if it is empty or holds only files that its bundle lists.
pub fn write_bundle(module: Operation<'_>, folder: &Path, options: &Options) -> Result<(), Failure> {
    let fail = |message: &str| {
        error(module, message);
        Failure
    };
    let cannot = |problem: io::Error| fail(&format!("cannot write '{}': {problem}", folder.display()));
    check_outputs(module, &options.ir_folder, &[], Some(folder))?;
    // Errors of the folder are reported before those of the plan.
    let draft = Draft::folder(folder, check_replaceable).map_err(cannot)?;
    support::check_stages(module)?;
    let recipes = options.random_seed.map(|_| Recipes::of(module));
    let constants = Constants::new(&options.ir_folder, recipes.as_ref().zip(options.random_seed));
    let program = steps::program(module, &options.model, &constants)?;
    let losses = losses::programs(module, &options.model, &constants)?;
    let refer = |path: &str| {
        // Files outside the model's folder are copied: a bundle refers to files of its own model only.
        if path != "." && weights::confine(&options.ir_folder, path).is_err() {
            return None;
        }
        // The draft is a sibling of the folder that it replaces: relative paths from both are the same.
        let path = relative(&options.ir_folder.join(path), draft.path());
        path.to_str().map(str::to_owned)
    };
    let settings = divi_codegen::Options {
        target: options.target.clone(),
        weights_folder: &options.ir_folder,
        refer: &refer,
        model_folder: refer(".").unwrap_or_default(),
    };
    let warnings =
        divi_codegen::write(program, losses, draft.path(), &settings).map_err(|problem| fail(&problem.to_string()))?;
    warnings.iter().for_each(|message| warning(module, message));
    draft.commit().map_err(cannot)
}
