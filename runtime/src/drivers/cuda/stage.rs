//! A stage as a GPU runs it.

use super::{
    chains::{Place, places},
    choice::Chooser,
    driver::{Address, Event, Function, Gpu, Grid, Outcome, Plan, Stream},
    executable::{Module, Shared},
    launch::{Launch, Library, Then},
    memory::DeviceMemory,
    upload::Upload,
    window::{Visit, Window},
};
use crate::bundle::{self, Buffer};
use std::{ops::Range, sync::Arc};

pub(crate) struct Stage {
    pub(crate) name: String,
    calls: Vec<Call>,
    /// How many streams it needs.
    pub(crate) chains: usize,
    pub(crate) can_fail: bool,
    /// The largest that one of its calls needs.
    pub(crate) workspace: u64,
    /// What comes to the window before each call, if there is one.
    visits: Option<Vec<Visit>>,
}

/// Where the calls of a stage run.
#[derive(Clone, Copy)]
pub(crate) struct Lanes<'a> {
    pub(crate) gpu: &'a dyn Gpu,
    pub(crate) streams: &'a [Stream],
    /// One for each chain.
    pub(crate) workspaces: &'a [DeviceMemory],
    pub(crate) events: &'a Events,
    pub(crate) window: Option<&'a Window>,
}

struct Call {
    /// A library's way, which comes before the kernels.
    plan: Option<(Arc<dyn Plan>, Library)>,
    kernels: Vec<Kernel>,
    task: usize,
    /// The last of its constants, in the order of the upload.
    newest: Option<usize>,
    /// Which part of the launch's table its buffers are.
    buffers: Range<usize>,
    place: Place,
}

/// A kernel that is launched on all buffers of a call.
pub(crate) struct Kernel {
    function: Function,
    grid: Grid,
    /// What comes behind the buffers.
    rest: Vec<u64>,
}

impl Kernel {
    fn of(then: &Then, module: &Module) -> crate::Result<Self> {
        let grid = Grid { blocks: then.blocks, threads: then.threads };
        Ok(Self { function: module.function(&then.kernel)?, grid, rest: vec![then.extent.cast_unsigned()] })
    }

    /// # Safety
    /// The buffers are those that the compiler wrote the kernel for.
    pub(crate) unsafe fn launch(&self, gpu: &dyn Gpu, buffers: &[Address], stream: Stream) -> Outcome<()> {
        let arguments: Vec<u64> = buffers.iter().chain(&self.rest).copied().collect();
        // SAFETY: the caller's.
        unsafe { gpu.launch(self.function, self.grid, &arguments, stream) }
    }
}

/// The buffers that a library knows of those of a call: the first ones, and the last.
pub(crate) fn known_buffers(way: &Library, buffers: &[Address]) -> Vec<Address> {
    let count = way.buffer_bytes().len().saturating_sub(1);
    buffers[..count].iter().chain(buffers.last()).copied().collect()
}

/// Events that stages need while they are issued.
pub(crate) struct Events {
    fork: Event,
    joins: Vec<Event>,
    /// For calls that others wait for.
    of_calls: Vec<Event>,
    /// For constants that calls wait for.
    of_visits: Vec<Event>,
    /// The time that tasks are measured from, and their beginnings. What was part of a capture has no time, so these are none
    /// of the others.
    mark: Event,
    of_tasks: Vec<Event>,
}

impl Events {
    pub(crate) fn new(gpu: &dyn Gpu, chains: usize, calls: usize, visits: usize) -> Outcome<Self> {
        let joins = (0..chains).map(|_| gpu.event()).collect::<Outcome<_>>()?;
        let of_calls = (0..calls).map(|_| gpu.event()).collect::<Outcome<_>>()?;
        let of_visits = (0..visits).map(|_| gpu.event()).collect::<Outcome<_>>()?;
        let of_tasks = (0..=calls).map(|_| gpu.event()).collect::<Outcome<_>>()?;
        Ok(Self { fork: gpu.event()?, joins, of_calls, of_visits, mark: gpu.event()?, of_tasks })
    }
}

/// When a task ran: microseconds since the stage began.
pub(crate) struct TaskTime {
    pub(crate) task: usize,
    pub(crate) begin_us: f64,
    pub(crate) end_us: f64,
}

impl Stage {
    /// Finds the functions of a stage with the launches of its calls, and chooses between them and libraries.
    pub(crate) fn plan(
        (stage, launches): (&bundle::Stage, &[Launch]),
        module: &Module,
        shared: &Shared,
        (constants, window): (&Upload, Option<&Window>),
        chooser: &mut Chooser<'_>,
    ) -> crate::Result<Self> {
        let after: Vec<&[usize]> = stage.calls.iter().map(|call| &call.after[..]).collect();
        let mut planned = Self {
            name: stage.name.clone(),
            calls: Vec::with_capacity(stage.calls.len()),
            chains: 1,
            can_fail: false,
            workspace: 0,
            visits: window.map(|window| window.visits(stage)).transpose()?,
        };
        let mut first = 0;
        for ((call, launch), place) in stage.calls.iter().zip(launches).zip(places(&after)) {
            let Launch { blocks, threads, .. } = *launch;
            let first_kernel = Then { kernel: call.kernel.clone(), blocks, threads, extent: call.extent };
            let of = |then: &Then| Kernel::of(then, module);
            let mut kernels =
                std::iter::once(&first_kernel).chain(&launch.then).map(of).collect::<crate::Result<Vec<_>>>()?;
            kernels[0].rest.extend(launch.can_fail.then_some(shared.status()));
            let mut plan = None;
            if let Some(library) = &launch.library {
                let then = library.then.iter().map(of).collect::<crate::Result<Vec<_>>>()?;
                let chosen = chooser.choose((call, launch), library, [&kernels, &then], alignment(&call.buffers));
                plan = chosen.map_err(|fault| {
                    let what = format!("stage '{}', kernel '{}', trying a library", stage.name, call.kernel);
                    crate::Error::Device { what, problem: fault.to_string() }
                })?;
                if plan.is_some() {
                    kernels = then;
                }
            }
            let known = plan.as_ref().and(launch.library.as_ref()).map(|library| library.way.clone());
            let newest = call.constants().filter_map(|it| constants.rank(it)).max();
            let buffers = first..first + call.buffers.len();
            first = buffers.end;
            planned.chains = planned.chains.max(place.chain + 1);
            planned.can_fail |= launch.can_fail;
            planned.workspace = planned.workspace.max(plan.as_ref().map_or(0, |plan| plan.workspace()));
            planned.calls.push(Call { plan: plan.zip(known), kernels, task: call.task, newest, buffers, place });
        }
        Ok(planned)
    }

    pub(crate) fn call_count(&self) -> usize {
        self.calls.len()
    }

    /// Puts all calls on streams. What is on the first stream later comes after all of them.
    ///
    /// # Safety
    /// The table has the addresses of all buffers of the stage; workspaces are long enough.
    pub(crate) unsafe fn issue(&self, table: &[Address], lanes: Lanes<'_>) -> Outcome<()> {
        let Lanes { gpu, streams, workspaces, events, window } = lanes;
        if let Some((window, visits)) = window.zip(self.visits.as_ref()) {
            // SAFETY: the caller's.
            return unsafe { self.issue_through(window, visits, table, lanes) };
        }
        let mut has_begun = [false; super::chains::CHAINS];
        if self.chains > 1 {
            gpu.record(events.fork, streams[0])?;
        }
        for (index, call) in self.calls.iter().enumerate() {
            let chain = call.place.chain;
            let stream = streams[chain];
            if !std::mem::replace(&mut has_begun[chain], true) && chain > 0 {
                gpu.wait(stream, events.fork)?;
            }
            for &other in &call.place.waits {
                gpu.wait(stream, events.of_calls[other])?;
            }
            // SAFETY: the caller's.
            unsafe { call.issue(gpu, &table[call.buffers.clone()], stream, workspaces[chain].address) }?;
            if call.place.is_awaited {
                gpu.record(events.of_calls[index], stream)?;
            }
        }
        for chain in 1..self.chains {
            gpu.record(events.joins[chain], streams[chain])?;
            gpu.wait(streams[0], events.joins[chain])?;
        }
        Ok(())
    }

    /// The same where constants pass through a window: calls are on the first stream, constants come on the second.
    ///
    /// # Safety
    /// As above.
    unsafe fn issue_through(
        &self,
        window: &Window,
        visits: &[Visit],
        table: &[Address],
        lanes: Lanes<'_>,
    ) -> Outcome<()> {
        let Lanes { gpu, streams: &[stream, copies, ..], workspaces, events, .. } = lanes else { return Ok(()) };
        gpu.record(events.fork, stream)?;
        gpu.wait(copies, events.fork)?;
        for (index, (call, visit)) in self.calls.iter().zip(visits).enumerate() {
            if let Some(reader) = visit.after {
                gpu.wait(copies, events.of_calls[reader])?;
            }
            // SAFETY: whoever reads what was there is done.
            if unsafe { window.bring(gpu, visit, copies) }? {
                gpu.record(events.of_visits[index], copies)?;
                gpu.wait(stream, events.of_visits[index])?;
            }
            let buffers = window.buffers(&table[call.buffers.clone()], visit);
            // SAFETY: the caller's; constants are where the visit says.
            unsafe { call.issue(gpu, &buffers, stream, workspaces[0].address) }?;
            gpu.record(events.of_calls[index], stream)?;
        }
        // The last copies are done, since calls have waited for them; a capture wants to be told.
        gpu.record(events.joins[0], copies)?;
        gpu.wait(stream, events.joins[0])
    }

    /// Puts all calls on the first stream, one after the other. Before each, the caller is told its task and the last of its
    /// constants.
    ///
    /// # Safety
    /// As above.
    pub(crate) unsafe fn issue_one_by_one(
        &self,
        table: &[Address],
        lanes: Lanes<'_>,
        mut before: impl FnMut(usize, Option<usize>) -> Outcome<()>,
    ) -> Outcome<()> {
        let Lanes { gpu, streams, workspaces, window, .. } = lanes;
        let (stream, workspace) = (streams[0], workspaces[0].address);
        for (index, call) in self.calls.iter().enumerate() {
            before(call.task, call.newest)?;
            let buffers = &table[call.buffers.clone()];
            match window.zip(self.visits.as_ref().map(|visits| &visits[index])) {
                None => {
                    // SAFETY: the caller's.
                    unsafe { call.issue(gpu, buffers, stream, workspace) }?;
                }
                Some((window, visit)) => {
                    // SAFETY: on one stream, whatever comes before is done.
                    unsafe { window.bring(gpu, visit, stream) }?;
                    // SAFETY: the caller's; constants are where the visit says.
                    unsafe { call.issue(gpu, &window.buffers(buffers, visit), stream, workspace) }?;
                }
            }
        }
        Ok(())
    }
}

/// Measures tasks by events between them.
#[derive(Default)]
pub(crate) struct Stopwatch {
    tasks: Vec<usize>,
}

impl Stopwatch {
    /// A task begins, or goes on, in a capture.
    pub(crate) fn begin(&mut self, task: usize, gpu: &dyn Gpu, stream: Stream, events: &Events) -> Outcome<()> {
        if self.tasks.last() == Some(&task) {
            return Ok(());
        }
        gpu.record_in_graph(events.of_tasks[self.tasks.len()], stream)?;
        self.tasks.push(task);
        Ok(())
    }

    /// The last task ends, in a capture.
    pub(crate) fn end(&self, gpu: &dyn Gpu, stream: Stream, events: &Events) -> Outcome<()> {
        gpu.record_in_graph(events.of_tasks[self.tasks.len()], stream)
    }

    /// Marks the time that is measured from: when everything on the stream is done.
    pub(crate) fn mark(gpu: &dyn Gpu, stream: Stream, events: &Events) -> Outcome<()> {
        gpu.record(events.mark, stream)
    }

    /// Microseconds since the mark, when everything on the stream is done. Tasks cannot be read any more then.
    pub(crate) fn since_mark(gpu: &dyn Gpu, stream: Stream, events: &Events) -> Outcome<f64> {
        let end = events.of_tasks[0];
        gpu.record(end, stream)?;
        gpu.finish(stream)?;
        gpu.micros_between(events.mark, end)
    }

    /// When tasks ran, all of which are done, since the mark.
    pub(crate) fn read(&self, gpu: &dyn Gpu, events: &Events) -> Outcome<Vec<TaskTime>> {
        let at = |event: usize| gpu.micros_between(events.mark, events.of_tasks[event]);
        let time = |(index, &task)| Ok(TaskTime { task, begin_us: at(index)?, end_us: at(index + 1)? });
        self.tasks.iter().enumerate().map(time).collect()
    }
}

/// The least share of what was measured of a task that it keeps.
const LEAST_SHARE: f64 = 0.1;

/// Tasks one behind the other that take as long as the stage does without events between them: an event takes about as long as a
/// small kernel, and calls that do not wait for each other share the GPU.
pub(crate) fn fitted(times: Vec<TaskTime>, whole_us: f64) -> Vec<TaskTime> {
    let measured: f64 = times.iter().map(|time| time.end_us - time.begin_us).sum();
    let surplus = ((measured - whole_us) / times.len().max(1) as f64).max(0.0);
    let shares = times.iter().map(|time| {
        let took = time.end_us - time.begin_us;
        (took - surplus).max(took * LEAST_SHARE)
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
    unsafe fn issue(&self, gpu: &dyn Gpu, buffers: &[Address], stream: Stream, workspace: Address) -> Outcome<()> {
        if let Some((plan, way)) = &self.plan {
            // SAFETY: the caller's.
            unsafe { plan.run(&known_buffers(way, buffers), workspace, stream) }?;
        }
        // SAFETY: the compiler wrote the kernels for these buffers.
        self.kernels.iter().try_for_each(|kernel| unsafe { kernel.launch(gpu, buffers, stream) })
    }
}

/// What the addresses of a call's buffers are multiples of. All but those in the arena are values and constants by themselves.
fn alignment(buffers: &[Buffer]) -> u64 {
    let of = |buffer: &Buffer| match buffer {
        Buffer::Arena(offset) if *offset > 0 => 1 << offset.trailing_zeros().min(6),
        _ => bundle::ALIGNMENT,
    };
    buffers.iter().map(of).min().unwrap_or(bundle::ALIGNMENT)
}
