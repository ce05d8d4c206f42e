//! A plan with its stages as graphs becomes a bundle.

use crate::{
    borders::{Borders, outputs_for_gpus},
    error::Error,
    folding::{self, Folded},
    graph::{self, Graph},
    kernels::Kernels,
    lowering::{self, Lowered},
    machine_code,
    pool::Pool,
    slow::SlowOperators,
    target::{Gpu, Target},
};
use divi_runtime::bundle::{
    Bundle, Call, Device, FORMAT, File, GpuCode, Objective, Port, Stage, Step, Target as BundleTarget, Task, Tensor,
    Value, WEIGHTS,
};
use std::{cmp::Reverse, collections::BTreeSet, fs, path::Path};

/// A plan: its steps, and what each stage computes.
#[derive(Clone, Debug)]
pub struct Program {
    pub model: String,
    pub objective: Objective,
    pub devices: Vec<Device>,
    pub values: Vec<Value>,
    pub inputs: Vec<Port>,
    pub outputs: Vec<Port>,
    pub stages: Vec<StageProgram>,
    pub steps: Vec<Step>,
    /// Constants of `values`.
    pub constants: Vec<(divi_runtime::prepare::Expression, u64)>,
}

#[derive(Clone, Debug)]
pub struct StageProgram {
    pub name: String,
    /// An index of the program's devices.
    pub device: usize,
    pub graph: Graph,
    pub tasks: Vec<Task>,
}

pub struct Options<'a> {
    pub target: Target,
    /// The folder that paths of weights are relative to.
    pub weights_folder: &'a Path,
    /// How the bundle refers to a file in that folder; `None` if it is to copy what it needs.
    pub refer: &'a dyn Fn(&str) -> Option<String>,
    /// The folder of the model's files, relative to the bundle's folder; empty if the bundle refers to none.
    pub model_folder: String,
}

/// Compiles a program into an empty folder and folds constant subgraphs. Returns warnings: constants that could not be folded,
/// operators without a fast kernel.
pub fn write(mut program: Program, folder: &Path, options: &Options<'_>) -> Result<Vec<String>, Error> {
    let folded = folding::fold(&mut program, folder, options);
    let slow = compile(program, folder, options, folded.as_ref().ok().and_then(Option::as_ref))?;
    let unfolded =
        folded.err().map(|error| format!("constant subgraphs are computed at every load, not at build time: {error}"));
    Ok(unfolded.into_iter().chain(slow.is_notable().then(|| slow.to_string())).collect())
}

/// Compiles a program as it is.
pub(crate) fn compile(
    mut program: Program,
    folder: &Path,
    options: &Options<'_>,
    folded: Option<&Folded>,
) -> Result<SlowOperators, Error> {
    let target = &options.target;
    let mut kernels = Kernels::new(target);
    let mut gpu_kernels = Kernels::of_gpu();
    let mut pool = Pool::default();
    // The pool has equal constants once, so places change.
    let constants = std::mem::take(&mut program.constants).into_iter();
    let places: Vec<_> = constants.map(|(expression, bytes)| pool.constant(expression, bytes)).collect();
    for value in &mut program.values {
        value.constant = value.constant.map(|constant| places[constant]);
    }
    let (stages, slow) = lower(&mut program, &mut kernels, &mut gpu_kernels, &mut pool)?;
    let cannot = |problem| Error::Write { path: folder.to_owned(), problem };
    let code = format!("{}.so", target.cpu);
    let scratch = folder.join("objects");
    fs::create_dir_all(&scratch).map_err(cannot)?;
    let calls = || stages.iter().flat_map(|stage| &stage.calls).chain(&pool.prepare);
    let signatures = signatures(calls().filter(|call| call.launch.is_none()));
    machine_code::compile(&mut kernels, target, &signatures, &scratch, &folder.join(&code))?;
    fs::remove_dir_all(&scratch).map_err(cannot)?;
    let gpus = gpus(&program.devices)?;
    let signatures = self::signatures(calls().filter(|call| call.launch.is_some()));
    machine_code::compile_for_gpu(&mut gpu_kernels, &gpus, &signatures, |gpu| folder.join(ptx_name(gpu)))?;
    let prepare = std::mem::take(&mut pool.prepare);
    let refer = |path: &str| if folded.is_some_and(|folded| folded.has(path)) { None } else { (options.refer)(path) };
    let (constants, has_weights) = pool
        .write(folder, options.weights_folder, &refer)
        .map_err(|message| Error::Stage { name: "weights".into(), message })?;
    let mut files = vec![code.clone()];
    files.extend(gpus.iter().map(ptx_name));
    if has_weights {
        files.push(WEIGHTS.into());
    }
    let files: Result<_, _> = files.iter().map(|path| File::of(folder, path)).collect();
    let mut bundle = Bundle {
        format: FORMAT.into(),
        model: program.model,
        model_folder: options.model_folder.clone(),
        model_files: vec![],
        target: BundleTarget { cpu: target.cpu.clone(), features: target.features.clone(), code },
        gpus: gpus.iter().map(|gpu| GpuCode { arch: gpu.arch.clone(), code: ptx_name(gpu) }).collect(),
        objective: program.objective,
        devices: program.devices,
        files: files?,
        values: program.values,
        inputs: program.inputs,
        outputs: program.outputs,
        constants,
        prepare,
        stages,
        steps: program.steps,
        sha256: String::new(),
    };
    bundle.describe_contents(folder)?;
    bundle.write(folder)?;
    Ok(slow)
}

/// The signatures of calls, each once, a line each.
fn signatures<'a>(calls: impl Iterator<Item = &'a Call>) -> String {
    let lines: BTreeSet<_> = calls.flat_map(Call::signatures).collect();
    lines.into_iter().map(|line| line + "\n").collect()
}

/// Lowers the stages, and sets how the values between them lie in memory.
fn lower(
    program: &mut Program,
    kernels: &mut Kernels,
    gpu_kernels: &mut Kernels,
    pool: &mut Pool,
) -> Result<(Vec<Stage>, SlowOperators), Error> {
    let mut borders = Borders::of(program);
    let for_gpus = outputs_for_gpus(program);
    let is_gpu = |device: usize| program.devices[device].kind == "cuda";
    let mut stages: Vec<_> = std::mem::take(&mut program.stages).into_iter().enumerate().collect();
    // CPUs say how images lie in memory, those that read them before those that write them, since windows want margins; GPUs take
    // them as they are.
    stages.sort_by_key(|(number, stage)| (is_gpu(stage.device), Reverse(*number)));
    let mut lowered = vec![];
    let mut slow_operators = SlowOperators::default();
    for (number, StageProgram { name, device, graph, tasks }) in stages {
        let tensors = |ids: &[graph::Id]| -> Vec<_> { ids.iter().map(|id| tensor(&graph.values[id.0])).collect() };
        let (mut inputs, mut outputs) = (tensors(&graph.inputs), tensors(&graph.outputs));
        let gpu = is_gpu(device).then_some(&mut *gpu_kernels);
        let ends = borders.ends(number);
        let Lowered { arena, calls, ends, slow } =
            lowering::lower(&name, graph, &ends, &for_gpus[number], kernels, gpu, pool)?;
        slow_operators.add_stage(&slow, &tasks.iter().map(|task| task.predicted_us).collect::<Vec<_>>());
        borders.settle(number, &ends);
        inputs.iter_mut().zip(ends.inputs).for_each(|(tensor, form)| form.describe(tensor));
        outputs.iter_mut().zip(ends.outputs).for_each(|(tensor, form)| form.describe(tensor));
        lowered.push((number, Stage { name, device, arena, inputs, outputs, tasks, calls }));
    }
    for (index, value) in program.values.iter_mut().enumerate() {
        borders.form(index).describe(&mut value.tensor);
    }
    lowered.sort_by_key(|(number, _)| *number);
    Ok((lowered.into_iter().map(|(_, stage)| stage).collect(), slow_operators))
}

/// The GPUs of a plan, each once.
fn gpus(devices: &[Device]) -> Result<Vec<Gpu>, Error> {
    let mut gpus: Vec<Gpu> = vec![];
    for device in devices.iter().filter(|device| device.kind == "cuda") {
        let Some(arch) = &device.arch else {
            let message = format!("device '{}' does not say which GPU it is: give its arch, as sm_90", device.id);
            return Err(Error::Target(message));
        };
        let gpu = Gpu::named(arch)?;
        if !gpus.contains(&gpu) {
            gpus.push(gpu);
        }
    }
    Ok(gpus)
}

fn ptx_name(gpu: &Gpu) -> String {
    format!("{}.ptx", gpu.arch)
}

/// A value as bundles describe it.
pub fn tensor(value: &graph::Value) -> Tensor {
    Tensor {
        dtype: value.dtype.name().into(),
        shape: value.shape.iter().map(|&size| size as u64).collect(),
        bytes: value.bytes(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use divi_onnx::DType;
    use divi_runtime::{bundle::Mode, prepare::Expression};

    #[test]
    fn constants_that_are_equal_keep_their_places() {
        let bytes = [0_f32, 0.0, 5.0].map(|number| Expression::bytes(&number.to_le_bytes()));
        let value = |i: usize, dtype| Value {
            name: format!("v{i}"),
            device: 0,
            tensor: tensor(&graph::Value { dtype, shape: vec![1], constant: None }),
            constant: Some(i),
        };
        let program = Program {
            model: "constants".into(),
            objective: Objective { mode: Mode::Latency, inputs: 1, predicted_us: None, bound_us: None },
            devices: vec![Device {
                id: "cpu0".into(),
                kind: "cpu".into(),
                threads: 1,
                memory: 1 << 30,
                ..Device::default()
            }],
            values: vec![value(0, DType::I32), value(1, DType::F32), value(2, DType::F32)],
            inputs: vec![],
            outputs: (0..3).map(|i| Port { name: format!("y{i}"), value: i }).collect(),
            stages: vec![],
            steps: vec![],
            constants: bytes.map(|expression| (expression, 4)).to_vec(),
        };
        let folder = std::env::temp_dir().join(format!("divi-constants-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let options = Options {
            target: Target::named("x86-64-v3").unwrap(),
            weights_folder: Path::new(""),
            refer: &|_| None,
            model_folder: String::new(),
        };
        write(program, &folder, &options).unwrap();
        let places: Vec<_> = Bundle::read(&folder).unwrap().values.iter().map(|value| value.constant).collect();
        fs::remove_dir_all(&folder).unwrap();
        assert_eq!(places, [Some(0), Some(0), Some(1)]);
    }
}
