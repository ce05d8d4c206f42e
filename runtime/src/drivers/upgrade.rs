//! Conversion of descriptions of older versions.
//!
//! Version 1 lacks the extents of calls. Versions 1 and 2 have one shared object (`target`), PTX for GPUs (`gpus`), and GPU
//! grids (`launch`) instead of executables and payloads. They describe values in blocked layouts by their physical shape,
//! which is kept, because the logical shape is unknown.

use super::{cpu, cuda};
use crate::bundle::{
    Buffer, Bundle, Call, Constant, Device, Executable, FORMAT, File, Objective, Port, Stage, Step, Task, Tensor,
    Value, hash, is_one, is_zero, one,
};
use serde::{Deserialize, Serialize};
use serde_json::json;

pub(super) const FORMAT_1: &str = "divi-bundle/1";
pub(super) const FORMAT_2: &str = "divi-bundle/2";

/// Description of version 1 or 2.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct OldBundle {
    format: String,
    model: String,
    target: OldTarget,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    gpus: Vec<OldGpu>,
    objective: Objective,
    devices: Vec<Device>,
    files: Vec<File>,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    model_folder: String,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    model_files: Vec<File>,
    values: Vec<Value>,
    inputs: Vec<Port>,
    outputs: Vec<Port>,
    constants: Vec<Constant>,
    prepare: Vec<OldCall>,
    stages: Vec<OldStage>,
    steps: Vec<Step>,
    sha256: String,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct OldTarget {
    cpu: String,
    features: Vec<String>,
    code: String,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct OldGpu {
    arch: String,
    code: String,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct OldStage {
    name: String,
    device: usize,
    arena: u64,
    inputs: Vec<Tensor>,
    outputs: Vec<Tensor>,
    tasks: Vec<Task>,
    calls: Vec<OldCall>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct OldCall {
    kernel: String,
    buffers: Vec<Buffer>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    bytes: Vec<u64>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    writes: Vec<usize>,
    extent: i64,
    #[serde(default = "one", skip_serializing_if = "is_one")]
    grain: i64,
    #[serde(default, skip_serializing_if = "is_zero")]
    task: usize,
    #[serde(default, skip_serializing_if = "serde_json::Value::is_null")]
    launch: serde_json::Value,
}

/// Parses and converts a description of version 1 or 2. The flag is true if its SHA-256 matches its contents.
pub(super) fn parse(text: &[u8]) -> Result<(Bundle, bool), String> {
    let describe = |error: serde_json::Error| error.to_string();
    let mut old: OldBundle = divi_json::read(text).map_err(|error| error.to_string())?;
    let named = std::mem::take(&mut old.sha256);
    let is_intact = hash(&old).map_err(describe)? == named;
    let mut bundle = old.upgrade()?;
    bundle.sha256 = hash(&bundle).map_err(describe)?;
    Ok((bundle, is_intact))
}

impl OldBundle {
    /// Converts the description to the current version, with an empty hash.
    fn upgrade(self) -> Result<Bundle, String> {
        let lacks_extents = self.format == FORMAT_1;
        let has_model = !self.model_folder.is_empty() || !self.model_files.is_empty();
        let of_stages = self.stages.iter().flat_map(|stage| stage.inputs.iter().chain(&stage.outputs));
        let mut tensors = self.values.iter().map(|value| &value.tensor).chain(of_stages);
        if (lacks_extents && has_model) || tensors.any(|tensor| !tensor.layout.is_row_major()) {
            return Err("it has fields of a newer format than it names".into());
        }
        let OldTarget { cpu, features, code } = self.target;
        let mut executables = vec![Executable {
            format: cpu::FORMAT.into(),
            file: code,
            target: json!({ "cpu": cpu, "features": features }),
        }];
        let gpu = |gpu: OldGpu| Executable {
            format: cuda::FORMAT.into(),
            file: gpu.code,
            target: json!({ "arch": gpu.arch }),
        };
        executables.extend(self.gpus.into_iter().map(gpu));
        let stage = |stage: OldStage| -> Result<Stage, String> {
            let device = self.devices.get(stage.device).filter(|device| device.kind == cuda::KIND);
            let executable = device.map_or(Ok(0), |device| gpu_executable(&executables, device))?;
            let mut tasks = stage.tasks;
            if device.is_none() {
                // Old compilers also set the flag on CPUs, where it is meaningless.
                tasks.iter_mut().for_each(|task| task.has_host_weights = false);
            }
            Ok(Stage {
                constants: vec![],
                name: stage.name,
                device: stage.device,
                executable,
                payload: serde_json::Value::Null,
                arena: stage.arena,
                inputs: stage.inputs,
                outputs: stage.outputs,
                tasks,
                calls: stage.calls.into_iter().map(OldCall::upgrade).collect::<Result<_, _>>()?,
            })
        };
        let stages = self.stages.into_iter().map(stage).collect::<Result<_, _>>()?;
        Ok(Bundle {
            format: FORMAT.into(),
            model: self.model,
            prepare_executable: (!self.prepare.is_empty()).then_some(0),
            executables,
            objective: self.objective,
            devices: self.devices,
            files: self.files,
            model_folder: self.model_folder,
            model_files: self.model_files,
            values: self.values,
            inputs: self.inputs,
            outputs: self.outputs,
            task_results: vec![],
            constants: self.constants,
            prepare: self.prepare.into_iter().map(OldCall::upgrade).collect::<Result<_, _>>()?,
            stages,
            steps: self.steps,
            losses: vec![],
            sha256: String::new(),
            lacks_extents,
        })
    }
}

/// Returns the index of the executable for a GPU.
fn gpu_executable(executables: &[Executable], device: &Device) -> Result<usize, String> {
    let arch = device.arch.as_deref().unwrap_or_default();
    let of_gpus = executables.iter().skip(1).position(|executable| executable.target["arch"] == arch);
    of_gpus
        .map(|index| index + 1)
        .ok_or_else(|| format!("no executable for '{arch}', the architecture of device '{}'", device.id))
}

impl OldCall {
    /// Converts a call. Dependences were part of the launch, for calls on GPUs only.
    fn upgrade(mut self) -> Result<Call, String> {
        let after = self.launch.as_object_mut().and_then(|launch| launch.shift_remove("after"));
        let after = after.map_or(Ok(vec![]), serde_json::from_value);
        let after = after.map_err(|error| format!("kernel '{}': after: {error}", self.kernel))?;
        let Self { kernel, buffers, bytes, writes, extent, grain, task, launch: payload } = self;
        Ok(Call { kernel, buffers, bytes, writes, extent, grain, task, after, payload })
    }
}
