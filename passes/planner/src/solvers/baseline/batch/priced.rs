//! List scheduling of a queue where memory is scarce: each task's inputs are split over as many devices as its memory
//! cost allows.
//!
//! Replicating a task lets more devices share its inputs but takes memory from later tasks. The value of a byte comes
//! from [`byte_prices`], multiplied by a factor, since those prices are for mean inputs and ignore transfers. The price
//! determines into how many batches each chunk of tasks is split; which of several equal devices run them is decided
//! chunk by chunk, by earliest finish time. Equal chunks change their split at the same factor, so between two
//! consecutive factors a position in the order is searched for: chunks before it pay the lower factor. Memory that
//! remains is then given to runs of chunks that pay the higher factor.

mod chunks;

use std::time::Instant;

use super::super::Timeline;
use super::{FreeMemory, Part, State, is_late, makespan_of};
use crate::bounds::{byte_prices, device_classes};
use crate::model::error::Error;
use crate::model::instance::Instance;
use crate::model::plan::{Batch, Schedule};
use crate::model::units::{Bytes, Micros, MicrosPerByte};
use crate::solvers::baseline::memory::fitting;

use chunks::{Chunk, Shapes, TimeCriterion, chunks};

/// Factors from 1/8 to 32 in a geometric progression.
const LEAST_FACTOR: f64 = 0.125;
const FACTOR_STEP: f64 = std::f64::consts::SQRT_2;
const FACTORS: usize = 17;
/// Number of evenly spaced positions tried first; then a bisection around the best of them.
const PLACES: usize = 8;
/// Maximum lead in memory use, as a share of capacity, over an equally good device. Devices that fill up together leave
/// no device for later tasks to share with.
const LEADS: [f64; 4] = [f64::INFINITY, 0.5, 0.25, 0.125];
/// Approximate number of first chunks tried for a run.
const RUNS: usize = 64;

/// Returns the best schedule found until the deadline; `None` if nothing fits.
pub(in crate::solvers::baseline) fn schedule(instance: &Instance, deadline: Option<Instant>) -> Option<Schedule> {
    let byte = byte_prices(instance);
    let is_free = byte.iter().all(|price| *price == MicrosPerByte::ZERO);
    let room = FreeMemory::new(instance, 0.0);
    let chunks = chunks(instance, |task, size| room.task_bytes(task, size));
    let mut search = Search { instance, byte, class_of: device_classes(instance), chunks, best: None, deadline };
    if is_free {
        search.attempt(&Layout::uniform(0, Policy { lead: f64::INFINITY, criterion: TimeCriterion::Mean }));
        return search.best.map(Found::schedule);
    }
    let policies = [TimeCriterion::Mean, TimeCriterion::Slowest]
        .into_iter()
        .flat_map(|criterion| LEADS.map(|lead| Policy { lead, criterion }));
    let mut tried: Vec<(Micros, Policy)> = policies.map(|policy| (search.uniform(policy), policy)).collect();
    tried.sort_by(|a, b| a.0.total_cmp(&b.0));
    for (_, policy) in tried.into_iter().take(2) {
        search.between_factors(policy);
    }
    search.fill();
    search.best.map(Found::schedule)
}

/// Assignment of price factors to chunks.
#[derive(Clone)]
struct Layout {
    /// Factor of tasks before position `from`, and of those from there on.
    before: usize,
    behind: usize,
    from: usize,
    policy: Policy,
    /// Runs of chunks that are split as if they paid the lower factor, with the extra batch on one device.
    runs: Vec<Run>,
}

/// Policy for splitting chunks and choosing devices.
#[derive(Clone, Copy)]
struct Policy {
    /// Maximum lead in memory use over an equally good device, as a share of capacity.
    lead: f64,
    criterion: TimeCriterion,
}

impl Layout {
    fn uniform(step: usize, policy: Policy) -> Self {
        Self { before: step, behind: step, from: 0, policy, runs: Vec::new() }
    }
}

#[derive(Clone)]
struct Run {
    first: usize,
    device: usize,
    /// Free memory of the device for this run.
    room: Bytes,
}

struct Found {
    makespan: Micros,
    batches: Vec<Batch>,
    layout: Layout,
    /// By device.
    left: Vec<Bytes>,
}

impl Found {
    fn schedule(self) -> Schedule {
        Schedule::Batch { batches: self.batches, makespan: self.makespan }
    }
}

struct Search<'a> {
    instance: &'a Instance,
    /// By device.
    byte: Vec<MicrosPerByte>,
    class_of: Vec<usize>,
    /// Computed with no memory reserved for live activations.
    chunks: Vec<Chunk>,
    best: Option<Found>,
    deadline: Option<Instant>,
}

impl Search<'_> {
    /// Returns the best makespan with one factor for all chunks.
    fn uniform(&mut self, policy: Policy) -> Micros {
        (0..FACTORS).map(|step| self.attempt(&Layout::uniform(step, policy))).fold(Micros::INFINITY, Micros::min)
    }

    /// Tries positions between two factors, near the best uniform factor.
    fn between_factors(&mut self, policy: Policy) {
        let tasks = self.instance.tasks();
        let uniform: Vec<Micros> = (0..FACTORS).map(|step| self.attempt(&Layout::uniform(step, policy))).collect();
        let Some(best) = (0..FACTORS).min_by(|a, b| uniform[*a].total_cmp(&uniform[*b])) else { return };
        for low in best.saturating_sub(2)..(best + 2).min(FACTORS - 1) {
            let mut until =
                |from: usize| self.attempt(&Layout { from, before: low, ..Layout::uniform(low + 1, policy) });
            let mut width = tasks.div_ceil(PLACES);
            let mut places: Vec<usize> = (1..PLACES).map(|place| place * width).collect();
            places.retain(|place| *place < tasks);
            let values = places.into_iter().map(|place| (until(place), place));
            let ends = [(uniform[low + 1], 0), (uniform[low], tasks)];
            let least = values.chain(ends).min_by(|a, b| a.0.total_cmp(&b.0));
            let Some((mut value, mut place)) = least else { continue };
            while width > 1 {
                width = width.div_ceil(2);
                for near in [place.checked_sub(width), Some(place + width)].into_iter().flatten() {
                    let found = until(near.min(tasks));
                    if found < value {
                        (value, place) = (found, near.min(tasks));
                    }
                }
            }
        }
    }

    /// Returns the makespan of a layout; infinite if nothing fits.
    fn attempt(&mut self, layout: &Layout) -> Micros {
        let instance = self.instance;
        let attempt = |share: f64| {
            let corner = || Error::NotFound("the last tasks have no room".to_owned());
            self.lay_out(layout, share).ok_or_else(corner)
        };
        let Ok((state, left)) = fitting(instance, attempt, |(state, _)| instance.peak_use_of(&state.batches())) else {
            return Micros::INFINITY;
        };
        let makespan = makespan_of(&state);
        if self.best.as_ref().is_none_or(|best| makespan < best.makespan) {
            self.best = Some(Found { makespan, batches: state.batches(), layout: layout.clone(), left });
        }
        makespan
    }

    /// Spends the remaining memory of devices with a positive price, one device at a time, on the run of chunks that
    /// gains most.
    fn fill(&mut self) {
        let count = self.chunks.len();
        let stride = count.div_ceil(RUNS).max(1);
        for _ in 0..self.instance.devices() {
            let Some(Found { makespan: before, layout, left, .. }) = &self.best else { return };
            let (before, layout) = (*before, layout.clone());
            let taken = |device: &usize| layout.runs.iter().any(|run| run.device == *device);
            let dear = (0..self.byte.len()).filter(|device| self.byte[*device] > MicrosPerByte::ZERO && !taken(device));
            let Some(device) = dear.max_by(|a, b| left[*a].total_cmp(&left[*b]).then(b.cmp(a))) else { return };
            let room = left[device];
            for first in (0..count).step_by(stride) {
                let mut layout = layout.clone();
                layout.runs.push(Run { first, device, room });
                self.attempt(&layout);
            }
            if self.best.as_ref().is_none_or(|best| best.makespan >= before) {
                return;
            }
        }
    }

    /// Schedules chunk by chunk and returns the schedule with the free memory of each device; `None` if a chunk does
    /// not fit.
    fn lay_out(&self, layout: &Layout, share: f64) -> Option<(State, Vec<Bytes>)> {
        let instance = self.instance;
        let mut state = State {
            launches: (0..instance.tasks()).map(|_| Vec::new()).collect(),
            parts: vec![None; instance.groups().len()],
            timeline: Timeline::new(instance.devices(), true),
        };
        let mut room = FreeMemory::new(instance, share);
        let fresh = (share > 0.0).then(|| chunks(instance, |task, size| room.task_bytes(task, size)));
        let factor = |step: usize| LEAST_FACTOR * FACTOR_STEP.powi(step as i32);
        let shapes = |step: usize| Shapes::new(instance, &self.byte, factor(step), layout.policy.criterion);
        let (mut cheap, mut dear) = (shapes(layout.before), shapes(layout.behind));
        let mut runs = layout.runs.clone();
        let mut place = 0;
        for (index, chunk) in fresh.as_ref().unwrap_or(&self.chunks).iter().enumerate() {
            if is_late(self.deadline) {
                return None;
            }
            let more = cheap.of(chunk)?;
            let shape = if place < layout.from { more } else { dear.of(chunk)? };
            place += chunk.tasks.len();
            // A run continues as long as its device has memory and the chunk gains a batch.
            let bytes = more.last().and_then(|(device, size)| chunk.bytes(*device, *size)).unwrap_or(Bytes::INFINITY);
            let run = runs.iter_mut().find(|run| run.first <= index && bytes <= run.room);
            let parts = match run.filter(|_| more.len() > shape.len()) {
                Some(run) => {
                    run.room -= bytes;
                    self.deal(&state, &room, chunk, more, layout.policy.lead, Some(run.device))?
                }
                None => self.deal(&state, &room, chunk, shape, layout.policy.lead, None)?,
            };
            self.launch(&mut state, &mut room, chunk, &parts)?;
        }
        Some((state, room.left))
    }

    /// Assigns the inputs of a chunk to devices of the same classes as in `shape`: batch by batch, each where it
    /// finishes first with the inputs that remain. `last` optionally fixes the device of the last batch.
    fn deal(
        &self,
        state: &State,
        room: &FreeMemory<'_>,
        chunk: &Chunk,
        shape: &[(usize, u32)],
        lead: f64,
        last: Option<usize>,
    ) -> Option<Vec<Part>> {
        let instance = self.instance;
        let groups = groups(instance, chunk);
        let mut parts: Vec<Part> = Vec::with_capacity(shape.len());
        let mut left: Vec<u32> = (0..instance.inputs()).collect();
        for (index, &(like, size)) in shape.iter().enumerate() {
            let bytes: Bytes =
                groups.iter().filter(|group| !room.reserved[**group]).map(|group| room.bytes(*group, size)).sum();
            let most_left = |class: usize| {
                let idle = |device: &usize| parts.iter().all(|part| part.device != *device);
                let alike = (0..instance.devices()).filter(|device| self.class_of[*device] == class).filter(idle);
                alike.map(|device| room.left[device]).fold(Bytes::ZERO, Bytes::max)
            };
            let most_left: Vec<Bytes> =
                (0..instance.devices()).map(|device| most_left(self.class_of[device])).collect();
            let mut best: Option<((bool, bool, Micros), Part)> = None;
            let is_last = index + 1 == shape.len();
            let is_candidate = |device: &usize| last.is_none_or(|last| (*device == last) == is_last);
            for device in (0..instance.devices()).filter(|device| bytes <= room.left[*device]).filter(is_candidate) {
                let Some(time) = chunk.time(device, size).filter(|_| parts.iter().all(|part| part.device != device))
                else {
                    continue;
                };
                let (inputs, ready) = first_inputs(state, instance, chunk.tasks[0], device, &left, size);
                let end = state.timeline.earliest(device, ready, time) + time;
                // A device of another class is better than none.
                let is_ahead = room.left[device] + lead * instance.capacity_bytes(device) < most_left[device];
                let key = (self.class_of[device] != self.class_of[like], is_ahead, end);
                if end.is_finite() && best.as_ref().is_none_or(|(least, _)| key < *least) {
                    best = Some((key, Part { device, inputs }));
                }
            }
            let (_, part) = best?;
            left.retain(|input| part.inputs.binary_search(input).is_err());
            parts.push(part);
        }
        Some(parts)
    }

    /// Schedules the tasks of a chunk, all on the same devices with the same inputs.
    fn launch(&self, state: &mut State, room: &mut FreeMemory<'_>, chunk: &Chunk, parts: &[Part]) -> Option<()> {
        let instance = self.instance;
        for group in groups(instance, chunk) {
            if state.parts[group].is_none() {
                parts.iter().for_each(|part| room.take_one(group, part.device, part.inputs.len() as u32));
                state.parts[group] = Some(parts.to_vec());
            }
        }
        chunk.tasks.iter().try_for_each(|task| state.launch(instance, *task))
    }
}

/// Returns the groups of a chunk's tasks without duplicates.
fn groups(instance: &Instance, chunk: &Chunk) -> Vec<usize> {
    let mut groups: Vec<usize> = chunk.tasks.iter().map(|task| instance.group_of(*task)).collect();
    groups.sort_unstable();
    groups.dedup();
    groups
}

/// Returns the `size` inputs of `left` whose operands arrive first on a device, ascending, and the time at which all of
/// them have arrived.
fn first_inputs(
    state: &State,
    instance: &Instance,
    task: usize,
    device: usize,
    left: &[u32],
    size: u32,
) -> (Vec<u32>, Micros) {
    let arcs = instance.predecessors(task);
    let alone = |input: u32| {
        arcs.iter().map(|arc| state.arrival(instance, arc, device, &[input])).fold(Micros::ZERO, Micros::max)
    };
    let mut inputs: Vec<(Micros, u32)> = left.iter().map(|input| (alone(*input), *input)).collect();
    // The sort is stable: ties keep the order of inputs.
    inputs.sort_by(|a, b| a.0.total_cmp(&b.0));
    let mut inputs: Vec<u32> = inputs.into_iter().take(size as usize).map(|(_, input)| input).collect();
    inputs.sort_unstable();
    let ready = arcs.iter().map(|arc| state.arrival(instance, arc, device, &inputs)).fold(Micros::ZERO, Micros::max);
    (inputs, ready)
}
