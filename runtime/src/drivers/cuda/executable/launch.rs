//! Launches of stages on a GPU: replayed as graphs, measured task by task, or issued before all constants have arrived.

use super::{CudaExecutable, State, completion::WorkKind};
use crate::{
    bundle::Status,
    drivers::cuda::{
        driver::{Address, CudaError, CudaResult, try_capture},
        stage::{IssueContext, Stage, TaskTime, TaskTimer, scale_task_times},
        upload::Arrival,
    },
    error::{Error, Result},
    hal::{self, Executable, Launch, Owner, Queue},
};
use std::collections::hash_map::Entry;

/// Launch with the addresses of its buffers.
#[derive(Clone, Copy)]
struct Addressed<'a> {
    /// Step and slot, which determine the addresses.
    key: (usize, usize),
    owner: Owner,
    table: &'a [Address],
}

impl Executable for CudaExecutable {
    fn constant(&self, index: usize) -> Option<*mut u8> {
        self.constants.address(index).map(|address| std::ptr::without_provenance_mut(address as usize))
    }

    fn can_fail(&self, stage: usize) -> bool {
        self.stages.get(&stage).is_some_and(|stage| stage.can_fail)
    }

    /// Enqueues a stage. Waits for it if it can fail, is measured, or is part of a cold start.
    unsafe fn launch(&self, launch: &Launch<'_>) -> Result<Vec<hal::TaskTime>> {
        let Some(stage) = self.stages.get(&launch.stage) else { return Ok(vec![]) };
        let what = || format!("stage '{}'", stage.name);
        let mut state = self.enter().map_err(|problem| self.error(&what(), problem))?;
        let table: Vec<Address> = launch.buffers.iter().map(|pointer| pointer.addr() as Address).collect();
        let addressed = Addressed::new(launch, &table);
        let outcome = if state.image.is_some() {
            // SAFETY: guaranteed by the caller.
            unsafe { self.start_cold(stage, addressed, &mut state) }.map(|()| (0, vec![]))
        } else if let Some(now) = launch.clock {
            // SAFETY: guaranteed by the caller.
            unsafe { self.measure(stage, addressed, &mut state, now) }
        } else {
            // SAFETY: guaranteed by the caller.
            unsafe { self.replay(stage, addressed, &mut state) }.map(|()| (0, vec![]))
        };
        if outcome.is_ok() {
            self.add_running(launch.owner.slot, launch.stage);
        }
        let mut failed = |fault: CudaError| self.error(&what(), self.note_fault(&mut state, &fault));
        let (begin, times) = outcome.map_err(&mut failed)?;
        if stage.can_fail {
            self.gpu.synchronize(self.streams[0]).map_err(&mut failed)?;
            // SAFETY: the stage has completed, and its last operation copied the status to the host.
            let status = unsafe { self.status.host.pointer().cast::<i32>().read() };
            if let Some(problem) = Status::problem(status) {
                let (stage, problem) = (stage.name.clone(), problem.to_owned());
                return Err(Error::Failed { stage, task: String::new(), problem });
            }
        }
        let at = |micros: f64| begin + (micros * 1e3) as u64;
        let time =
            |time: TaskTime| hal::TaskTime { task: time.task, begin_ns: at(time.begin_us), end_ns: at(time.end_us) };
        Ok(times.into_iter().map(time).collect())
    }

    /// Captures a graph of a stage whose calls wait for their constants, because enqueuing calls one by one may take longer
    /// than the copies. The stage first runs once on zeros, so that the code of its kernels is loaded to the GPU.
    fn prepare_cold(&self, launch: &Launch<'_>) -> Result<()> {
        let Some(stage) = self.stages.get(&launch.stage) else { return Ok(()) };
        let error = |problem| self.error(&format!("stage '{}'", stage.name), problem);
        let mut state = self.enter().map_err(error)?;
        let table: Vec<Address> = launch.buffers.iter().map(|pointer| pointer.addr() as Address).collect();
        let prepared = self.capture_cold(stage, Addressed::new(launch, &table), &mut state);
        prepared.map_err(|fault| error(self.note_fault(&mut state, &fault)))
    }

    fn queue(&self) -> &dyn Queue {
        self
    }
}

impl<'a> Addressed<'a> {
    fn new(launch: &Launch<'_>, table: &'a [Address]) -> Self {
        // Launches always belong to a step.
        Self { key: (launch.owner.step.unwrap_or(0), launch.owner.slot), owner: launch.owner, table }
    }
}

impl CudaExecutable {
    /// Launches a stage as a graph, which is captured at its first launch.
    ///
    /// # Safety
    /// As for [`Executable::launch`].
    unsafe fn replay(&self, stage: &Stage, launch: Addressed<'_>, state: &mut State) -> CudaResult<()> {
        let (gpu, stream) = (&*self.gpu, self.streams[0]);
        let graph = match state.graphs.get(&launch.key) {
            Some(&graph) => graph,
            None => {
                // SAFETY: guaranteed by the caller.
                let issue = || unsafe { self.issue(stage, launch.table) };
                let graph = try_capture(gpu, stream, issue)?;
                *state.graphs.entry(launch.key).or_insert(graph)
            }
        };
        self.wait_on_stream(launch.owner.slot, WorkKind::Upload, stream)?;
        self.timed(launch.owner, stream, || match graph {
            Some(graph) => gpu.launch_graph(graph, stream),
            // SAFETY: guaranteed by the caller.
            None => unsafe { self.issue(stage, launch.table) },
        })?;
        self.record_completion(launch.owner.slot, WorkKind::Compute, stream)
    }

    /// Measures the tasks of a stage: runs its calls sequentially, with an event at the start of each task, in a graph if they
    /// can be captured, and then the stage as usual. The times of the tasks are scaled to the time of the latter.
    ///
    /// # Safety
    /// As for [`Executable::launch`].
    unsafe fn measure(
        &self,
        stage: &Stage,
        launch: Addressed<'_>,
        state: &mut State,
        now: &dyn Fn() -> u64,
    ) -> CudaResult<(u64, Vec<TaskTime>)> {
        let (gpu, stream, events) = (&*self.gpu, self.streams[0], &self.events);
        let entry = match state.measured.entry(launch.key) {
            Entry::Occupied(entry) => entry.into_mut(),
            Entry::Vacant(entry) => {
                let mut timer = TaskTimer::new(true);
                // SAFETY: guaranteed by the caller.
                let issue = || unsafe { self.issue_timed(stage, launch.table, &mut timer) };
                let graph = try_capture(gpu, stream, issue)?;
                entry.insert((graph, timer))
            }
        };
        self.wait_on_stream(launch.owner.slot, WorkKind::Upload, stream)?;
        TaskTimer::mark(gpu, stream, events)?;
        gpu.synchronize(stream)?;
        let begin = now();
        match entry {
            (Some(graph), _) => gpu.launch_graph(*graph, stream)?,
            (None, timer) => {
                *timer = TaskTimer::new(false);
                // SAFETY: guaranteed by the caller.
                unsafe { self.issue_timed(stage, launch.table, timer) }?;
            }
        }
        gpu.synchronize(stream)?;
        let times = entry.1.read(gpu, events)?;
        // Run twice and measure the second: the first run may include the capture, and keeps the GPU busy while the second is
        // enqueued, as in requests.
        // SAFETY: guaranteed by the caller; repeated runs compute the same results.
        unsafe { self.replay(stage, launch, state) }?;
        TaskTimer::mark(gpu, stream, events)?;
        // SAFETY: as above.
        unsafe { self.replay(stage, launch, state) }?;
        let whole = TaskTimer::since_mark(gpu, stream, events)?;
        Ok((begin, scale_task_times(times, whole)))
    }

    fn capture_cold(&self, stage: &Stage, launch: Addressed<'_>, state: &mut State) -> CudaResult<()> {
        // SAFETY: nothing else runs yet, and no request reads the results.
        unsafe { self.replay(stage, launch, state) }?;
        self.gpu.synchronize(self.streams[0])?;
        let Some(image) = &state.image else { return Ok(()) };
        let mut latest: Option<Arrival> = None;
        let mut await_constants = |newest| {
            let known = latest.map(|latest| latest.mark);
            let Some(arrival) = image.arrival(newest).filter(|arrival| Some(arrival.mark) > known) else {
                return Ok(());
            };
            latest = Some(arrival);
            self.gpu.wait_in_graph(self.streams[0], arrival.event)
        };
        let captured = try_capture(&*self.gpu, self.streams[0], || {
            await_constants(self.constants.newest_value())?;
            // SAFETY: nothing runs yet.
            unsafe { self.issue_sequentially(stage, launch.table, |_, newest| await_constants(newest)) }
        });
        if let Some(graph) = captured? {
            self.gpu.upload_graph(graph, self.streams[0])?;
            let is_last = latest.is_some_and(|latest| latest.is_last);
            state.cold.insert(launch.key, (graph, is_last));
        }
        Ok(())
    }

    /// Runs a stage during a cold start and waits for it.
    ///
    /// # Safety
    /// As for [`Executable::launch`].
    unsafe fn start_cold(&self, stage: &Stage, launch: Addressed<'_>, state: &mut State) -> CudaResult<()> {
        let stream = self.streams[0];
        self.wait_on_stream(launch.owner.slot, WorkKind::Upload, stream)?;
        let graph = state.cold.get(&launch.key).copied();
        self.timed(launch.owner, stream, || match graph {
            Some((graph, is_last)) => {
                self.send_constants(state)?;
                state.image.iter_mut().for_each(|image| image.expect(is_last));
                self.gpu.launch_graph(graph, stream)
            }
            None => {
                self.await_constants(state, self.constants.newest_value(), stream)?;
                let before = |_, newest| self.await_constants(state, newest, stream);
                // SAFETY: guaranteed by the caller.
                unsafe { self.issue_sequentially(stage, launch.table, before) }
            }
        })?;
        self.gpu.synchronize(stream)?;
        self.forget_image(state)
    }

    /// Enqueues a whole stage on the first stream. `before` is called as in [`Stage::issue_sequentially`].
    ///
    /// # Safety
    /// As for [`Executable::launch`].
    unsafe fn issue_sequentially(
        &self,
        stage: &Stage,
        table: &[Address],
        before: impl FnMut(usize, Option<usize>) -> CudaResult<()>,
    ) -> CudaResult<()> {
        self.clear_status(stage)?;
        // SAFETY: guaranteed by the caller; the workspace is large enough for any call.
        unsafe { stage.issue_sequentially(table, self.issue_context(), before) }?;
        self.fetch_status(stage)
    }

    /// Enqueues a whole stage on the first stream, with events between its tasks.
    ///
    /// # Safety
    /// As for [`Executable::launch`].
    unsafe fn issue_timed(&self, stage: &Stage, table: &[Address], timer: &mut TaskTimer) -> CudaResult<()> {
        let (gpu, stream, events) = (&*self.gpu, self.streams[0], &self.events);
        // SAFETY: guaranteed by the caller.
        unsafe { self.issue_sequentially(stage, table, |task, _| timer.begin(task, gpu, stream, events)) }?;
        timer.end(gpu, stream, events)
    }

    /// Enqueues a whole stage on its streams.
    ///
    /// # Safety
    /// As for [`Executable::launch`].
    unsafe fn issue(&self, stage: &Stage, table: &[Address]) -> CudaResult<()> {
        self.clear_status(stage)?;
        // SAFETY: guaranteed by the caller; the workspaces are large enough for any call.
        unsafe { stage.issue(table, self.issue_context()) }?;
        self.fetch_status(stage)
    }

    fn issue_context(&self) -> IssueContext<'_> {
        IssueContext {
            gpu: &*self.gpu,
            streams: &self.streams,
            workspaces: &self.workspaces,
            events: &self.events,
            window: self.window.as_ref(),
        }
    }

    fn clear_status(&self, stage: &Stage) -> CudaResult<()> {
        if !stage.can_fail {
            return Ok(());
        }
        // SAFETY: only the running stage accesses the status.
        unsafe { self.gpu.zero(self.status.address(), 4, self.streams[0]) }
    }

    fn fetch_status(&self, stage: &Stage) -> CudaResult<()> {
        if !stage.can_fail {
            return Ok(());
        }
        // SAFETY: as above.
        unsafe { self.gpu.copy_to_host(self.status.host.pointer(), self.status.address(), 4, self.streams[0]) }
    }
}
