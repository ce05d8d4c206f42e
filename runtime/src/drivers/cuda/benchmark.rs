//! Choice between our own kernels and the algorithms of a vendor library for a call: the fastest one, as measured on the GPU.

use super::{
    choices::{AlgorithmCache, CallKey, Choice},
    driver::{Address, CudaError, CudaResult, Event, Gpu, Plan, Stream, capture},
    launch::{Launch, LibraryCall},
    memory::DeviceMemory,
    stage::{Kernel, known_buffers},
};
use crate::{
    bundle::{Bundle, Call},
    error::Result,
};
use std::sync::Arc;

/// Runs per measured graph.
const RUNS: u32 = 5;
/// Measurements per algorithm, of which the minimum counts.
const ROUNDS: u32 = 3;
/// Alignment of the benchmark's buffers in bytes.
const ALIGNMENT: u64 = 256;

/// Benchmark of the algorithms for the calls of a device.
pub(crate) struct AlgorithmSelector<'a> {
    gpu: Arc<dyn Gpu>,
    stream: Stream,
    begin: Event,
    end: Event,
    /// Description of the operation in errors.
    what: String,
    /// Buffers of the calls that are measured; allocated on first use.
    scratch: Option<DeviceMemory>,
    /// Size of `scratch` in bytes.
    room: u64,
    workspace: Option<(DeviceMemory, u64)>,
    /// Choices made so far.
    known: Vec<(CallKey, Option<Arc<dyn Plan>>)>,
    /// Persistent cache.
    kept: &'a mut AlgorithmCache,
}

impl<'a> AlgorithmSelector<'a> {
    /// Builds a selector for the launches of a device. `kept` is the persistent cache.
    pub(crate) fn new<'l>(
        gpu: &Arc<dyn Gpu>,
        bundle: &Bundle,
        device: usize,
        launches: impl Iterator<Item = &'l Launch>,
        stream: Stream,
        kept: &'a mut AlgorithmCache,
    ) -> Result<Self> {
        let stages: Vec<_> = bundle.stages.iter().filter(|stage| stage.device == device).collect();
        let libraries = launches.filter_map(|launch| launch.library.as_ref());
        let known = libraries.map(|library| extents(library).1).max();
        // Buffers that only our kernels access are arenas, values or constants.
        let tensors = stages.iter().flat_map(|stage| stage.inputs.iter().chain(&stage.outputs)).map(|it| it.bytes);
        let constants = bundle.constants.iter().map(|constant| constant.bytes);
        let others = stages.iter().map(|stage| stage.arena).chain(tensors).chain(constants).max();
        let room = known.map_or(0, |bytes| bytes.saturating_add(others.unwrap_or(0)));
        let what = format!("benchmarking library algorithms on '{}'", bundle.devices[device].id);
        let event =
            || gpu.event().map_err(|fault| crate::Error::Device { what: what.clone(), problem: fault.to_string() });
        let (begin, end) = (event()?, event()?);
        let (gpu, scratch, workspace) = (gpu.clone(), None, None);
        Ok(Self { gpu, stream, begin, end, what, scratch, room, workspace, known: vec![], kept })
    }

    /// Returns the plan for a call whose buffers are aligned to `alignment` bytes; `None` for our own kernels. `kernels` are
    /// our own kernels, and the kernels that follow the library call.
    pub(crate) fn choose(
        &mut self,
        (call, launch): (&Call, &Launch),
        library: &LibraryCall,
        kernels: [&[Kernel]; 2],
        alignment: u64,
    ) -> CudaResult<Option<Arc<dyn Plan>>> {
        let key = CallKey::of(launch, library, alignment);
        if let Some((_, plan)) = self.known.iter().find(|(known, _)| *known == key) {
            return Ok(plan.clone());
        }
        let kept = match self.kept(&key, library)? {
            Some(Some(plan)) => recoverable(self.load(&*plan, library, call.buffers.len()))?.map(|()| Some(plan)),
            other => other,
        };
        let plan = match kept {
            Some(plan) => plan,
            None => {
                let (us, plan) = self.fastest(library, kernels, call.buffers.len(), alignment)?;
                let name = plan.as_ref().map(|plan| plan.name());
                if us.is_finite() {
                    self.kept.keep(self.gpu.name(), Choice { call: key.clone(), library: name, us });
                }
                plan
            }
        };
        self.known.push((key, plan.clone()));
        Ok(plan)
    }

    /// Looks up the persistent cache. `None` if there is no entry or the library lacks the algorithm; `Some(None)` for our own
    /// kernels.
    fn kept(&self, key: &CallKey, library: &LibraryCall) -> CudaResult<Option<Option<Arc<dyn Plan>>>> {
        let Some(choice) = self.kept.find(self.gpu.name(), key) else { return Ok(None) };
        let Some(name) = &choice.library else { return Ok(Some(None)) };
        let plans = recoverable(self.gpu.plans(&library.computation, key.alignment))?.unwrap_or_default();
        Ok(plans.into_iter().find(|plan| plan.name() == *name).map(Some))
    }

    /// Runs a plan once: libraries load code in the first run, which cannot be captured and would delay the first request.
    fn load(&mut self, plan: &dyn Plan, library: &LibraryCall, buffer_count: usize) -> CudaResult<()> {
        let buffers = self.buffers(library, buffer_count)?;
        let workspace = self.room(plan.workspace())?;
        // SAFETY: buffers and workspace have the sizes that the plan requires.
        unsafe { plan.run(&known_buffers(&library.computation, &buffers), workspace, self.stream) }?;
        self.gpu.synchronize(self.stream)
    }

    /// Returns scratch buffers for a call. The library's output is the last one; the buffers that it does not access precede
    /// it and share one address.
    fn buffers(&mut self, library: &LibraryCall, count: usize) -> CudaResult<Vec<Address>> {
        let scratch = self.scratch()?;
        let (offsets, end) = extents(library);
        let mut buffers: Vec<Address> = offsets.iter().map(|offset| scratch + offset).collect();
        let output = buffers.pop();
        buffers.resize(count.saturating_sub(1), scratch + end);
        buffers.extend(output);
        Ok(buffers)
    }

    /// Measures all algorithms. Returns the time of the fastest one in µs, and its plan.
    fn fastest(
        &mut self,
        library: &LibraryCall,
        [own, then]: [&[Kernel]; 2],
        buffer_count: usize,
        alignment: u64,
    ) -> CudaResult<(f64, Option<Arc<dyn Plan>>)> {
        let plans = recoverable(self.gpu.plans(&library.computation, alignment))?.unwrap_or_default();
        if plans.is_empty() {
            return Ok((f64::INFINITY, None));
        }
        let buffers = self.buffers(library, buffer_count)?;
        let known = known_buffers(&library.computation, &buffers);
        let launch = |kernels: &[Kernel], gpu: &dyn Gpu, stream| {
            // SAFETY: the kernels take these buffers, which are large enough.
            kernels.iter().try_for_each(|kernel| unsafe { kernel.launch(gpu, &buffers, stream) })
        };
        let kernel = |gpu: &dyn Gpu, stream| launch(own, gpu, stream);
        if self.known.is_empty() {
            // Warm up: an idle GPU has lower clocks.
            recoverable(self.measure(kernel))?;
        }
        let (mut best, mut chosen) = (recoverable(self.measure(kernel))?.unwrap_or(f64::INFINITY), None);
        for plan in plans {
            let Some(workspace) = recoverable(self.room(plan.workspace()))? else { continue };
            // SAFETY: buffers and workspace have the sizes that the plan requires.
            let compute = |stream| unsafe { plan.run(&known, workspace, stream) };
            let run = |gpu: &dyn Gpu, stream| compute(stream).and_then(|()| launch(then, gpu, stream));
            if let Some(micros) = recoverable(self.measure(run))?
                && micros < best
            {
                (best, chosen) = (micros, Some(plan));
            }
        }
        Ok((best, chosen))
    }

    /// Returns scratch memory for the buffers of any call.
    fn scratch(&mut self) -> CudaResult<Address> {
        if let Some(scratch) = &self.scratch {
            return Ok(scratch.address);
        }
        let memory = DeviceMemory::new(&self.gpu, self.room, &self.what).map_err(|_| CudaError::Memory)?;
        Ok(self.scratch.insert(memory).address)
    }

    /// Returns a workspace of at least this many bytes.
    fn room(&mut self, bytes: u64) -> CudaResult<Address> {
        match &self.workspace {
            Some((memory, size)) if *size >= bytes => Ok(memory.address),
            _ => {
                self.workspace = None;
                let memory = DeviceMemory::new(&self.gpu, bytes, "a workspace").map_err(|_| CudaError::Memory)?;
                let address = memory.address;
                self.workspace = Some((memory, bytes));
                Ok(address)
            }
        }
    }

    /// Measures the time of a run in µs, in a graph as in requests.
    fn measure(&self, run: impl Fn(&dyn Gpu, Stream) -> CudaResult<()>) -> CudaResult<f64> {
        let (gpu, stream) = (&*self.gpu, self.stream);
        // Libraries load code in the first run, which cannot be captured.
        run(gpu, stream)?;
        gpu.synchronize(stream)?;
        let graph = capture(gpu, stream, || (0..RUNS).try_for_each(|_| run(gpu, stream)))?;
        let time = || {
            gpu.record(self.begin, stream)?;
            gpu.launch_graph(graph, stream)?;
            gpu.record(self.end, stream)?;
            gpu.synchronize(stream)?;
            Ok(gpu.micros_between(self.begin, self.end)? / f64::from(RUNS))
        };
        // The first launch of a graph is slower and not counted.
        let best = time().and_then(|_| (0..ROUNDS).try_fold(f64::INFINITY, |best, _| Ok(time()?.min(best))));
        gpu.drop_graph(graph);
        best
    }
}

/// Converts recoverable errors, such as an unsupported algorithm, to `None`; a lost context stays an error.
fn recoverable<T>(outcome: CudaResult<T>) -> CudaResult<Option<T>> {
    match outcome {
        Ok(value) => Ok(Some(value)),
        Err(CudaError::Lost(text)) => Err(CudaError::Lost(text)),
        Err(_) => Ok(None),
    }
}

/// Returns offsets for the library's buffers, packed with alignment, and their total size.
fn extents(library: &LibraryCall) -> (Vec<u64>, u64) {
    let mut end = 0;
    let offsets = library.computation.buffer_bytes().into_iter().map(|bytes| {
        let begin = end;
        end += bytes.next_multiple_of(ALIGNMENT);
        begin
    });
    (offsets.collect(), end)
}
