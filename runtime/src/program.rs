//! A bundle that is loaded: kernels and constants found, steps put in order.

use crate::{
    bundle::{Action, Buffer, Bundle, Call, Lanes, Status},
    code::{self, Code, Kernel},
    constants::Constants,
    cpu,
    error::{Error, Result},
    team::{Team, Work},
};
use std::{ops::Range, path::Path, time::Duration};

pub(crate) struct Program {
    pub(crate) bundle: Bundle,
    pub(crate) steps: Vec<Planned>,
    /// The calls of each stage.
    pub(crate) stages: Vec<Vec<PlannedCall>>,
    pub(crate) lanes: Lanes,
    pub(crate) constants: Constants,
    /// Kernels are its functions. Not there if the bundle has none.
    _code: Option<Code>,
}

/// A step, and when it may run.
pub(crate) struct Planned {
    /// Where it runs: a device, or behind them a link.
    pub(crate) lane: usize,
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
    pub(crate) fn load(folder: &Path) -> Result<Self> {
        let bundle = Bundle::read(folder)?;
        if let Some(device) = bundle.devices.iter().find(|device| device.kind != "cpu") {
            return Err(Error::Device { id: device.id.clone(), kind: device.kind.clone() });
        }
        code::check_processor(&bundle.target)?;
        for file in &bundle.files {
            // Code is small, and a damaged one could do anything.
            if file.path == bundle.target.code { file.check(folder)? } else { file.check_size(folder)? }
        }
        let has_code = !bundle.prepare.is_empty() || bundle.stages.iter().any(|stage| !stage.calls.is_empty());
        let code = has_code.then(|| Code::load(folder, &bundle.target)).transpose()?;
        let kernels = Kernels(code.as_ref());
        let stages = bundle.stages.iter().map(|stage| kernels.plan(&stage.calls)).collect::<Result<_>>()?;
        let prepare = kernels.plan(&bundle.prepare)?;
        let constants = Constants::load(folder, &bundle)?;
        let lanes = bundle.lanes();
        let steps = plan_steps(&bundle, &lanes);
        let program = Self { bundle, steps, stages, lanes, constants, _code: code };
        program.prepare(&prepare)?;
        Ok(program)
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
        let of_stage = |stage: usize| self.stages[stage].last().map_or(0, |call| call.buffers.end);
        let of_step = |action: &Action| if let Action::Launch { stage, .. } = action { of_stage(*stage) } else { 0 };
        self.bundle.steps.iter().map(|step| of_step(&step.action)).sum()
    }
}

struct Kernels<'a>(Option<&'a Code>);

impl Kernels<'_> {
    fn plan(&self, calls: &[Call]) -> Result<Vec<PlannedCall>> {
        let mut first = 0;
        let planned = calls.iter().filter_map(|call| {
            let kernel = self.0?.kernel(&call.kernel);
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
        steps.push(Planned { lane, rank: 0, dependencies, dependents: vec![], table });
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
