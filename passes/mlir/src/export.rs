//! Exports MLIR to ONNX: a function of `onnx` operators becomes an equivalent model; a plan becomes one model for each
//! stage and a file that describes their execution.
//!
//! Models use the oldest opset that has all of their operators. Large constants are written once each to a file beside
//! the models; constants whose bytes are missing can be generated from a seed.

mod attributes;
mod constants;
mod graph;
mod names;
mod pass;
pub mod proto;
mod random;
mod sink;
mod stages;
mod structure;
mod types;

pub(crate) use graph::check_operator;
pub use pass::emit_onnx;
pub(crate) use pass::seed as random_seed;
pub use random::Recipes;

use crate::{
    import::proto::ModelProto,
    ir::{Failure, error},
    tasks,
    weights::check_outputs,
};
use constants::Constants;
use divi_dialect::Operation;
use divi_files::Draft;
use graph::Signature;
use prost::Message;
use sink::Sink;
use std::{
    fs, io,
    path::{Path, PathBuf},
};

/// Source and destination of weights.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Folder of the IR; paths of weights are relative to it.
    pub ir_folder: PathBuf,
    /// Seed of random weights that replace missing files.
    pub random_seed: Option<u64>,
    /// Folder that the models will be read from. Weights in or below it are referred to, present or not, instead of
    /// being copied. `None` copies all.
    pub referenced: Option<PathBuf>,
}

/// Counts of the models and weights that were written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Number of models.
    pub models: usize,
    /// Number of nodes of all models.
    pub nodes: usize,
    /// Size of the weights file.
    pub weight_bytes: u64,
    /// Number of constants generated from the seed.
    pub random_weights: usize,
}

impl Counts {
    fn add(&mut self, model: &ModelProto) {
        self.models += 1;
        self.nodes += model.graph.as_ref().map_or(0, |graph| graph.node.len());
    }
}

/// Converts a module's entry function to a model that contains all of its weights.
pub fn to_model(module: Operation<'_>, options: &Options) -> Result<ModelProto, Failure> {
    let recipes = recipes(module, options);
    let mut constants = constants(options, recipes.as_ref(), Sink::memory());
    Ok(graph::export(tasks::entry(module)?, &Signature::default(), &mut constants)?.model)
}

/// Writes a module's entry function as a model. Large weights are written to a file of the same name with `.data`
/// appended.
pub fn write_model(module: Operation<'_>, file: &Path, options: &Options) -> Result<Counts, Failure> {
    let cannot = |problem: &io::Error| cannot_write(module, file, problem);
    let recipes = recipes(module, options);
    let mut weights_name = file.file_name().unwrap_or_default().to_owned();
    weights_name.push(".data");
    let weights = file.with_file_name(&weights_name);
    let Some(location) = weights_name.to_str() else {
        return Err(cannot(&io::Error::new(io::ErrorKind::InvalidInput, "the name is not UTF-8")));
    };
    check_outputs(module, &options.ir_folder, &[file, &weights], None)?;
    if weights.exists() && !file.exists() {
        let reason = format!("'{}' already exists, but belongs to no model of this name; move it", weights.display());
        return Err(cannot(&io::Error::other(reason)));
    }
    let model_draft = Draft::file(file).map_err(|problem| cannot(&problem))?;
    let weights_draft = Draft::file(&weights).map_err(|problem| cannot(&problem))?;
    let sink = Sink::file(weights_draft.path().to_owned(), location);
    let mut constants = constants(options, recipes.as_ref(), sink);
    let exported = graph::export(tasks::entry(module)?, &Signature::default(), &mut constants)?;
    let mut counts = Counts { random_weights: constants.made_up.len(), ..Counts::default() };
    counts.add(&exported.model);
    let write = || {
        fs::write(model_draft.path(), exported.model.encode_to_vec())?;
        counts.weight_bytes = constants.finish()?;
        if counts.weight_bytes > 0 {
            weights_draft.commit()?;
        }
        model_draft.commit()?;
        Ok(counts)
    };
    write().map_err(|problem: io::Error| cannot(&problem))
}

/// Writes a plan as a folder: one model in `stages/` for each function that the entry function launches, their weights
/// in `stages/weights.bin`, and `stages.json`, which describes the order of the stages and their devices. `beside` are
/// further files for the folder.
///
/// An existing folder is replaced if it is empty or has only files that this function wrote.
pub fn write_stages(
    module: Operation<'_>,
    folder: &Path,
    options: &Options,
    beside: &[(&str, &[u8])],
) -> Result<Counts, Failure> {
    let cannot = |problem: io::Error| cannot_write(module, folder, &problem);
    check_outputs(module, &options.ir_folder, &[], Some(folder))?;
    let draft = Draft::folder(folder, stages::check_replaceable).map_err(cannot)?;
    let models = draft.path().join(stages::MODELS);
    fs::create_dir(&models).map_err(cannot)?;
    let recipes = recipes(module, options);
    let sink = Sink::file(models.join(stages::WEIGHTS), stages::WEIGHTS);
    let mut constants = constants(options, recipes.as_ref(), sink);
    let mut counts = Counts::default();
    let plan = stages::Stages::of(module, &mut constants)?;
    for (file, model) in plan.models() {
        counts.add(model);
        fs::write(models.join(file), model.encode_to_vec()).map_err(cannot)?;
    }
    fs::write(draft.path().join(stages::DESCRIPTION), plan.json()).map_err(cannot)?;
    for (name, bytes) in beside {
        fs::write(draft.path().join(name), bytes).map_err(cannot)?;
    }
    counts.random_weights = constants.made_up.len();
    counts.weight_bytes = constants.finish().map_err(cannot)?;
    draft.commit().map_err(cannot)?;
    Ok(counts)
}

fn recipes(module: Operation<'_>, options: &Options) -> Option<Recipes> {
    options.random_seed.map(|_| Recipes::of(module))
}

fn constants<'a>(options: &'a Options, recipes: Option<&'a Recipes>, sink: Sink<'a>) -> Constants<'a> {
    Constants::new(&options.ir_folder, recipes.zip(options.random_seed), sink.referring_to(options.referenced.clone()))
}

fn cannot_write(module: Operation<'_>, path: &Path, problem: &io::Error) -> Failure {
    error(module, &format!("cannot write '{}': {problem}", path.display()));
    Failure
}
