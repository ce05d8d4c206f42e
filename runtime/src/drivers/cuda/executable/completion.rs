//! Completion events of the work of a slot. The host waits for them only if it needs the results; streams wait for each other
//! on the GPU.

use super::CudaExecutable;
use crate::{
    drivers::cuda::driver::{CudaResult, Event, Stream},
    hal::QueueResult,
};
use std::collections::{HashMap, hash_map::Entry};

/// Kind of work of a slot; each kind is on one stream.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum WorkKind {
    /// Uploads.
    Upload,
    /// Stages, and copies on the GPU.
    Compute,
    /// Download of a step; `None` for the outputs of the request.
    Download(Option<usize>),
}

/// Completion events of all slots.
#[derive(Default)]
pub(super) struct CompletionEvents {
    /// By slot and kind. Records of the same kind are on the same stream, so the last one covers the earlier ones.
    events: HashMap<(usize, WorkKind), CompletionEvent>,
    /// Slots and stages that may still be running.
    running: Vec<(usize, usize)>,
}

/// Completion event.
#[derive(Clone, Copy)]
struct CompletionEvent {
    event: Event,
    /// Number of times that it was recorded.
    marked: u64,
    /// Number of the last record that the host has waited for.
    awaited: u64,
}

impl CudaExecutable {
    /// Records the completion event of a slot's work that was just enqueued on a stream.
    pub(super) fn record_completion(&self, slot: usize, kind: WorkKind, stream: Stream) -> CudaResult<()> {
        let mut completions = self.completions.lock();
        let expected = match completions.events.entry((slot, kind)) {
            Entry::Occupied(known) => known.into_mut(),
            Entry::Vacant(entry) => entry.insert(CompletionEvent { event: self.gpu.event()?, marked: 0, awaited: 0 }),
        };
        expected.marked += 1;
        self.gpu.record(expected.event, stream)
    }

    /// Makes a stream wait for the work of a slot that has been enqueued so far.
    pub(super) fn wait_on_stream(&self, slot: usize, kind: WorkKind, stream: Stream) -> CudaResult<()> {
        match self.completions.lock().events.get(&(slot, kind)) {
            Some(expected) => self.gpu.wait(stream, expected.event),
            None => Ok(()),
        }
    }

    /// Blocks the host until the work of a slot has completed.
    pub(super) fn wait_on_host(&self, slot: usize, kind: WorkKind) -> CudaResult<()> {
        let expected = self.completions.lock().events.get(&(slot, kind)).copied();
        let Some(CompletionEvent { event, marked, .. }) = expected.filter(|it| it.awaited < it.marked) else {
            return Ok(());
        };
        self.gpu.await_event(event)?;
        // Another thread may have recorded it again in the meantime.
        if let Some(expected) = self.completions.lock().events.get_mut(&(slot, kind)) {
            expected.awaited = expected.awaited.max(marked);
        }
        Ok(())
    }

    /// Adds a stage to those that may still be running.
    pub(super) fn add_running(&self, slot: usize, stage: usize) {
        self.completions.lock().running.push((slot, stage));
    }

    /// Returns the clause of a message that names the stages that may still be running, one of which caused a fault.
    pub(super) fn running(&self) -> String {
        let mut stages: Vec<usize> = self.completions.lock().running.iter().map(|&(_, stage)| stage).collect();
        stages.sort_unstable();
        stages.dedup();
        let names: Vec<String> = stages.iter().map(|stage| format!("'{}'", self.stages[stage].name)).collect();
        match &names[..] {
            [] => String::new(),
            [name] => format!(" in stage {name}"),
            names => format!(" in one of the stages {}", names.join(", ")),
        }
    }

    /// Waits for all work of a slot.
    pub(super) fn synchronize_slot(&self, slot: usize) -> QueueResult {
        let kinds: Vec<WorkKind> =
            self.completions.lock().events.keys().filter(|(of, _)| *of == slot).map(|&(_, kind)| kind).collect();
        let settled = kinds.into_iter().try_for_each(|kind| self.wait_on_host(slot, kind));
        settled.map_err(|fault| self.fault_message(fault))?;
        self.completions.lock().running.retain(|&(of, _)| of != slot);
        Ok(())
    }
}
