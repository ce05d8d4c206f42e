//! Compiles a model to a bundle with the driver's passes, and runs it.

use bytes::Bytes;
use divi_codegen::Target;
use divi_onnx::{DType, Tensor};
use divi_passes::{
    bundle::{self, emit_bundle},
    canonicalize::canonicalize,
    cost::annotate_cost,
    exclude_unsupported::{Output, exclude_unsupported},
    fuse::{self, fuse},
    outline::outline,
    partition::{self, partition},
    verify_plan::verify_plan,
};
use divi_runtime::{Runtime, TensorData, TensorRef};
use melior::{Context, ir::Module};
use std::path::{Path, PathBuf};

/// Compilation settings.
#[derive(Clone)]
pub struct Settings {
    /// A preset or a file.
    pub system: String,
    /// Planner options.
    pub plan: partition::Options,
    /// Seed of random weights in place of missing ones.
    pub seed: Option<u64>,
    /// Folder that the paths of weights are relative to.
    pub ir_folder: PathBuf,
    /// Code generation target.
    pub target: Target,
    /// Fusion options.
    pub fuse: fuse::Options,
}

impl Settings {
    /// Returns settings that place everything on one device.
    pub fn single(system: &str) -> Self {
        let plan = partition::Options { algorithm: "single".into(), ..Default::default() };
        let target = Target::named("native").unwrap_or_else(|error| panic!("{error}"));
        Self {
            system: system.to_owned(),
            plan,
            seed: None,
            ir_folder: PathBuf::new(),
            target,
            fuse: fuse::Options::default(),
        }
    }

    /// Sets the seed of random weights in place of missing ones.
    pub fn with_seed(self, seed: Option<u64>) -> Self {
        Self { seed, ..self }
    }

    /// Adapts the settings to a model whose weights are in its own folder.
    pub fn for_model(&self, model: &Path) -> Self {
        Self { ir_folder: model.parent().unwrap_or(Path::new("")).to_owned(), seed: None, ..self.clone() }
    }
}

/// Prefix of errors about plans that cannot be compiled. They are bugs: unsupported devices are excluded before planning.
pub const PLANNED_ONLY: &str = "planned, but not compiled";

/// Plans a module and compiles it into a folder. The error contains the diagnostics.
pub fn compile(context: &Context, module: &Module<'_>, folder: &Path, settings: &Settings) -> Result<(), String> {
    let raw = divi_dialect::Operation::from(module);
    let options = bundle::Options {
        model: folder.file_name().unwrap_or_default().to_string_lossy().into_owned(),
        target: settings.target.clone(),
        ir_folder: settings.ir_folder.clone(),
        random_seed: settings.seed,
    };
    let mut is_planned = false;
    let (outcome, messages) = crate::with_diagnostics(context, || {
        canonicalize(raw);
        fuse(raw, &settings.fuse);
        annotate_cost(raw, &settings.system, None)?;
        exclude_unsupported(raw, Output::Bundle, &settings.ir_folder, settings.seed)?;
        partition(raw, &settings.plan, None)?;
        verify_plan(raw)?;
        outline(raw, 1, None)?;
        verify_plan(raw)?;
        is_planned = true;
        emit_bundle(raw, folder, &options)
    });
    match outcome {
        Ok(()) => Ok(()),
        Err(_) if is_planned => Err(format!("{PLANNED_ONLY}: {messages}")),
        Err(_) => Err(messages),
    }
}

/// Runs a bundle; `inputs` are in the order of its inputs.
pub fn run(runtime: &Runtime, inputs: &[Tensor]) -> Result<Vec<Tensor>, String> {
    let dtype = |tensor: &Tensor| divi_runtime::DType::from_name(tensor.dtype().name());
    let tensors: Option<Vec<_>> = inputs.iter().map(|input| copied(dtype(input)?, input)).collect();
    let tensors = tensors.ok_or("an input has a type that bundles do not support")?;
    let names = runtime.inputs().map(|(name, _)| name);
    let named: Vec<(&str, TensorRef<'_>)> = names.zip(tensors.iter().map(TensorData::view)).collect();
    let outputs = runtime.run(&named).map_err(|error| error.to_string())?;
    Ok(outputs.into_iter().map(|(_, tensor)| returned(&tensor)).collect())
}

fn copied(dtype: divi_runtime::DType, tensor: &Tensor) -> Option<TensorData> {
    let shape: Vec<u64> = tensor.dims().iter().map(|&size| size as u64).collect();
    TensorData::new(dtype, &shape, tensor.bytes())
}

fn returned(tensor: &TensorData) -> Tensor {
    let dtype = DType::ALL.iter().find(|dtype| dtype.name() == tensor.dtype().name());
    let dims = tensor.shape().iter().map(|&size| size as i64).collect();
    dtype
        .and_then(|&dtype| Tensor::new(dtype, dims, Bytes::copy_from_slice(tensor.bytes())))
        .expect("the size of a tensor matches its type")
}
