//! From MLIR to ONNX: a function of `onnx` operators becomes a model that computes the same, a plan a model for each of its
//! stages and a file that says how they are run.
//!
//! Models are written in the oldest opset that has what they use. Large constants lie in a file beside the models, each
//! once; those whose bytes are not there may be made up from a seed.

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

/// Where weights come from and where they go.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// The folder of the IR, which paths of weights are relative to.
    pub ir_folder: PathBuf,
    /// What weights are made from whose files are not there.
    pub random_seed: Option<u64>,
    /// The folder that models are to be read from, if weights that lie in it or below it are referred to as they are,
    /// whether they are there or not, instead of being copied.
    pub referenced: Option<PathBuf>,
}

/// What was written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    pub models: usize,
    pub nodes: usize,
    /// Bytes of the file with the weights.
    pub weight_bytes: u64,
    /// Constants that were made up.
    pub random_weights: usize,
}

impl Counts {
    fn add(&mut self, model: &ModelProto) {
        self.models += 1;
        self.nodes += model.graph.as_ref().map_or(0, |graph| graph.node.len());
    }
}

/// The model that a module's entry function is, with all of its weights in it.
pub fn to_model(module: Operation<'_>, options: &Options) -> Result<ModelProto, Failure> {
    let recipes = recipes(module, options);
    let mut constants = constants(options, recipes.as_ref(), Sink::memory());
    Ok(graph::export(tasks::entry(module)?, &Signature::default(), &mut constants)?.model)
}

/// Writes the model that a module's entry function is. Large weights go to a file of that name with `.data` behind it.
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
        let reason = format!("'{}' is there, which is not of a model of this name: move it", weights.display());
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

/// Writes a plan as a folder: a model for each function that the entry function launches in `stages/`, with their weights in
/// `stages/weights.bin`, and `stages.json`, which says in which order they run and on what. `beside` are further files to
/// put into the folder.
///
/// A folder that is there already is replaced if it is empty or has only what this function wrote.
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
