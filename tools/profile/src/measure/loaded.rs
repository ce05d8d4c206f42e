//! Bundle of a model for one device, loaded to be measured.

use super::{
    kind::Kind,
    model::{self, Compilation, Compiled},
    scratch::Scratch,
    tasks::{Task, tasks},
};
use divi_cost::profile::Profile;
use divi_runtime::{Options, Runtime};
use std::path::Path;

/// Model to compile at a batch size.
pub(crate) struct Model<'a> {
    pub(crate) path: &'a Path,
    /// Batch size; `None` for the model's own.
    pub(crate) batch: Option<u32>,
    pub(crate) compilation: &'a Compilation,
}

/// Result of loading a model.
pub(crate) enum Load {
    /// Nothing: the profile already has all tasks; their number.
    Known(u64),
    Loaded(Loaded),
}

/// The bundle and its tasks.
pub(crate) struct Loaded {
    pub(crate) runtime: Runtime,
    pub(crate) tasks: Vec<Task>,
    /// Batch size of the model.
    pub(crate) batch: u64,
}

impl Model<'_> {
    /// Compiles the model for one device of a kind and loads its bundle, unless a profile has the times of all tasks.
    pub(crate) fn load(&self, kind: &Kind, profile: &Profile, options: Options) -> Result<Load, String> {
        let scratch = Scratch::new()?;
        scratch.write("profile.json", &profile.to_json())?;
        let described = format!("{}profile = \"profile.json\"\n", kind.processor.described(kind.memory));
        let system = scratch.write("system.toml", &described)?;
        let folder = scratch.join("bundle");
        let batch = match model::compile(self.path, self.batch, &system, &folder, self.compilation)? {
            Compiled::Known(tasks) => return Ok(Load::Known(tasks)),
            Compiled::Bundle { batch } => batch,
        };
        let failed = |error: divi_runtime::Error| format!("{}: {error}", self.path.display());
        let runtime = Runtime::load(folder, options).map_err(failed)?;
        // Mapped files stay valid, and an interrupt leaves nothing behind.
        drop(scratch);
        let tasks = tasks(runtime.bundle(), batch)?;
        Ok(Load::Loaded(Loaded { runtime, tasks, batch }))
    }
}
