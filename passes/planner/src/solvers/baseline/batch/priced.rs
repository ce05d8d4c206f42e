//! A queue where memory is scarce: inputs are shared out among as many devices as their memory is worth it.
//!
//! Copies of a task let more devices share its inputs, and take room from tasks that come later. What a byte is worth is
//! known from [`byte_prices`]; times a factor, since it was found for inputs on average and without transfers. That says
//! into how many batches each chunk of tasks is cut; which of several equal devices take them is decided chunk after
//! chunk, by where they end first. Equal chunks change their minds together when the factor falls, so between two factors
//! there is a place in the order up to which chunks pay the lower one. Where a device has room left in the end, a run of
//! chunks that pay the higher one gets it as well.

mod chunks;

use super::super::Timeline;
use super::{Part, Room, State, makespan_of};
use crate::bounds::{byte_prices, device_classes};
use crate::model::error::Error;
use crate::model::instance::Instance;
use crate::model::plan::{Batch, Schedule};
use crate::model::units::{Bytes, Micros};
use crate::solvers::baseline::memory::fitting;

use chunks::{Chunk, Pace, Shapes, chunks};

/// Factors from an eighth to 32, each so many times the one before.
const LEAST_FACTOR: f64 = 0.125;
const FACTOR_STEP: f64 = std::f64::consts::SQRT_2;
const FACTORS: usize = 17;
/// The first places that are tried are so many, evenly spread; then those between the best and its neighbours.
const PLACES: usize = 8;
/// How much fuller a device may be than one that is as good: devices that fill up together leave nobody to share with.
const LEADS: [f64; 4] = [f64::INFINITY, 0.5, 0.25, 0.125];
/// About so many first chunks are tried for a run.
const RUNS: usize = 64;

/// The best schedule that was found; none where nothing fits.
pub(in crate::solvers::baseline) fn schedule(instance: &Instance) -> Option<Schedule> {
    let byte = byte_prices(instance);
    let is_free = byte.iter().all(|price| *price == 0.0);
    let room = Room::new(instance, 0.0);
    let chunks = chunks(instance, |task, size| room.task_bytes(task, size));
    let mut search = Search { instance, byte, class_of: device_classes(instance), chunks, best: None };
    if is_free {
        search.attempt(&Layout::uniform(0, Manner { lead: f64::INFINITY, pace: Pace::Mean }));
        return search.best.map(Found::schedule);
    }
    let manners = [Pace::Mean, Pace::Slowest].into_iter().flat_map(|pace| LEADS.map(|lead| Manner { lead, pace }));
    let mut tried: Vec<(Micros, Manner)> = manners.map(|manner| (search.uniform(manner), manner)).collect();
    tried.sort_by(|a, b| a.0.total_cmp(&b.0));
    for (_, manner) in tried.into_iter().take(2) {
        search.between_factors(manner);
    }
    search.fill();
    search.best.map(Found::schedule)
}

/// Who pays what.
#[derive(Clone)]
struct Layout {
    /// The factor of tasks before a place, and of those behind it.
    before: usize,
    behind: usize,
    from: usize,
    manner: Manner,
    /// Chunks from one on that are cut as if they paid the lower factor, one of their batches on a device.
    runs: Vec<Run>,
}

/// How chunks are cut and dealt out.
#[derive(Clone, Copy)]
struct Manner {
    /// What share of its memory a device may be fuller than one that is as good.
    lead: f64,
    pace: Pace,
}

impl Layout {
    fn uniform(step: usize, manner: Manner) -> Self {
        Self { before: step, behind: step, from: 0, manner, runs: Vec::new() }
    }
}

#[derive(Clone)]
struct Run {
    first: usize,
    device: usize,
    /// What the device has left for it.
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
    byte: Vec<f64>,
    class_of: Vec<usize>,
    /// With nothing set aside for what is alive.
    chunks: Vec<Chunk>,
    best: Option<Found>,
}

impl Search<'_> {
    /// The best makespan with one factor for all.
    fn uniform(&mut self, manner: Manner) -> Micros {
        (0..FACTORS).map(|step| self.attempt(&Layout::uniform(step, manner))).fold(f64::INFINITY, f64::min)
    }

    /// Tries places between two factors, near the best one for all.
    fn between_factors(&mut self, manner: Manner) {
        let tasks = self.instance.tasks();
        let uniform: Vec<Micros> = (0..FACTORS).map(|step| self.attempt(&Layout::uniform(step, manner))).collect();
        let Some(best) = (0..FACTORS).min_by(|a, b| uniform[*a].total_cmp(&uniform[*b])) else { return };
        for low in best.saturating_sub(2)..(best + 2).min(FACTORS - 1) {
            let mut until =
                |from: usize| self.attempt(&Layout { from, before: low, ..Layout::uniform(low + 1, manner) });
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

    /// The makespan of a layout; infinite where nothing fits.
    fn attempt(&mut self, layout: &Layout) -> Micros {
        let instance = self.instance;
        let attempt = |share: f64| {
            let corner = || Error::NotFound("the last tasks have no room".to_owned());
            self.lay_out(layout, share).ok_or_else(corner)
        };
        let Ok((state, left)) = fitting(instance, attempt, |(state, _)| instance.peak_use_of(&state.batches())) else {
            return f64::INFINITY;
        };
        let makespan = makespan_of(&state);
        if self.best.as_ref().is_none_or(|best| makespan < best.makespan) {
            self.best = Some(Found { makespan, batches: state.batches(), layout: layout.clone(), left });
        }
        makespan
    }

    /// Spends what is left in the end of dear memory, device after device, on the run of chunks where that helps most.
    fn fill(&mut self) {
        let count = self.chunks.len();
        let stride = count.div_ceil(RUNS).max(1);
        for _ in 0..self.instance.devices() {
            let Some(Found { makespan: before, layout, left, .. }) = &self.best else { return };
            let (before, layout) = (*before, layout.clone());
            let taken = |device: &usize| layout.runs.iter().any(|run| run.device == *device);
            let dear = (0..self.byte.len()).filter(|device| self.byte[*device] > 0.0 && !taken(device));
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

    /// Chunk after chunk, and what is left of each device's memory; none where a chunk finds no room.
    fn lay_out(&self, layout: &Layout, share: f64) -> Option<(State, Vec<Bytes>)> {
        let instance = self.instance;
        let mut state = State {
            launches: (0..instance.tasks()).map(|_| Vec::new()).collect(),
            parts: vec![None; instance.groups().len()],
            timeline: Timeline::new(instance.devices(), true),
        };
        let mut room = Room::new(instance, share);
        let fresh = (share > 0.0).then(|| chunks(instance, |task, size| room.task_bytes(task, size)));
        let factor = |step: usize| LEAST_FACTOR * FACTOR_STEP.powi(step as i32);
        let shapes = |step: usize| Shapes::new(instance, &self.byte, factor(step), layout.manner.pace);
        let (mut cheap, mut dear) = (shapes(layout.before), shapes(layout.behind));
        let mut runs = layout.runs.clone();
        let mut place = 0;
        for (index, chunk) in fresh.as_ref().unwrap_or(&self.chunks).iter().enumerate() {
            let more = cheap.of(chunk)?;
            let shape = if place < layout.from { more } else { dear.of(chunk)? };
            place += chunk.tasks.len();
            // A run goes on as long as its device has room and the chunk gains a batch.
            let bytes = more.last().and_then(|(device, size)| chunk.bytes(*device, *size)).unwrap_or(f64::INFINITY);
            let run = runs.iter_mut().find(|run| run.first <= index && bytes <= run.room);
            let parts = match run.filter(|_| more.len() > shape.len()) {
                Some(run) => {
                    run.room -= bytes;
                    self.deal(&state, &room, chunk, more, layout.manner.lead, Some(run.device))?
                }
                None => self.deal(&state, &room, chunk, shape, layout.manner.lead, None)?,
            };
            self.launch(&mut state, &mut room, chunk, &parts)?;
        }
        Some((state, room.left))
    }

    /// Which devices take which inputs of a chunk, of those that are as good as the shape's: batch after batch, each where
    /// it ends first with the inputs that are left. The last one's device may be given.
    fn deal(
        &self,
        state: &State,
        room: &Room<'_>,
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
                alike.map(|device| room.left[device]).fold(0.0, f64::max)
            };
            let most_left: Vec<Bytes> =
                (0..instance.devices()).map(|device| most_left(self.class_of[device])).collect();
            let mut best: Option<((bool, bool, Micros), Part)> = None;
            let is_last = index + 1 == shape.len();
            let meant = |device: &usize| last.is_none_or(|last| (*device == last) == is_last);
            for device in (0..instance.devices()).filter(|device| bytes <= room.left[*device]).filter(meant) {
                let Some(time) = chunk.time(device, size).filter(|_| parts.iter().all(|part| part.device != device))
                else {
                    continue;
                };
                let (inputs, ready) = first_inputs(state, instance, chunk.tasks[0], device, &left, size);
                let end = state.timeline.earliest(device, ready, time) + time;
                // Another class is better than none.
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

    /// Launches a chunk's tasks, all on the same devices with the same inputs.
    fn launch(&self, state: &mut State, room: &mut Room<'_>, chunk: &Chunk, parts: &[Part]) -> Option<()> {
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

/// The groups of a chunk's tasks, each once.
fn groups(instance: &Instance, chunk: &Chunk) -> Vec<usize> {
    let mut groups: Vec<usize> = chunk.tasks.iter().map(|task| instance.group_of(*task)).collect();
    groups.sort_unstable();
    groups.dedup();
    groups
}

/// So many of the inputs that are left whose operands are first on a device, ascending, and when all of them are.
fn first_inputs(
    state: &State,
    instance: &Instance,
    task: usize,
    device: usize,
    left: &[u32],
    size: u32,
) -> (Vec<u32>, Micros) {
    let arcs = instance.predecessors(task);
    let alone = |input: u32| arcs.iter().map(|arc| state.arrival(instance, arc, device, &[input])).fold(0.0, f64::max);
    let mut inputs: Vec<(Micros, u32)> = left.iter().map(|input| (alone(*input), *input)).collect();
    // Stable: of equals the first.
    inputs.sort_by(|a, b| a.0.total_cmp(&b.0));
    let mut inputs: Vec<u32> = inputs.into_iter().take(size as usize).map(|(_, input)| input).collect();
    inputs.sort_unstable();
    let ready = arcs.iter().map(|arc| state.arrival(instance, arc, device, &inputs)).fold(0.0, f64::max);
    (inputs, ready)
}
