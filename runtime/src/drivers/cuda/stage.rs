//! Stage on a GPU: its kernels and library calls, and their order on streams.

use super::{
    benchmark::AlgorithmSelector,
    chains::{StreamAssignment, assign_streams},
    driver::{Address, CudaResult, Event, Function, Gpu, Grid, Plan, Stream},
    executable::{KernelStatus, Module},
    launch::{FollowUpKernel, Launch, LibraryOp},
    memory::DeviceMemory,
    upload::DeviceConstants,
    window::{Prefetch, Window},
};
use crate::bundle::{self, Buffer};
use std::{ops::Range, sync::Arc};

/// Stage on a GPU.
pub(crate) struct Stage {
    pub(crate) name: String,
    calls: Vec<Call>,
    /// Number of streams that it uses.
    pub(crate) chains: usize,
    pub(crate) can_fail: bool,
    /// Maximum workspace of its calls in bytes.
    pub(crate) workspace: u64,
    /// By call: the copies into the window that precede it; `Some` if constants are streamed.
    prefetches: Option<Vec<Prefetch>>,
}

/// Streams, workspaces and events on which the calls of a stage are issued.
#[derive(Clone, Copy)]
pub(crate) struct IssueContext<'a> {
    pub(crate) gpu: &'a dyn Gpu,
    pub(crate) streams: &'a [Stream],
    /// One per chain.
    pub(crate) workspaces: &'a [DeviceMemory],
    pub(crate) events: &'a Events,
    pub(crate) window: Option<&'a Window>,
}

/// Call of a stage.
struct Call {
    /// Library call that precedes the kernels.
    plan: Option<(Arc<dyn Plan>, LibraryOp)>,
    kernels: Vec<Kernel>,
    task: usize,
    /// Maximum position of its constants in the order of the upload.
    newest: Option<usize>,
    /// Range of its buffers in the launch's table.
    buffers: Range<usize>,
    assignment: StreamAssignment,
}

/// Kernel launched on all buffers of a call.
pub(crate) struct Kernel {
    function: Function,
    grid: Grid,
    /// Arguments after the buffers: the extent and, if the kernel can fail, the address of the status.
    rest: Vec<u64>,
}

impl Kernel {
    fn of(then: &FollowUpKernel, module: &Module) -> crate::Result<Self> {
        let grid = Grid { blocks: then.blocks, threads: then.threads };
        Ok(Self { function: module.function(&then.kernel)?, grid, rest: vec![then.extent.cast_unsigned()] })
    }

    /// Enqueues the kernel.
    ///
    /// # Safety
    /// The kernel was compiled for these buffers.
    pub(crate) unsafe fn launch(&self, gpu: &dyn Gpu, buffers: &[Address], stream: Stream) -> CudaResult<()> {
        let arguments: Vec<u64> = buffers.iter().chain(&self.rest).copied().collect();
        // SAFETY: guaranteed by the caller.
        unsafe { gpu.launch(self.function, self.grid, &arguments, stream) }
    }
}

/// Returns the buffers of a call that the library accesses: the first ones, and the last one as its output.
pub(crate) fn known_buffers(computation: &LibraryOp, buffers: &[Address]) -> Vec<Address> {
    let count = computation.buffer_bytes().len().saturating_sub(1);
    buffers[..count].iter().chain(buffers.last()).copied().collect()
}

/// Events for issuing and measuring stages, shared by all stages of a device.
pub(crate) struct Events {
    fork: Event,
    /// By chain.
    joins: Vec<Event>,
    /// By call: completion.
    of_calls: Vec<Event>,
    /// By call: arrival of its constants in the window.
    of_prefetches: Vec<Event>,
    /// Origin of the measured times. Timing events are separate, because events recorded in a capture have no time.
    mark: Event,
    /// Starts of tasks, and the end of the last one.
    of_tasks: Vec<Event>,
}

impl Events {
    pub(crate) fn new(gpu: &dyn Gpu, chains: usize, calls: usize, prefetches: usize) -> CudaResult<Self> {
        let joins = (0..chains).map(|_| gpu.event()).collect::<CudaResult<_>>()?;
        let of_calls = (0..calls).map(|_| gpu.event()).collect::<CudaResult<_>>()?;
        let of_prefetches = (0..prefetches).map(|_| gpu.event()).collect::<CudaResult<_>>()?;
        let of_tasks = (0..=calls).map(|_| gpu.event()).collect::<CudaResult<_>>()?;
        Ok(Self { fork: gpu.event()?, joins, of_calls, of_prefetches, mark: gpu.event()?, of_tasks })
    }
}

/// Time of a task, in µs since [`TaskTimer::mark`].
pub(crate) struct TaskTime {
    pub(crate) task: usize,
    pub(crate) begin_us: f64,
    pub(crate) end_us: f64,
}

impl Stage {
    /// Loads the kernels of a stage and chooses between them and library algorithms. `launches` are those of its calls.
    pub(crate) fn plan(
        (stage, launches): (&bundle::Stage, &[Launch]),
        module: &Module,
        status: &KernelStatus,
        (constants, window): (&DeviceConstants, Option<&Window>),
        selector: &mut AlgorithmSelector<'_>,
    ) -> crate::Result<Self> {
        let after: Vec<&[usize]> = stage.calls.iter().map(|call| &call.after[..]).collect();
        let mut planned = Self {
            name: stage.name.clone(),
            calls: Vec::with_capacity(stage.calls.len()),
            chains: 1,
            can_fail: false,
            workspace: 0,
            prefetches: window.map(|window| window.prefetches(stage)).transpose()?,
        };
        let mut first = 0;
        for ((call, launch), assignment) in stage.calls.iter().zip(launches).zip(assign_streams(&after)) {
            let Launch { blocks, threads, .. } = *launch;
            let first_kernel = FollowUpKernel { kernel: call.kernel.clone(), blocks, threads, extent: call.extent };
            let of = |then: &FollowUpKernel| Kernel::of(then, module);
            let mut kernels =
                std::iter::once(&first_kernel).chain(&launch.then).map(of).collect::<crate::Result<Vec<_>>>()?;
            kernels[0].rest.extend(launch.can_fail.then_some(status.address()));
            let mut plan = None;
            if let Some(library) = &launch.library {
                let then = library.then.iter().map(of).collect::<crate::Result<Vec<_>>>()?;
                let chosen = selector.choose((call, launch), library, [&kernels, &then], alignment(&call.buffers));
                plan = chosen.map_err(|fault| {
                    let what = format!("stage '{}', kernel '{}', benchmarking a library", stage.name, call.kernel);
                    crate::Error::Device { what, problem: fault.to_string() }
                })?;
                if plan.is_some() {
                    kernels = then;
                }
            }
            let known = plan.as_ref().and(launch.library.as_ref()).map(|library| library.computation.clone());
            let newest = call.constants().filter_map(|it| constants.rank(it)).max();
            let buffers = first..first + call.buffers.len();
            first = buffers.end;
            planned.chains = planned.chains.max(assignment.chain + 1);
            planned.can_fail |= launch.can_fail;
            planned.workspace = planned.workspace.max(plan.as_ref().map_or(0, |plan| plan.workspace()));
            planned.calls.push(Call { plan: plan.zip(known), kernels, task: call.task, newest, buffers, assignment });
        }
        Ok(planned)
    }

    pub(crate) fn call_count(&self) -> usize {
        self.calls.len()
    }

    /// Enqueues all calls on their streams. Later work on the first stream is ordered after all of them.
    ///
    /// # Safety
    /// The table has the addresses of all buffers of the stage; workspaces are large enough.
    pub(crate) unsafe fn issue(&self, table: &[Address], context: IssueContext<'_>) -> CudaResult<()> {
        let IssueContext { gpu, streams, workspaces, events, window } = context;
        if let Some((window, prefetches)) = window.zip(self.prefetches.as_ref()) {
            // SAFETY: guaranteed by the caller.
            return unsafe { self.issue_streamed(window, prefetches, table, context) };
        }
        let mut is_forked = [false; super::chains::CHAINS];
        if self.chains > 1 {
            gpu.record(events.fork, streams[0])?;
        }
        for (index, call) in self.calls.iter().enumerate() {
            let chain = call.assignment.chain;
            let stream = streams[chain];
            if !std::mem::replace(&mut is_forked[chain], true) && chain > 0 {
                gpu.wait(stream, events.fork)?;
            }
            for &other in &call.assignment.waits {
                gpu.wait(stream, events.of_calls[other])?;
            }
            // SAFETY: guaranteed by the caller.
            unsafe { call.issue(gpu, &table[call.buffers.clone()], stream, workspaces[chain].address) }?;
            if call.assignment.is_awaited {
                gpu.record(events.of_calls[index], stream)?;
            }
        }
        for chain in 1..self.chains {
            gpu.record(events.joins[chain], streams[chain])?;
            gpu.wait(streams[0], events.joins[chain])?;
        }
        Ok(())
    }

    /// As [`Stage::issue`] with streamed constants: calls run on the first stream, copies of constants on the second.
    ///
    /// # Safety
    /// As above.
    unsafe fn issue_streamed(
        &self,
        window: &Window,
        prefetches: &[Prefetch],
        table: &[Address],
        context: IssueContext<'_>,
    ) -> CudaResult<()> {
        let IssueContext { gpu, streams: &[stream, copies, ..], workspaces, events, .. } = context else {
            return Ok(());
        };
        gpu.record(events.fork, stream)?;
        gpu.wait(copies, events.fork)?;
        for (index, (call, prefetch)) in self.calls.iter().zip(prefetches).enumerate() {
            if let Some(reader) = prefetch.after {
                gpu.wait(copies, events.of_calls[reader])?;
            }
            // SAFETY: the copies wait for the last reader of the overwritten constants.
            if unsafe { window.issue_prefetch(gpu, prefetch, copies) }? {
                gpu.record(events.of_prefetches[index], copies)?;
                gpu.wait(stream, events.of_prefetches[index])?;
            }
            let buffers = window.buffers(&table[call.buffers.clone()], prefetch);
            // SAFETY: guaranteed by the caller; the prefetch has the addresses of constants.
            unsafe { call.issue(gpu, &buffers, stream, workspaces[0].address) }?;
            gpu.record(events.of_calls[index], stream)?;
        }
        // The calls have waited for all copies, but a capture requires that forked streams are joined.
        gpu.record(events.joins[0], copies)?;
        gpu.wait(stream, events.joins[0])
    }

    /// Enqueues all calls on the first stream. `before` is called before each of them with its task and the maximum position
    /// of its constants in the upload.
    ///
    /// # Safety
    /// As above.
    pub(crate) unsafe fn issue_sequentially(
        &self,
        table: &[Address],
        context: IssueContext<'_>,
        mut before: impl FnMut(usize, Option<usize>) -> CudaResult<()>,
    ) -> CudaResult<()> {
        let IssueContext { gpu, streams, workspaces, window, .. } = context;
        let (stream, workspace) = (streams[0], workspaces[0].address);
        for (index, call) in self.calls.iter().enumerate() {
            before(call.task, call.newest)?;
            let buffers = &table[call.buffers.clone()];
            match window.zip(self.prefetches.as_ref().map(|prefetches| &prefetches[index])) {
                None => {
                    // SAFETY: guaranteed by the caller.
                    unsafe { call.issue(gpu, buffers, stream, workspace) }?;
                }
                Some((window, prefetch)) => {
                    // SAFETY: earlier readers are ordered before the copies on the same stream.
                    unsafe { window.issue_prefetch(gpu, prefetch, stream) }?;
                    // SAFETY: guaranteed by the caller; the prefetch has the addresses of constants.
                    unsafe { call.issue(gpu, &window.buffers(buffers, prefetch), stream, workspace) }?;
                }
            }
        }
        Ok(())
    }
}

/// Measurement of tasks by events between them.
pub(crate) struct TaskTimer {
    /// Tasks in order of their events.
    tasks: Vec<usize>,
    /// True if the events are recorded in a capture.
    is_captured: bool,
}

impl TaskTimer {
    pub(crate) fn new(is_captured: bool) -> Self {
        Self { tasks: vec![], is_captured }
    }

    /// Records the start of a task, unless the task is already running.
    pub(crate) fn begin(&mut self, task: usize, gpu: &dyn Gpu, stream: Stream, events: &Events) -> CudaResult<()> {
        if self.tasks.last() == Some(&task) {
            return Ok(());
        }
        self.record(gpu, stream, events)?;
        self.tasks.push(task);
        Ok(())
    }

    /// Records the end of the last task.
    pub(crate) fn end(&self, gpu: &dyn Gpu, stream: Stream, events: &Events) -> CudaResult<()> {
        self.record(gpu, stream, events)
    }

    /// Records the next event.
    fn record(&self, gpu: &dyn Gpu, stream: Stream, events: &Events) -> CudaResult<()> {
        let event = events.of_tasks[self.tasks.len()];
        if self.is_captured { gpu.record_in_graph(event, stream) } else { gpu.record(event, stream) }
    }

    /// Records the origin of the measured times on a stream.
    pub(crate) fn mark(gpu: &dyn Gpu, stream: Stream, events: &Events) -> CudaResult<()> {
        gpu.record(events.mark, stream)
    }

    /// Waits for the stream and returns the time since the mark in µs. Reuses an event of the tasks, so these cannot be read
    /// afterwards.
    pub(crate) fn since_mark(gpu: &dyn Gpu, stream: Stream, events: &Events) -> CudaResult<f64> {
        let end = events.of_tasks[0];
        gpu.record(end, stream)?;
        gpu.synchronize(stream)?;
        gpu.micros_between(events.mark, end)
    }

    /// Returns the times of the tasks, all of which have completed.
    pub(crate) fn read(&self, gpu: &dyn Gpu, events: &Events) -> CudaResult<Vec<TaskTime>> {
        let at = |event: usize| gpu.micros_between(events.mark, events.of_tasks[event]);
        let time = |(index, &task)| Ok(TaskTime { task, begin_us: at(index)?, end_us: at(index + 1)? });
        self.tasks.iter().enumerate().map(time).collect()
    }
}

/// Minimum fraction of a task's measured time that remains after the correction.
const LEAST_SHARE: f64 = 0.1;

/// Scales the times of tasks so that they add up to the time of the stage without events (`whole_us`), back to back: an event
/// takes about as long as a small kernel, and independent calls overlap on the GPU. First, the surplus is subtracted equally;
/// then the rest is scaled down.
pub(crate) fn scale_task_times(times: Vec<TaskTime>, whole_us: f64) -> Vec<TaskTime> {
    let measured: f64 = times.iter().map(|time| time.end_us - time.begin_us).sum();
    let surplus = ((measured - whole_us) / times.len().max(1) as f64).max(0.0);
    let shares = times.iter().map(|time| {
        let duration = time.end_us - time.begin_us;
        (duration - surplus).max(duration * LEAST_SHARE)
    });
    let shares: Vec<f64> = shares.collect();
    let factor = (whole_us / shares.iter().sum::<f64>()).min(1.0);
    let mut at = times.first().map_or(0.0, |time| time.begin_us);
    let mut next = |(time, share): (&TaskTime, &f64)| {
        let begin_us = at;
        at += share * if factor.is_finite() { factor } else { 1.0 };
        TaskTime { task: time.task, begin_us, end_us: at }
    };
    times.iter().zip(&shares).map(&mut next).collect()
}

impl Call {
    /// # Safety
    /// As for [`Stage::issue`].
    unsafe fn issue(&self, gpu: &dyn Gpu, buffers: &[Address], stream: Stream, workspace: Address) -> CudaResult<()> {
        if let Some((plan, computation)) = &self.plan {
            // SAFETY: guaranteed by the caller.
            unsafe { plan.run(&known_buffers(computation, buffers), workspace, stream) }?;
        }
        // SAFETY: the kernels were compiled for these buffers.
        self.kernels.iter().try_for_each(|kernel| unsafe { kernel.launch(gpu, buffers, stream) })
    }
}

/// Returns the common alignment of a call's buffers in bytes. All but those in the arena are aligned values and constants.
fn alignment(buffers: &[Buffer]) -> u64 {
    let of = |buffer: &Buffer| match buffer {
        Buffer::Arena(offset) if *offset > 0 => 1 << offset.trailing_zeros().min(6),
        _ => bundle::ALIGNMENT,
    };
    buffers.iter().map(of).min().unwrap_or(bundle::ALIGNMENT)
}
