//! Compilation of a program as it is into a bundle.

use crate::{
    boundary::{Borders, describe, outputs_for_gpus},
    cpu::CpuHooks,
    cuda::{self, CudaHooks},
    error::Error,
    graph,
    kernels::Kernels,
    lowering::Hooks,
    machine_code,
    pool::Pool,
    program::{Options, Program, StageProgram, tensor},
    slow::SlowOperators,
    stage::{self, Boundary, LoweredStage, Sets},
    target::Gpu,
};
use divi_runtime::bundle::{Bundle, Call, Device, FORMAT, File, GpuCode, Stage, Target as BundleTarget, WEIGHTS};
use std::{cmp::Reverse, collections::BTreeSet, fs, path::Path};

/// Compiles a program as it is.
pub(crate) fn compile(mut program: Program, folder: &Path, options: &Options<'_>) -> Result<SlowOperators, Error> {
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
    let (constants, has_weights) = pool
        .write(folder, options.weights_folder, options.refer)
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
        let simt = is_gpu(device).then_some(&mut *gpu_kernels);
        let hooks: &dyn Hooks = if is_gpu(device) { &CudaHooks } else { &CpuHooks };
        let layouts = borders.ends(number);
        let boundary = Boundary { layouts: &layouts, is_streamed: &for_gpus[number] };
        let sets = Sets { host: kernels, simt, pool };
        let LoweredStage { calls, layouts, slow } = stage::lower(graph, boundary, hooks, sets)?;
        slow_operators.add_stage(&slow, &tasks.iter().map(|task| task.predicted_us).collect::<Vec<_>>());
        borders.settle(number, &layouts);
        inputs.iter_mut().zip(layouts.inputs).for_each(|(tensor, form)| describe(form, tensor));
        outputs.iter_mut().zip(layouts.outputs).for_each(|(tensor, form)| describe(form, tensor));
        let (arena, calls) = (calls.arena, calls.calls);
        lowered.push((number, Stage { name, device, arena, inputs, outputs, tasks, calls }));
    }
    for (index, value) in program.values.iter_mut().enumerate() {
        describe(borders.form(index), &mut value.tensor);
    }
    lowered.sort_by_key(|(number, _)| *number);
    Ok((lowered.into_iter().map(|(_, stage)| stage).collect(), slow_operators))
}

/// The GPUs of a plan, each once.
fn gpus(devices: &[Device]) -> Result<Vec<Gpu>, Error> {
    let mut gpus: Vec<Gpu> = vec![];
    for device in devices.iter().filter(|device| device.kind == "cuda") {
        let gpu = cuda::gpu(device)?;
        if !gpus.contains(&gpu) {
            gpus.push(gpu);
        }
    }
    Ok(gpus)
}

fn ptx_name(gpu: &Gpu) -> String {
    format!("{}.ptx", gpu.arch)
}
