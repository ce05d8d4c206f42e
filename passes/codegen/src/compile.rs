//! Compilation of a program into a bundle: assigns layouts, compiles stages with the back ends of their devices, writes the files.

use crate::{
    backend::{BoundaryLayouts, Code, CompiledStage, Executable, StageCompiler, StageInput, TargetBackend},
    backends,
    boundary::{LayoutAssignment, describe, streamed_outputs},
    error::Error,
    graph, half_precision,
    host::HostModule,
    machine_code,
    program::{Loss, Options, Program, StageProgram, tensor},
    slow_operators::SlowOperators,
};
use divi_cost::device::{self, MemorySpace};
use divi_runtime::{
    bundle::{self, Bundle, Call, Constant, DESCRIPTION, Device, FORMAT, File, Stage, Task, Tensor, WEIGHTS},
    drivers::cpu as cpu_driver,
};
use std::{cmp::Reverse, fs, iter, path::Path};

/// Index of the executable of the host. Executables of back ends follow it.
const HOST_EXECUTABLE: usize = 0;

/// Compiles a program, and those for the loss of a node, without folding constants. The programs share code and constants. Returns the
/// operators of the program that have no fast kernel.
pub(crate) fn compile(
    program: Program,
    losses: Vec<Loss>,
    folder: &Path,
    options: &Options<'_>,
) -> Result<SlowOperators, Error> {
    let programs = || iter::once(&program).chain(losses.iter().filter_map(|loss| loss.program.as_ref().ok()));
    let has_bf16 = programs().any(|program| program.stages.iter().any(|stage| half_precision::has_bf16(&stage.graph)));
    let mut host = HostModule::new(&options.target, has_bf16);
    let mut compilers = Compilers::default();
    let compiled = compile_program(program, &mut host, &mut compilers)?;
    let mut replacements = vec![];
    for Loss { node, program } in losses {
        let compiled = program.map(|program| compile_program(program, &mut host, &mut compilers));
        replacements.push((node, compiled.map_or_else(|reason| Ok(Err(reason)), |compiled| compiled.map(Ok))?));
    }
    let others = replacements.iter().filter_map(|(_, compiled)| compiled.as_ref().ok());
    let all: Vec<_> = iter::once(&compiled).chain(others).flat_map(|compiled| &compiled.stages).collect();
    let code = executables(&mut host, compilers, &all, folder, options)?;
    let prepare = std::mem::take(&mut host.pool.load_calls);
    let (constants, has_weights) = host
        .pool
        .write(folder, options.weights_folder, options.refer)
        .map_err(|message| Error::Stage { name: "weights".into(), message })?;
    let files = code.executables.iter().map(|executable| executable.file.as_str());
    let files: Result<_, _> = files.chain(has_weights.then_some(WEIGHTS)).map(|path| File::of(folder, path)).collect();
    let shared = Shared { code, files: files?, constants, prepare, model_folder: options.model_folder.clone() };
    let (mut bundle, slow) = shared.bundle(compiled);
    for (node, compiled) in replacements {
        let (file, reason) = match compiled {
            Ok(compiled) => {
                let (mut other, _) = shared.bundle(compiled);
                other.drop_unused_constants();
                other.describe_contents(folder)?;
                let file = other.write_without(folder, node)?;
                bundle.files.push(File::of(folder, &file)?);
                (Some(file), None)
            }
            Err(reason) => (None, Some(reason)),
        };
        bundle.losses.push(bundle::Loss { node, file, reason });
    }
    if !bundle.losses.is_empty() {
        bundle.drop_unused_constants();
    }
    bundle.describe_contents(folder)?;
    bundle.write(folder)?;
    Ok(slow)
}

/// Parts of descriptions that the programs of a bundle share.
struct Shared {
    code: Executables,
    files: Vec<File>,
    constants: Vec<Constant>,
    prepare: Vec<Call>,
    model_folder: String,
}

impl Shared {
    /// Returns the description of a program, without those of the losses, and its operators that have no fast kernel.
    fn bundle(&self, compiled: CompiledProgram) -> (Bundle, SlowOperators) {
        let CompiledProgram { program, stages, slow } = compiled;
        let bundle = Bundle {
            format: FORMAT.into(),
            model: program.model,
            model_folder: self.model_folder.clone(),
            model_files: vec![],
            executables: self.code.executables.clone(),
            objective: program.objective,
            devices: program.devices,
            files: self.files.clone(),
            values: program.values,
            inputs: program.inputs,
            outputs: program.outputs,
            task_results: program.task_results,
            constants: self.constants.clone(),
            prepare_executable: (!self.prepare.is_empty()).then_some(HOST_EXECUTABLE),
            prepare: self.prepare.clone(),
            stages: stages.into_iter().map(|(description, stage)| self.stage(description, stage)).collect(),
            steps: program.steps,
            losses: vec![],
            sha256: String::new(),
            lacks_extents: false,
        };
        (bundle, slow)
    }

    fn stage(&self, description: StageDescription, stage: CompiledStage) -> Stage {
        let executable = match stage.code {
            Code::Host => HOST_EXECUTABLE,
            Code::Own(index) => self.code.first[description.compiler] + index,
        };
        let StageDescription { name, device, inputs, outputs, tasks, .. } = description;
        let CompiledStage { arena, calls, payload, constants, .. } = stage;
        Stage { name, device, executable, payload, constants, arena, inputs, outputs, tasks, calls }
    }
}

/// Returns true if each device has memory for packed weights that are larger than the model's and for `f32` counterparts of half-precision values:
/// they take at most half of what the constants leave free, so that activations keep the other half.
fn has_spare_memory(program: &Program) -> bool {
    let bytes = |device: usize, is_counted: &dyn Fn(&graph::Value) -> bool| {
        let stages = program.stages.iter().filter(move |stage| stage.device == device);
        let values = stages.flat_map(|stage| &stage.graph.values).filter(|value| is_counted(value));
        values.map(graph::Value::bytes).fold(0, u64::saturating_add)
    };
    program.devices.iter().enumerate().all(|(number, device)| {
        let constants = bytes(number, &|value| value.constant.is_some());
        let expanded = bytes(number, &|value| value.constant.is_some() || half_precision::is_half(value.dtype));
        device.memory.saturating_sub(constants) / 2 >= expanded
    })
}

/// Description of a stage of the bundle, without its code.
struct StageDescription {
    name: String,
    device: usize,
    inputs: Vec<Tensor>,
    outputs: Vec<Tensor>,
    tasks: Vec<Task>,
    /// Index of the [`StageCompiler`] of its kind of device.
    compiler: usize,
}

/// Program whose stages are compiled.
struct CompiledProgram {
    program: Program,
    stages: Vec<(StageDescription, CompiledStage)>,
    slow: SlowOperators,
}

/// Compilers of stages, by the name of their kind of device.
#[derive(Default)]
struct Compilers(Vec<(&'static str, Box<dyn StageCompiler>)>);

impl Compilers {
    /// Returns the index of the compiler for a kind of device of a program.
    fn index(&mut self, backend: &dyn TargetBackend, devices: &[Device]) -> usize {
        let kind = backend.kind().name();
        self.0.iter().position(|(known, _)| *known == kind).unwrap_or_else(|| {
            let devices: Vec<_> = devices.iter().filter(|device| device.kind == kind).collect();
            self.0.push((kind, backend.compiler(&devices)));
            self.0.len() - 1
        })
    }
}

/// Compiles the stages of a program, and assigns the layouts of values at their boundaries.
fn compile_program(
    mut program: Program,
    host: &mut HostModule,
    compilers: &mut Compilers,
) -> Result<CompiledProgram, Error> {
    host.kernels.has_spare_memory = has_spare_memory(&program);
    // The pool merges equal constants, so indices change.
    let constants = std::mem::take(&mut program.constants).into_iter();
    let indices: Vec<_> = constants.map(|(expression, bytes)| host.pool.constant(expression, bytes)).collect();
    for value in &mut program.values {
        value.constant = value.constant.map(|constant| indices[constant]);
    }
    // Devices without stages need no back end.
    let mut backends: Vec<Option<&dyn TargetBackend>> = vec![None; program.devices.len()];
    for stage in &program.stages {
        let device = &program.devices[stage.device];
        backends[stage.device] = Some(backends::require(device).map_err(|reason| Error::Target(reason.to_string()))?);
    }
    let backend = |device: usize| backends[device].expect("devices with stages have a back end");
    let mut assignment =
        LayoutAssignment::of(&program, &|device| backend(device).boundary_layouts() != BoundaryLayouts::RowMajor);
    let is_streamed = streamed_outputs(&program, &|device: usize| {
        device::find(&program.devices[device].kind).map_or(MemorySpace::Host, |kind| kind.memory())
    });
    let mut stages: Vec<_> = std::mem::take(&mut program.stages).into_iter().enumerate().collect();
    // Stages of back ends that assign layouts are compiled first, consumers before producers: windows of consumers determine halos.
    stages.sort_by_key(|(number, stage)| (backend(stage.device).boundary_layouts(), Reverse(*number)));
    let mut slow = SlowOperators::default();
    let mut compiled: Vec<(usize, StageDescription, CompiledStage)> = vec![];
    for (number, StageProgram { name, device, graph, tasks }) in stages {
        let tensors = |ids: &[graph::Id]| -> Vec<_> { ids.iter().map(|id| tensor(&graph.values[id.0])).collect() };
        let (mut inputs, mut outputs) = (tensors(&graph.inputs), tensors(&graph.outputs));
        let compiler = compilers.index(backend(device), &program.devices);
        let layouts = assignment.stage_layouts(number);
        let (device_of, is_streamed) = (&program.devices[device], &is_streamed[number][..]);
        let input = StageInput { name: &name, device: device_of, graph, layouts: &layouts, is_streamed };
        let stage = compilers.0[compiler].1.compile(input, host)?;
        slow.add_stage(&stage.slow, &tasks.iter().map(|task| task.predicted_us).collect::<Vec<_>>());
        assignment.assign_stage(number, &stage.layouts).map_err(|()| {
            Error::Internal(format!("stage '{name}' was compiled with another layout than it was assigned"))
        })?;
        inputs.iter_mut().zip(&stage.layouts.inputs).for_each(|(tensor, layout)| describe(*layout, tensor));
        outputs.iter_mut().zip(&stage.layouts.outputs).for_each(|(tensor, layout)| describe(*layout, tensor));
        compiled.push((number, StageDescription { name, device, inputs, outputs, tasks, compiler }, stage));
    }
    for (index, value) in program.values.iter_mut().enumerate() {
        describe(assignment.layout(index), &mut value.tensor);
    }
    compiled.sort_by_key(|(number, ..)| *number);
    let stages = compiled.into_iter().map(|(_, description, stage)| (description, stage)).collect();
    Ok(CompiledProgram { program, stages, slow })
}

/// Executables of a bundle.
struct Executables {
    executables: Vec<bundle::Executable>,
    /// By compiler: the index of its first executable.
    first: Vec<usize>,
}

/// Writes the code of all stages.
fn executables(
    host: &mut HostModule,
    compilers: Compilers,
    stages: &[&(StageDescription, CompiledStage)],
    folder: &Path,
    options: &Options<'_>,
) -> Result<Executables, Error> {
    let mut executables = vec![host_executable(host, stages, folder, options)?];
    let mut first = vec![];
    for (index, (_, compiler)) in compilers.0.into_iter().enumerate() {
        first.push(executables.len());
        let own: Vec<_> =
            stages.iter().filter(|(description, _)| description.compiler == index).map(|(_, stage)| stage).collect();
        let own_executables = compiler.finish(&own)?;
        let exists = |code: Code| !matches!(code, Code::Own(index) if index >= own_executables.len());
        if !own.iter().all(|stage| exists(stage.code)) {
            return Err(Error::Internal("a stage refers to an executable that its compiler did not return".into()));
        }
        for Executable { format, file, target, bytes } in own_executables {
            check_file(&file, &executables)?;
            let path = folder.join(&file);
            fs::write(&path, bytes).map_err(|problem| Error::Write { path, problem })?;
            executables.push(bundle::Executable { format, file, target });
        }
    }
    Ok(Executables { executables, first })
}

/// Checks that the file name of an executable is a plain name that no other file of the bundle has.
fn check_file(file: &str, executables: &[bundle::Executable]) -> Result<(), Error> {
    let is_name = Path::new(file).file_name().is_some_and(|name| name == file);
    let is_taken = [WEIGHTS, DESCRIPTION].contains(&file) || executables.iter().any(|other| other.file == file);
    match is_name && !is_taken {
        true => Ok(()),
        false => Err(Error::Internal(format!("an executable cannot be written to '{file}'"))),
    }
}

/// Compiles the host's kernels, including those of CPU stages, into a shared object of the bundle.
fn host_executable(
    host: &mut HostModule,
    stages: &[&(StageDescription, CompiledStage)],
    folder: &Path,
    options: &Options<'_>,
) -> Result<bundle::Executable, Error> {
    let target = host.kernels.target(&options.target);
    let cannot = |problem| Error::Write { path: folder.to_owned(), problem };
    let file = format!("{}.so", target.cpu);
    let scratch = folder.join("objects");
    fs::create_dir_all(&scratch).map_err(cannot)?;
    let stages = stages.iter().map(|(_, stage)| stage).filter(|stage| stage.code == Code::Host);
    let calls = stages.flat_map(|stage| &stage.calls).chain(&host.pool.load_calls);
    let signatures = machine_code::signature_lines(calls.map(cpu_driver::signature));
    machine_code::compile(&mut host.kernels, &target, &signatures, &scratch, &folder.join(&file))?;
    fs::remove_dir_all(&scratch).map_err(cannot)?;
    let target = cpu_driver::Target { cpu: target.cpu, features: target.features };
    Ok(target.executable(file))
}
