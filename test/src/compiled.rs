//! From a model to a bundle and its outputs, by the passes that the driver runs.

use bytes::Bytes;
use divi_codegen::Target;
use divi_onnx::{DType, Tensor};
use divi_passes::{
    bundle::{self, emit_bundle},
    canonicalize::canonicalize,
    cost::annotate_cost,
    fuse::{self, fuse},
    outline::outline,
    partition::{self, partition},
    restrict::{Output, exclude_unsupported},
    verify_plan::verify_plan,
};
use divi_runtime::{Runtime, TensorData, TensorRef};
use melior::{Context, ir::Module};
use std::path::{Path, PathBuf};

/// What a model is compiled for.
#[derive(Clone)]
pub struct Settings {
    /// A preset, or a file.
    pub system: String,
    pub plan: partition::Options,
    /// What weights are made from that are not there.
    pub seed: Option<u64>,
    /// The folder that paths of weights are relative to.
    pub ir_folder: PathBuf,
    pub target: Target,
    pub fuse: fuse::Options,
}

impl Settings {
    /// Everything on one device.
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

    /// The same with weights made from a seed where they are missing.
    pub fn with_seed(self, seed: Option<u64>) -> Self {
        Self { seed, ..self }
    }

    /// The same for a model whose weights are beside it.
    pub fn for_model(&self, model: &Path) -> Self {
        Self { ir_folder: model.parent().unwrap_or(Path::new("")).to_owned(), seed: None, ..self.clone() }
    }
}

/// Begin of errors about plans that cannot be compiled, which is a bug: devices that cannot run a task are excluded before planning.
pub const PLANNED_ONLY: &str = "planned, but not compiled";

/// Plans a module and compiles it into a folder. The error has the messages about it.
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
        annotate_cost(raw, &settings.system)?;
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

/// Runs a bundle on tensors in the order of its inputs.
pub fn run(runtime: &Runtime, inputs: &[Tensor]) -> Result<Vec<Tensor>, String> {
    let dtype = |tensor: &Tensor| divi_runtime::DType::from_name(tensor.dtype().name());
    let tensors: Option<Vec<_>> = inputs.iter().map(|input| copied(dtype(input)?, input)).collect();
    let tensors = tensors.ok_or("an input has a type that no bundle has")?;
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
        .expect("a tensor has as many bytes as its type takes")
}
