//! When what a GPU was told to do for a request is done. Nobody waits for it but those who need it on the host: streams wait
//! for each other by themselves.

use super::CudaExecutable;
use crate::{
    drivers::cuda::driver::{Event, Outcome, Stream},
    hal::Attempt,
};
use std::collections::{HashMap, hash_map::Entry};

/// What happens on one stream on behalf of a slot's request.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Moment {
    /// Values of the host are here.
    Arrived,
    /// Stages and copies between them are done.
    Computed,
    /// What a step, or the end of the request, wants on the host is there.
    Left(Option<usize>),
}

#[derive(Default)]
pub(super) struct Moments {
    /// By slot. A later one of the same kind is behind the earlier ones, on the same stream.
    events: HashMap<(usize, Moment), Expected>,
    /// Slots, and stages that may not be done yet.
    running: Vec<(usize, usize)>,
}

#[derive(Clone, Copy)]
struct Expected {
    event: Event,
    /// How often it was recorded, and for how many of these somebody has waited.
    marked: u64,
    awaited: u64,
}

impl CudaExecutable {
    /// Says that what is on a stream by now, its last part, is that of a slot's request.
    pub(super) fn mark(&self, slot: usize, moment: Moment, stream: Stream) -> Outcome<()> {
        let mut moments = self.moments.lock();
        let expected = match moments.events.entry((slot, moment)) {
            Entry::Occupied(known) => known.into_mut(),
            Entry::Vacant(place) => place.insert(Expected { event: self.gpu.event()?, marked: 0, awaited: 0 }),
        };
        expected.marked += 1;
        self.gpu.record(expected.event, stream)
    }

    /// Has a stream wait for what was said of a slot's request so far.
    pub(super) fn follow(&self, slot: usize, moment: Moment, stream: Stream) -> Outcome<()> {
        match self.moments.lock().events.get(&(slot, moment)) {
            Some(expected) => self.gpu.wait(stream, expected.event),
            None => Ok(()),
        }
    }

    /// Waits for something that was said of a slot's request.
    pub(super) fn await_moment(&self, slot: usize, moment: Moment) -> Outcome<()> {
        let expected = self.moments.lock().events.get(&(slot, moment)).copied();
        let Some(Expected { event, marked, .. }) = expected.filter(|it| it.awaited < it.marked) else { return Ok(()) };
        self.gpu.await_event(event)?;
        // It may have been recorded again meanwhile.
        if let Some(expected) = self.moments.lock().events.get_mut(&(slot, moment)) {
            expected.awaited = expected.awaited.max(marked);
        }
        Ok(())
    }

    /// Notes a stage that nobody has waited for.
    pub(super) fn note(&self, slot: usize, stage: usize) {
        self.moments.lock().running.push((slot, stage));
    }

    /// The stages that may not be done yet, for those who want to know in which of them something went wrong.
    pub(super) fn running(&self) -> String {
        let mut stages: Vec<usize> = self.moments.lock().running.iter().map(|&(_, stage)| stage).collect();
        stages.sort_unstable();
        stages.dedup();
        let names: Vec<String> = stages.iter().map(|stage| format!("'{}'", self.stages[stage].name)).collect();
        match &names[..] {
            [] => String::new(),
            [name] => format!(" in stage {name}"),
            names => format!(" in one of the stages {}", names.join(", ")),
        }
    }

    /// Waits until all is done that the GPU was told to do for a slot's request.
    pub(super) fn settle(&self, slot: usize) -> Attempt {
        let moments: Vec<Moment> =
            self.moments.lock().events.keys().filter(|(of, _)| *of == slot).map(|&(_, moment)| moment).collect();
        let settled = moments.into_iter().try_for_each(|moment| self.await_moment(slot, moment));
        settled.map_err(|fault| self.problem(fault))?;
        self.moments.lock().running.retain(|&(of, _)| of != slot);
        Ok(())
    }
}
