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
use divi_runtime::{
    bundle::{Bundle, Device, FORMAT, File, Stage, WEIGHTS},
    drivers::{
        cpu as cpu_driver,
        cuda::{self as cuda_driver, launch::Launch},
    },
};
use std::{cmp::Reverse, collections::BTreeSet, fs, path::Path};

/// Index of the executable for CPUs. Those for GPUs are behind it.
const CPU_EXECUTABLE: usize = 0;

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
    let gpus = gpus(&program.devices)?;
    let (stages, slow) = lower(&mut program, &gpus, &mut kernels, &mut gpu_kernels, &mut pool)?;
    let cannot = |problem| Error::Write { path: folder.to_owned(), problem };
    let code = format!("{}.so", target.cpu);
    let scratch = folder.join("objects");
    fs::create_dir_all(&scratch).map_err(cannot)?;
    let of_cpus = stages.iter().filter(|stage| stage.executable == CPU_EXECUTABLE).flat_map(|stage| &stage.calls);
    let signatures = signature_lines(of_cpus.chain(&pool.prepare).map(cpu_driver::signature));
    machine_code::compile(&mut kernels, target, &signatures, &scratch, &folder.join(&code))?;
    fs::remove_dir_all(&scratch).map_err(cannot)?;
    let of_gpus = stages.iter().filter(|stage| stage.executable != CPU_EXECUTABLE).flat_map(|stage| &stage.calls);
    let of_gpus = of_gpus.map(|call| Launch::of(call).map(|launch| launch.signatures(call)));
    let of_gpus = of_gpus.collect::<Result<Vec<_>, _>>().map_err(Error::Internal)?;
    let signatures = signature_lines(of_gpus.into_iter().flatten());
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
    let cpu_target = cpu_driver::Target { cpu: target.cpu.clone(), features: target.features.clone() };
    let of_gpus = gpus.iter().map(|gpu| cuda_driver::Target { arch: gpu.arch.clone() }.executable(ptx_name(gpu)));
    let mut bundle = Bundle {
        format: FORMAT.into(),
        model: program.model,
        model_folder: options.model_folder.clone(),
        model_files: vec![],
        executables: [cpu_target.executable(code)].into_iter().chain(of_gpus).collect(),
        objective: program.objective,
        devices: program.devices,
        files: files?,
        values: program.values,
        inputs: program.inputs,
        outputs: program.outputs,
        constants,
        prepare_executable: (!prepare.is_empty()).then_some(CPU_EXECUTABLE),
        prepare,
        stages,
        steps: program.steps,
        sha256: String::new(),
        is_unchecked: false,
    };
    bundle.describe_contents(folder)?;
    bundle.write(folder)?;
    Ok(slow)
}

/// Returns signatures sorted, each once, a line each.
fn signature_lines(signatures: impl Iterator<Item = String>) -> String {
    let lines: BTreeSet<_> = signatures.collect();
    lines.into_iter().map(|line| line + "\n").collect()
}

/// Lowers the stages, and sets how the values between them lie in memory.
fn lower(
    program: &mut Program,
    gpus: &[Gpu],
    kernels: &mut Kernels,
    gpu_kernels: &mut Kernels,
    pool: &mut Pool,
) -> Result<(Vec<Stage>, SlowOperators), Error> {
    let mut borders = Borders::of(program);
    let for_gpus = outputs_for_gpus(program);
    let is_gpu = |device: usize| program.devices[device].kind == "cuda";
    let executable = |device: usize| {
        let arch = program.devices[device].arch.as_ref();
        let gpu = gpus.iter().position(|gpu| Some(&gpu.arch) == arch).filter(|_| is_gpu(device));
        gpu.map_or(CPU_EXECUTABLE, |gpu| CPU_EXECUTABLE + 1 + gpu)
    };
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
        let (executable, payload) = (executable(device), Default::default());
        lowered.push((number, Stage { name, device, executable, payload, arena, inputs, outputs, tasks, calls }));
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
