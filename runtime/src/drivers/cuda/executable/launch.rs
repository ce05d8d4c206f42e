//! Stages on a GPU: replayed as graphs, but where they are measured, or constants are not there yet.

use super::{CudaExecutable, State, moments::Moment};
use crate::{
    bundle::Status,
    drivers::cuda::{
        driver::{Address, Fault, Outcome, capture},
        stage::{Lanes, Stage, Stopwatch, TaskTime, fitted},
        upload::Arrival,
    },
    error::{Error, Result},
    hal::{self, Executable, Launch, Owner, Queue},
};
use std::collections::hash_map::Entry;

/// A launch with the addresses of its buffers, and the step and slot that these are always the same for.
#[derive(Clone, Copy)]
struct Addressed<'a> {
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

    /// Waits for a stage if it can fail, is measured, or waits for constants itself.
    unsafe fn launch(&self, launch: &Launch<'_>) -> Result<Vec<hal::TaskTime>> {
        let Some(stage) = self.stages.get(&launch.stage) else { return Ok(vec![]) };
        let what = || format!("stage '{}'", stage.name);
        let mut state = self.enter().map_err(|problem| self.error(&what(), problem))?;
        let table: Vec<Address> = launch.buffers.iter().map(|pointer| pointer.addr() as Address).collect();
        let addressed = Addressed::new(launch, &table);
        let outcome = if state.image.is_some() {
            // SAFETY: the caller's.
            unsafe { self.start_cold(stage, addressed, &mut state) }.map(|()| (0, vec![]))
        } else if let Some(now) = launch.clock {
            // SAFETY: the caller's.
            unsafe { self.measure(stage, addressed, &mut state, now) }
        } else {
            // SAFETY: the caller's.
            unsafe { self.replay(stage, addressed, &mut state) }.map(|()| (0, vec![]))
        };
        if outcome.is_ok() {
            self.note(launch.owner.slot, launch.stage);
        }
        let mut failed = |fault: Fault| self.error(&what(), self.failed(&mut state, &fault));
        let (begin, times) = outcome.map_err(&mut failed)?;
        if stage.can_fail {
            self.gpu.finish(self.streams[0]).map_err(&mut failed)?;
            // SAFETY: the stage is done, which copied the number there.
            let status = unsafe { self.shared.here.pointer().cast::<i32>().read() };
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

    /// Makes a graph of a stage whose calls wait for their constants, for a request that comes before those: to tell the GPU of one
    /// call after the other may take longer than copies do. The stage is run once before, on zeros: at the first run of a kernel,
    /// its code has to get to the GPU.
    fn prepare_cold(&self, launch: &Launch<'_>) -> Result<()> {
        let Some(stage) = self.stages.get(&launch.stage) else { return Ok(()) };
        let error = |problem| self.error(&format!("stage '{}'", stage.name), problem);
        let mut state = self.enter().map_err(error)?;
        let table: Vec<Address> = launch.buffers.iter().map(|pointer| pointer.addr() as Address).collect();
        let prepared = self.capture_cold(stage, Addressed::new(launch, &table), &mut state);
        prepared.map_err(|fault| error(self.failed(&mut state, &fault)))
    }

    fn queue(&self) -> &dyn Queue {
        self
    }
}

impl<'a> Addressed<'a> {
    fn new(launch: &Launch<'_>, table: &'a [Address]) -> Self {
        // Launches are always a step's.
        Self { key: (launch.owner.step.unwrap_or(0), launch.owner.slot), owner: launch.owner, table }
    }
}

impl CudaExecutable {
    /// Has a stage run as a graph, which is made at its first launch.
    ///
    /// # Safety
    /// As for [`Executable::launch`].
    unsafe fn replay(&self, stage: &Stage, launch: Addressed<'_>, state: &mut State) -> Outcome<()> {
        let (gpu, stream) = (&*self.gpu, self.streams[0]);
        let graph = match state.graphs.get(&launch.key) {
            Some(&graph) => graph,
            None => {
                // SAFETY: the caller's.
                let issue = || unsafe { self.issue(stage, launch.table) };
                let graph = match capture(gpu, stream, issue) {
                    Ok(graph) => Some(graph),
                    Err(Fault::Lost(text)) => return Err(Fault::Lost(text)),
                    // It can still be issued as it is, and what is wrong with it comes to light then.
                    Err(_) => None,
                };
                *state.graphs.entry(launch.key).or_insert(graph)
            }
        };
        self.follow(launch.owner.slot, Moment::Arrived, stream)?;
        self.timed(launch.owner, stream, || match graph {
            Some(graph) => gpu.launch_graph(graph, stream),
            // SAFETY: the caller's.
            None => unsafe { self.issue(stage, launch.table) },
        })?;
        self.mark(launch.owner.slot, Moment::Computed, stream)
    }

    /// Runs a stage one call after the other, as a graph with an event at each task's beginning, and then as it is run else: what
    /// tasks took in between is fitted to what all of it takes.
    ///
    /// # Safety
    /// As for [`Executable::launch`].
    unsafe fn measure(
        &self,
        stage: &Stage,
        launch: Addressed<'_>,
        state: &mut State,
        now: &dyn Fn() -> u64,
    ) -> Outcome<(u64, Vec<TaskTime>)> {
        let (gpu, stream, events) = (&*self.gpu, self.streams[0], &self.events);
        let entry = match state.measured.entry(launch.key) {
            Entry::Occupied(entry) => entry.into_mut(),
            Entry::Vacant(entry) => {
                let mut watch = Stopwatch::default();
                let graph = capture(gpu, stream, || {
                    let before = |task, _| watch.begin(task, gpu, stream, events);
                    // SAFETY: the caller's.
                    unsafe { self.issue_one_by_one(stage, launch.table, before) }?;
                    watch.end(gpu, stream, events)
                })?;
                entry.insert((graph, watch))
            }
        };
        self.follow(launch.owner.slot, Moment::Arrived, stream)?;
        Stopwatch::mark(gpu, stream, events)?;
        gpu.finish(stream)?;
        let begin = now();
        gpu.launch_graph(entry.0, stream)?;
        gpu.finish(stream)?;
        let times = entry.1.read(gpu, events)?;
        // Once before: the first time it is captured, which takes longer than it; and the GPU is told of the second while it is
        // busy with the first, as in requests, where it is told ahead.
        // SAFETY: the caller's; whatever is computed again is the same.
        unsafe { self.replay(stage, launch, state) }?;
        Stopwatch::mark(gpu, stream, events)?;
        // SAFETY: as above.
        unsafe { self.replay(stage, launch, state) }?;
        let whole = Stopwatch::since_mark(gpu, stream, events)?;
        Ok((begin, fitted(times, whole)))
    }

    fn capture_cold(&self, stage: &Stage, launch: Addressed<'_>, state: &mut State) -> Outcome<()> {
        // SAFETY: nothing else runs yet, and no request reads what is made of zeros.
        unsafe { self.replay(stage, launch, state) }?;
        self.gpu.finish(self.streams[0])?;
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
        let captured = capture(&*self.gpu, self.streams[0], || {
            await_constants(self.constants.newest_value())?;
            // SAFETY: nothing runs yet.
            unsafe { self.issue_one_by_one(stage, launch.table, |_, newest| await_constants(newest)) }
        });
        match captured {
            Ok(graph) => {
                self.gpu.upload_graph(graph, self.streams[0])?;
                let is_last = latest.is_some_and(|latest| latest.is_last);
                state.cold.insert(launch.key, (graph, is_last));
                Ok(())
            }
            Err(fault @ Fault::Lost(_)) => Err(fault),
            // It can still be issued as it is.
            Err(_) => Ok(()),
        }
    }

    /// Runs a stage whose constants are not here yet.
    ///
    /// # Safety
    /// As for [`Executable::launch`].
    unsafe fn start_cold(&self, stage: &Stage, launch: Addressed<'_>, state: &mut State) -> Outcome<()> {
        let stream = self.streams[0];
        self.follow(launch.owner.slot, Moment::Arrived, stream)?;
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
                // SAFETY: the caller's.
                unsafe { self.issue_one_by_one(stage, launch.table, before) }
            }
        })?;
        self.gpu.finish(stream)?;
        self.forget_image(state)
    }

    /// Puts a whole stage on the first stream. Before each call, the caller is told its task and the last of its constants.
    ///
    /// # Safety
    /// As for [`Executable::launch`].
    unsafe fn issue_one_by_one(
        &self,
        stage: &Stage,
        table: &[Address],
        before: impl FnMut(usize, Option<usize>) -> Outcome<()>,
    ) -> Outcome<()> {
        self.clear_status(stage)?;
        // SAFETY: the caller's; the workspace is as long as any call's.
        unsafe { stage.issue_one_by_one(table, self.lanes(), before) }?;
        self.fetch_status(stage)
    }

    /// Puts a whole stage on the streams.
    ///
    /// # Safety
    /// As for [`Executable::launch`].
    unsafe fn issue(&self, stage: &Stage, table: &[Address]) -> Outcome<()> {
        self.clear_status(stage)?;
        // SAFETY: the caller's; workspaces are as long as any call's.
        unsafe { stage.issue(table, self.lanes()) }?;
        self.fetch_status(stage)
    }

    fn lanes(&self) -> Lanes<'_> {
        Lanes {
            gpu: &*self.gpu,
            streams: &self.streams,
            workspaces: &self.workspaces,
            events: &self.events,
            window: self.window.as_ref(),
        }
    }

    fn clear_status(&self, stage: &Stage) -> Outcome<()> {
        if !stage.can_fail {
            return Ok(());
        }
        // SAFETY: the status is that of the stage that runs.
        unsafe { self.gpu.zero(self.shared.status(), 4, self.streams[0]) }
    }

    fn fetch_status(&self, stage: &Stage) -> Outcome<()> {
        if !stage.can_fail {
            return Ok(());
        }
        // SAFETY: as above.
        unsafe { self.gpu.copy_out(self.shared.here.pointer(), self.shared.status(), 4, self.streams[0]) }
    }
}
