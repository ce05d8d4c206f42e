//! A bundle that is loaded: kernels and constants found, steps put in order.

use crate::{
    block::Block,
    bundle::{Action, Buffer, Bundle, Call, Lanes, Status},
    code::{self, Code, Kernel},
    constants::Constants,
    cpu,
    cuda::{self, DeviceMemory, Pinned},
    error::{Error, Result},
    files::Roots,
    footprint, limits,
    memory::Aligned,
    runtime::Options,
    team::{Team, Work},
};
use std::{ops::Range, path::Path, ptr, time::Duration};

pub(crate) struct Program {
    pub(crate) bundle: Bundle,
    pub(crate) steps: Vec<Planned>,
    /// The calls of each stage that a CPU runs.
    pub(crate) stages: Vec<Vec<PlannedCall>>,
    pub(crate) lanes: Lanes,
    pub(crate) constants: Constants,
    /// By device; `None` for CPUs.
    pub(crate) gpus: Vec<Option<cuda::Device>>,
    /// Kernels are its functions. Not there if the bundle has none.
    _code: Option<Code>,
}

/// A step, and when it may run.
pub(crate) struct Planned {
    /// Where it runs: a device, or behind them a link.
    pub(crate) lane: usize,
    /// Whether a GPU has a part in it.
    pub(crate) is_on_gpu: bool,
    /// Whether it is done only when the GPU has done it, instead of when the GPU was told.
    pub(crate) is_awaited: bool,
    /// Whether a GPU copies a value to the host.
    pub(crate) is_fetch: bool,
    /// The first of those that could run is the one with the lowest.
    pub(crate) rank: u32,
    /// The steps that write what it reads.
    pub(crate) dependencies: Vec<usize>,
    /// The steps that read what it writes.
    pub(crate) dependents: Vec<usize>,
    /// Where the buffers of its calls begin in a table of all.
    pub(crate) table: usize,
}

pub(crate) struct PlannedCall {
    pub(crate) kernel: Kernel,
    pub(crate) extent: i64,
    pub(crate) grain: i64,
    pub(crate) task: usize,
    /// Which part of a launch's table its buffers are.
    pub(crate) buffers: Range<usize>,
}

impl Program {
    pub(crate) fn load(folder: &Path, driver: &dyn cuda::Driver, options: &Options) -> Result<Self> {
        let bundle = Bundle::read(folder)?;
        let usual = footprint::usual_in_flight(&bundle);
        limits::check(&bundle, options.in_flight.unwrap_or(usual), usual, options.map_weights)?;
        if let Some(device) = bundle.devices.iter().find(|device| device.kind != "cpu" && device.kind != cuda::KIND) {
            return Err(Error::Device { id: device.id.clone(), kind: device.kind.clone() });
        }
        code::check_processor(&bundle.target)?;
        for file in &bundle.files {
            // Code is small, and a damaged one could do anything.
            let is_code = file.path == bundle.target.code || bundle.gpus.iter().any(|code| file.path == code.code);
            if is_code { file.check(folder)? } else { file.check_size(folder)? }
        }
        let gpus = cuda::open(&bundle, driver)?;
        let code = bundle.has_native_calls().then(|| Code::load(folder, &bundle.target)).transpose()?;
        let kernels = Kernels { code: code.as_ref(), has_extents: bundle.has_extents() };
        let stages = bundle.stages.iter().map(|stage| match gpus[stage.device] {
            Some(_) => Ok(vec![]),
            None => kernels.plan(&stage.calls),
        });
        let stages = stages.collect::<Result<_>>()?;
        let prepare = kernels.plan(&bundle.prepare)?;
        let roots = Roots::of(folder, &bundle, &options.allowed_paths)?;
        let constants = Constants::load(&roots, &bundle, options.map_weights)?;
        let lanes = bundle.lanes();
        let steps = plan_steps(&bundle, &lanes);
        let mut program = Self { bundle, steps, stages, lanes, constants, gpus: vec![], _code: code };
        program.prepare(&prepare)?;
        let (bundle, constants) = (&program.bundle, &program.constants);
        let mut choices = cuda::Choices::read(options.choices.as_deref())?;
        let load = |(index, gpu): (usize, Option<_>)| {
            let load = |gpu| cuda::Device::load(folder, bundle, index, constants, gpu, options.cold, &mut choices);
            gpu.map(load).transpose()
        };
        program.gpus = gpus.into_iter().enumerate().map(load).collect::<Result<_>>()?;
        choices.save()?;
        if options.cold.is_none() {
            // Weights that only GPUs read are in their memory by now.
            let needed = program.host_constants();
            program.constants.keep(&needed);
        }
        Ok(program)
    }

    /// By constant: whether the host reads it while requests run.
    fn host_constants(&self) -> Vec<bool> {
        let mut needed = vec![false; self.bundle.constants.len()];
        let stages = self.bundle.stages.iter().filter(|stage| self.gpus[stage.device].is_none());
        let of_calls = stages.flat_map(|stage| &stage.calls).flat_map(Call::constants);
        let values = self.bundle.values.iter().filter(|value| self.gpus[value.device].is_none());
        of_calls.chain(values.filter_map(|value| value.constant)).for_each(|constant| needed[constant] = true);
        needed
    }

    /// Memory of a device for values. Those of the host that come from GPUs or go there are where GPUs find them by themselves.
    pub(crate) fn values(&self, device: usize, bytes: u64) -> Result<Block> {
        let what = format!("the values on device '{}'", self.bundle.devices[device].id);
        let partner = self.lanes.links.iter().find_map(|&(from, to)| match device {
            _ if device == from => self.gpus[to].as_ref(),
            _ if device == to => self.gpus[from].as_ref(),
            _ => None,
        });
        match (&self.gpus[device], partner) {
            (None, Some(gpu)) => Ok(Block::Pinned(Pinned::new(&gpu.gpu, bytes, &what)?)),
            _ => self.block(device, bytes, &what),
        }
    }

    /// Memory of a device.
    pub(crate) fn block(&self, device: usize, bytes: u64, what: &str) -> Result<Block> {
        match &self.gpus[device] {
            Some(gpu) => Ok(Block::Gpu(DeviceMemory::new(&gpu.gpu, bytes, what)?)),
            None => Ok(Block::Host(Aligned::zeroed(bytes, what)?)),
        }
    }

    /// Where a device finds a constant.
    pub(crate) fn constant_on(&self, device: usize, constant: usize) -> *mut u8 {
        match &self.gpus[device] {
            Some(gpu) => ptr::without_provenance_mut(gpu.constant(constant).unwrap_or(0) as usize),
            None => self.constants.constants[constant].pointer(),
        }
    }

    /// The GPU that a value is on.
    pub(crate) fn gpu_of(&self, value: usize) -> Option<&cuda::Device> {
        self.gpus[self.bundle.values[value].device].as_ref()
    }

    /// Whether kernels may read an input where its owner has it. GPUs may not, and copies to them begin elsewhere.
    pub(crate) fn may_lend(&self, value: usize) -> bool {
        let goes_to_gpu = |action: &Action| matches!(action, Action::Transfer { input, output } if *input == value && self.gpu_of(*output).is_some());
        self.gpu_of(value).is_none() && !self.bundle.steps.iter().any(|step| goes_to_gpu(&step.action))
    }

    /// Whether an output comes from a GPU and is the host's alone, so that it can be copied to where it goes.
    pub(crate) fn may_place(&self, value: usize) -> bool {
        let comes_from_gpu = |action: &Action| matches!(action, Action::Transfer { input, output } if *output == value && self.gpu_of(*input).is_some());
        self.gpu_of(value).is_none() && self.bundle.steps.iter().any(|step| comes_from_gpu(&step.action))
    }

    /// Whether outputs have to be fetched from GPUs.
    pub(crate) fn has_gpu_outputs(&self) -> bool {
        self.bundle.outputs.iter().any(|port| self.gpu_of(port.value).is_some())
    }

    /// Whether an output comes from a GPU.
    pub(crate) fn is_from_gpu(&self, value: usize) -> bool {
        self.gpu_of(value).is_some() || self.may_place(value)
    }

    /// Computes the constants that are computed once.
    fn prepare(&self, calls: &[PlannedCall]) -> Result<()> {
        if calls.is_empty() {
            return Ok(());
        }
        let mut team = Team::new("prepare", cpu::core_count(), &[], Duration::ZERO)?;
        for (call, planned) in self.bundle.prepare.iter().zip(calls) {
            let buffers: Vec<*mut u8> = call.buffers.iter().map(|buffer| self.constant(buffer)).collect();
            let work =
                Work { kernel: planned.kernel, buffers: buffers.as_ptr(), extent: call.extent, grain: call.grain };
            // SAFETY: its buffers are constants, which nobody else uses yet.
            let status = unsafe { team.run(work) };
            if let Some(problem) = Status::problem(status) {
                let (stage, task) = ("prepare".to_owned(), call.kernel.clone());
                return Err(Error::Failed { stage, task, problem: problem.to_owned() });
            }
        }
        Ok(())
    }

    fn constant(&self, buffer: &Buffer) -> *mut u8 {
        match buffer {
            Buffer::Constant(index) => self.constants.constants[*index].pointer(),
            // Not in a sound bundle.
            Buffer::Input(_) | Buffer::Output(_) | Buffer::Arena(_) => std::ptr::null_mut(),
        }
    }

    /// How many buffers all calls of a request have.
    pub(crate) fn table_length(&self) -> usize {
        let of_stage =
            |stage: usize| self.bundle.stages[stage].calls.iter().map(|call| call.buffers.len()).sum::<usize>();
        let of_step = |action: &Action| if let Action::Launch { stage, .. } = action { of_stage(*stage) } else { 0 };
        self.bundle.steps.iter().map(|step| of_step(&step.action)).sum()
    }
}

struct Kernels<'a> {
    code: Option<&'a Code>,
    has_extents: bool,
}

impl Kernels<'_> {
    fn plan(&self, calls: &[Call]) -> Result<Vec<PlannedCall>> {
        let mut first = 0;
        let planned = calls.iter().filter_map(|call| {
            let kernel = self.code?.kernel(call, self.has_extents);
            let buffers = first..first + call.buffers.len();
            first = buffers.end;
            let &Call { extent, grain, task, .. } = call;
            Some(kernel.map(|kernel| PlannedCall { kernel, extent, grain, task, buffers }))
        });
        planned.collect()
    }
}

fn plan_steps(bundle: &Bundle, lanes: &Lanes) -> Vec<Planned> {
    let mut steps: Vec<Planned> = Vec::with_capacity(bundle.steps.len());
    let mut table = 0;
    let each = bundle.steps.iter().zip(&lanes.of_step).zip(dependencies(bundle));
    for (index, ((step, &lane), dependencies)) in each.enumerate() {
        dependencies.iter().for_each(|&other| steps[other].dependents.push(index));
        let is_gpu = |device: usize| bundle.devices[device].kind == cuda::KIND;
        let is_on_gpu = match &step.action {
            Action::Launch { stage, .. } => is_gpu(bundle.stages[*stage].device),
            other => other.reads().iter().chain(other.writes()).any(|&value| is_gpu(bundle.values[value].device)),
        };
        let is_awaited = match &step.action {
            Action::Launch { stage, .. } => bundle.stages[*stage].can_fail_on_gpu(),
            Action::Transfer { input, .. } => is_gpu(bundle.values[*input].device),
            Action::Slice { .. } | Action::Gather { .. } => false,
        };
        let is_fetch = matches!(&step.action, Action::Transfer { output, .. } if is_awaited && !is_gpu(bundle.values[*output].device));
        steps.push(Planned { lane, is_on_gpu, is_awaited, is_fetch, rank: 0, dependencies, dependents: vec![], table });
        if let Action::Launch { stage, .. } = &step.action {
            table += bundle.stages[*stage].calls.iter().map(|call| call.buffers.len()).sum::<usize>();
        }
    }
    for (rank, &step) in order(bundle).iter().enumerate() {
        steps[step].rank = rank as u32;
    }
    steps
}

/// The steps that each step reads values of.
pub(crate) fn dependencies(bundle: &Bundle) -> Vec<Vec<usize>> {
    let mut writers = vec![None; bundle.values.len()];
    let mut all = Vec::with_capacity(bundle.steps.len());
    for (index, step) in bundle.steps.iter().enumerate() {
        let mut dependencies: Vec<usize> = step.action.reads().iter().filter_map(|&value| writers[value]).collect();
        dependencies.sort_unstable();
        dependencies.dedup();
        step.action.writes().iter().for_each(|&value| writers[value] = Some(index));
        all.push(dependencies);
    }
    all
}

/// The steps as the plan has them start; as they are listed, where it does not say.
fn order(bundle: &Bundle) -> Vec<usize> {
    let mut order: Vec<usize> = (0..bundle.steps.len()).collect();
    if bundle.steps.iter().all(|step| step.start_us.is_some()) {
        let start = |step: usize| bundle.steps[step].start_us.unwrap_or(0.0);
        order.sort_by(|&a, &b| start(a).total_cmp(&start(b)).then(a.cmp(&b)));
    }
    order
}
