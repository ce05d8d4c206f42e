//! Whether a vendor's library or our own kernel computes a call, and by which of the library's algorithms: the fastest, as
//! measured on the GPU at hand.

use super::{
    choices::{Alike, Choice, Choices},
    driver::{Address, Event, Fault, Gpu, Outcome, Plan, Stream, capture},
    launch::{Launch, LibraryCall},
    memory::DeviceMemory,
    stage::{Kernel, known_buffers},
};
use crate::{
    bundle::{Bundle, Call},
    error::Result,
};
use std::sync::Arc;

/// Runs in a graph that is measured, and how often that is.
const RUNS: u32 = 5;
const ROUNDS: u32 = 3;
/// Buffers begin at multiples of this.
const ALIGNMENT: u64 = 256;

pub(crate) struct Chooser<'a> {
    gpu: Arc<dyn Gpu>,
    stream: Stream,
    begin: Event,
    end: Event,
    /// What is being done, for errors.
    what: String,
    /// Where calls may read and write while they are measured, and how many bytes that takes.
    scratch: Option<DeviceMemory>,
    room: u64,
    workspace: Option<(DeviceMemory, u64)>,
    /// What was chosen for calls that are alike.
    known: Vec<(Alike, Option<Arc<dyn Plan>>)>,
    kept: &'a mut Choices,
}

impl<'a> Chooser<'a> {
    /// For the launches of a device; what was chosen before is kept.
    pub(crate) fn new<'l>(
        gpu: &Arc<dyn Gpu>,
        bundle: &Bundle,
        device: usize,
        launches: impl Iterator<Item = &'l Launch>,
        stream: Stream,
        kept: &'a mut Choices,
    ) -> Result<Self> {
        let stages: Vec<_> = bundle.stages.iter().filter(|stage| stage.device == device).collect();
        let libraries = launches.filter_map(|launch| launch.library.as_ref());
        let known = libraries.map(|library| extents(library).1).max();
        // What only kernels know is in an arena, or a value, or a constant.
        let tensors = stages.iter().flat_map(|stage| stage.inputs.iter().chain(&stage.outputs)).map(|it| it.bytes);
        let constants = bundle.constants.iter().map(|constant| constant.bytes);
        let others = stages.iter().map(|stage| stage.arena).chain(tensors).chain(constants).max();
        let room = known.map_or(0, |bytes| bytes.saturating_add(others.unwrap_or(0)));
        let what = format!("trying the algorithms of libraries on '{}'", bundle.devices[device].id);
        let event =
            || gpu.event().map_err(|fault| crate::Error::Device { what: what.clone(), problem: fault.to_string() });
        let (begin, end) = (event()?, event()?);
        let (gpu, scratch, workspace) = (gpu.clone(), None, None);
        Ok(Self { gpu, stream, begin, end, what, scratch, room, workspace, known: vec![], kept })
    }

    /// The plan for a call whose buffers begin at multiples of `alignment`; `None` for its own kernels, which are the first of
    /// those that are given. The others finish what the library has computed.
    pub(crate) fn choose(
        &mut self,
        (call, launch): (&Call, &Launch),
        library: &LibraryCall,
        kernels: [&[Kernel]; 2],
        alignment: u64,
    ) -> Outcome<Option<Arc<dyn Plan>>> {
        let alike = Alike::of(launch, library, alignment);
        if let Some((_, plan)) = self.known.iter().find(|(known, _)| *known == alike) {
            return Ok(plan.clone());
        }
        let kept = match self.kept(&alike, library)? {
            Some(Some(plan)) => passable(self.load(&*plan, library, call.buffers.len()))?.map(|()| Some(plan)),
            other => other,
        };
        let plan = match kept {
            Some(plan) => plan,
            None => {
                let (us, plan) = self.fastest(library, kernels, call.buffers.len(), alignment)?;
                let name = plan.as_ref().map(|plan| plan.name());
                if us.is_finite() {
                    self.kept.keep(self.gpu.name(), Choice { call: alike.clone(), library: name, us });
                }
                plan
            }
        };
        self.known.push((alike, plan.clone()));
        Ok(plan)
    }

    /// What was chosen before, unless the library does not have it any more.
    fn kept(&self, alike: &Alike, library: &LibraryCall) -> Outcome<Option<Option<Arc<dyn Plan>>>> {
        let Some(choice) = self.kept.find(self.gpu.name(), alike) else { return Ok(None) };
        let Some(name) = &choice.library else { return Ok(Some(None)) };
        let plans = passable(self.gpu.plans(&library.way, alike.alignment))?.unwrap_or_default();
        Ok(plans.into_iter().find(|plan| plan.name() == *name).map(Some))
    }

    /// Runs a plan once: libraries load code at its first run, which could not be captured, and would hold up a first request.
    fn load(&mut self, plan: &dyn Plan, library: &LibraryCall, buffer_count: usize) -> Outcome<()> {
        let buffers = self.buffers(library, buffer_count)?;
        let workspace = self.room(plan.workspace())?;
        // SAFETY: the buffers are as long as the library is told, and the workspace as long as it asked for.
        unsafe { plan.run(&known_buffers(&library.way, &buffers), workspace, self.stream) }?;
        self.gpu.finish(self.stream)
    }

    /// Buffers for a call. The library's output comes last; what it does not know is between, in one place.
    fn buffers(&mut self, library: &LibraryCall, count: usize) -> Outcome<Vec<Address>> {
        let scratch = self.scratch()?;
        let (offsets, end) = extents(library);
        let mut buffers: Vec<Address> = offsets.iter().map(|offset| scratch + offset).collect();
        let output = buffers.pop();
        buffers.resize(count.saturating_sub(1), scratch + end);
        buffers.extend(output);
        Ok(buffers)
    }

    /// What the fastest way takes, and its plan.
    fn fastest(
        &mut self,
        library: &LibraryCall,
        [own, then]: [&[Kernel]; 2],
        buffer_count: usize,
        alignment: u64,
    ) -> Outcome<(f64, Option<Arc<dyn Plan>>)> {
        let plans = passable(self.gpu.plans(&library.way, alignment))?.unwrap_or_default();
        if plans.is_empty() {
            return Ok((f64::INFINITY, None));
        }
        let buffers = self.buffers(library, buffer_count)?;
        let known = known_buffers(&library.way, &buffers);
        let launch = |kernels: &[Kernel], gpu: &dyn Gpu, stream| {
            // SAFETY: the kernels take these buffers, which are long enough.
            kernels.iter().try_for_each(|kernel| unsafe { kernel.launch(gpu, &buffers, stream) })
        };
        let kernel = |gpu: &dyn Gpu, stream| launch(own, gpu, stream);
        if self.known.is_empty() {
            // A GPU that was idle is slower.
            passable(self.measure(kernel))?;
        }
        let (mut best, mut chosen) = (passable(self.measure(kernel))?.unwrap_or(f64::INFINITY), None);
        for plan in plans {
            let Some(workspace) = passable(self.room(plan.workspace()))? else { continue };
            // SAFETY: the buffers are as long as the library is told, and the workspace as long as it asked for.
            let compute = |stream| unsafe { plan.run(&known, workspace, stream) };
            let run = |gpu: &dyn Gpu, stream| compute(stream).and_then(|()| launch(then, gpu, stream));
            if let Some(micros) = passable(self.measure(run))?
                && micros < best
            {
                (best, chosen) = (micros, Some(plan));
            }
        }
        Ok((best, chosen))
    }

    /// Room for the buffers of any call.
    fn scratch(&mut self) -> Outcome<Address> {
        if let Some(scratch) = &self.scratch {
            return Ok(scratch.address);
        }
        let memory = DeviceMemory::new(&self.gpu, self.room, &self.what).map_err(|_| Fault::Memory)?;
        Ok(self.scratch.insert(memory).address)
    }

    /// A workspace of at least as many bytes.
    fn room(&mut self, bytes: u64) -> Outcome<Address> {
        match &self.workspace {
            Some((memory, has)) if *has >= bytes => Ok(memory.address),
            _ => {
                self.workspace = None;
                let memory = DeviceMemory::new(&self.gpu, bytes, "a workspace").map_err(|_| Fault::Memory)?;
                let address = memory.address;
                self.workspace = Some((memory, bytes));
                Ok(address)
            }
        }
    }

    /// Microseconds of a run, in a graph, as it will be used.
    fn measure(&self, run: impl Fn(&dyn Gpu, Stream) -> Outcome<()>) -> Outcome<f64> {
        let (gpu, stream) = (&*self.gpu, self.stream);
        // Code that a library loads at its first run is not part of what is captured.
        run(gpu, stream)?;
        gpu.finish(stream)?;
        let graph = capture(gpu, stream, || (0..RUNS).try_for_each(|_| run(gpu, stream)))?;
        let time = || {
            gpu.record(self.begin, stream)?;
            gpu.launch_graph(graph, stream)?;
            gpu.record(self.end, stream)?;
            gpu.finish(stream)?;
            Ok(gpu.micros_between(self.begin, self.end)? / f64::from(RUNS))
        };
        // The first time is slower.
        let best = time().and_then(|_| (0..ROUNDS).try_fold(f64::INFINITY, |best, _| Ok(time()?.min(best))));
        gpu.drop_graph(graph);
        best
    }
}

/// `None` of what a library refuses; what makes everything else fail as well is a fault.
fn passable<T>(outcome: Outcome<T>) -> Outcome<Option<T>> {
    match outcome {
        Ok(value) => Ok(Some(value)),
        Err(Fault::Lost(text)) => Err(Fault::Lost(text)),
        Err(_) => Ok(None),
    }
}

/// Where buffers for a call can be, one behind the other, and how many bytes they take.
fn extents(library: &LibraryCall) -> (Vec<u64>, u64) {
    let mut end = 0;
    let offsets = library.way.buffer_bytes().into_iter().map(|bytes| {
        let begin = end;
        end += bytes.next_multiple_of(ALIGNMENT);
        begin
    });
    (offsets.collect(), end)
}
