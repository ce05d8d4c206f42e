//! Stages on a GPU: replayed as graphs, but where they are measured, or constants are not there yet.

use super::{Device, Stamp, State, moments::Moment};
use crate::{
    bundle::Status,
    cuda::{
        driver::{Address, Fault, Outcome, capture},
        stage::{Lanes, Stage, Stopwatch, TaskTime, fitted},
        upload::Arrival,
    },
    error::{Error, Result},
};
use std::collections::hash_map::Entry;

/// A launch of a stage.
#[derive(Clone, Copy)]
pub(crate) struct Launch<'a> {
    pub(crate) stage: usize,
    pub(crate) step: usize,
    pub(crate) slot: usize,
    pub(crate) stamp: Option<Stamp>,
    /// The addresses of all buffers; always the same for a step and a slot.
    pub(crate) table: &'a [Address],
}

impl Device {
    /// Runs a stage, and waits for it if it can fail, is measured, or waits for constants itself. If it is to be `measured`, by a
    /// clock that tells nanoseconds, says when that clock showed the beginning of the stage, and when its tasks ran.
    ///
    /// # Safety
    /// Inputs are there, or the GPU was told of them; outputs are the stage's, and arenas its device's.
    pub(crate) unsafe fn launch(
        &self,
        launch: Launch<'_>,
        measured: Option<&dyn Fn() -> u64>,
    ) -> Result<(u64, Vec<TaskTime>)> {
        let Some(stage) = self.stages.get(&launch.stage) else { return Ok((0, vec![])) };
        let what = format!("stage '{}'", stage.name);
        let mut state = self.enter(&what)?;
        let outcome = if state.image.is_some() {
            // SAFETY: the caller's.
            unsafe { self.start_cold(stage, launch, &mut state) }.map(|()| (0, vec![]))
        } else if let Some(now) = measured {
            // SAFETY: the caller's.
            unsafe { self.measure(stage, launch, &mut state, now) }
        } else {
            // SAFETY: the caller's.
            unsafe { self.replay(stage, launch, &mut state) }.map(|()| (0, vec![]))
        };
        if outcome.is_ok() {
            self.note(launch.slot, launch.stage);
        }
        let times = outcome.map_err(|fault| self.failed(&mut state, fault, &what))?;
        if stage.can_fail {
            self.gpu.finish(self.streams[0]).map_err(|fault| self.failed(&mut state, fault, &what))?;
            // SAFETY: the stage is done, which copied the number there.
            let status = unsafe { self.shared.here.pointer().cast::<i32>().read() };
            if let Some(problem) = Status::problem(status) {
                let (stage, problem) = (stage.name.clone(), problem.to_owned());
                return Err(Error::Failed { stage, task: String::new(), problem });
            }
        }
        Ok(times)
    }

    /// Has a stage run as a graph, which is made at its first launch.
    ///
    /// # Safety
    /// As for [`Device::launch`].
    unsafe fn replay(&self, stage: &Stage, launch: Launch<'_>, state: &mut State) -> Outcome<()> {
        let (gpu, stream) = (&*self.gpu, self.streams[0]);
        let key = (launch.step, launch.slot);
        let graph = match state.graphs.get(&key) {
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
                *state.graphs.entry(key).or_insert(graph)
            }
        };
        self.follow(launch.slot, Moment::Arrived, stream)?;
        self.timed((launch.slot, launch.stamp), stream, || match graph {
            Some(graph) => gpu.launch_graph(graph, stream),
            // SAFETY: the caller's.
            None => unsafe { self.issue(stage, launch.table) },
        })?;
        self.mark(launch.slot, Moment::Computed, stream)
    }

    /// Runs a stage one call after the other, as a graph with an event at each task's beginning, and then as it is run else: what
    /// tasks took in between is fitted to what all of it takes.
    ///
    /// # Safety
    /// As for [`Device::launch`].
    unsafe fn measure(
        &self,
        stage: &Stage,
        launch: Launch<'_>,
        state: &mut State,
        now: &dyn Fn() -> u64,
    ) -> Outcome<(u64, Vec<TaskTime>)> {
        let (gpu, stream, events) = (&*self.gpu, self.streams[0], &self.events);
        let entry = match state.measured.entry((launch.step, launch.slot)) {
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
        self.follow(launch.slot, Moment::Arrived, stream)?;
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

    /// Makes a graph of a stage whose calls wait for their constants, for a request that comes before those: to tell the GPU of one
    /// call after the other may take longer than copies do. The stage is run once before, on zeros: at the first run of a kernel,
    /// its code has to get to the GPU.
    pub(crate) fn prepare_cold(&self, launch: Launch<'_>) -> Result<()> {
        let Some(stage) = self.stages.get(&launch.stage) else { return Ok(()) };
        let what = format!("stage '{}'", stage.name);
        let mut state = self.enter(&what)?;
        // SAFETY: nothing else runs yet, and no request reads what is made of zeros.
        let tried = unsafe { self.replay(stage, launch, &mut state) }.and_then(|()| self.gpu.finish(self.streams[0]));
        tried.map_err(|fault| self.failed(&mut state, fault, &what))?;
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
                let uploaded = self.gpu.upload_graph(graph, self.streams[0]);
                uploaded.map_err(|fault| self.failed(&mut state, fault, &what))?;
                let is_last = latest.is_some_and(|latest| latest.is_last);
                state.cold.insert((launch.step, launch.slot), (graph, is_last));
                Ok(())
            }
            Err(fault @ Fault::Lost(_)) => Err(self.failed(&mut state, fault, &what)),
            // It can still be issued as it is.
            Err(_) => Ok(()),
        }
    }

    /// Runs a stage whose constants are not here yet.
    ///
    /// # Safety
    /// As for [`Device::launch`].
    unsafe fn start_cold(&self, stage: &Stage, launch: Launch<'_>, state: &mut State) -> Outcome<()> {
        let stream = self.streams[0];
        self.follow(launch.slot, Moment::Arrived, stream)?;
        let graph = state.cold.get(&(launch.step, launch.slot)).copied();
        self.timed((launch.slot, launch.stamp), stream, || match graph {
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
    /// As for [`Device::launch`].
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
    /// As for [`Device::launch`].
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
