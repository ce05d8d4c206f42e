//! One more task on a partial schedule, and what follows from it for all that is undone.
//!
//! Schedules grow in the order of starts, so nothing starts before the latest start so far. Every undone task gets an
//! earliest start on each device, from the devices' loads, from what is done, and from the earliest ends of undone
//! predecessors; a device that the cutoff, the memory or a mate excludes is infinite. These starts are the state: no
//! more is known about the past, and no less is needed for the future.

use super::context::Context;
use super::layer::{Layer, State};
use super::set::Set;
use crate::model::units::Micros;

/// Works on the extensions of one state after the other; its memory is used again.
pub(crate) struct Extender<'a, const WORDS: usize> {
    context: &'a Context<'a, WORDS>,
    header: usize,
    counts_memory: bool,
    free_us: Vec<Micros>,
    held: Vec<f64>,
    /// Earliest starts of undone tasks in the state, by task and device.
    start_us: Vec<Micros>,
    /// The same in the state before, where it had figures for the task.
    earlier_us: Vec<Micros>,
    earlier_front: Set<WORDS>,
    /// The first task that has no earliest starts.
    horizon: usize,
    /// The ends that follow from the earliest starts.
    end_us: Vec<Micros>,
    /// For the extension at hand.
    child_us: Vec<Micros>,
    child_end_us: Vec<Micros>,
    /// By device: when the first of the undone tasks could start there.
    soonest_us: Vec<Micros>,
    child_free_us: Vec<Micros>,
    child_held: Vec<f64>,
    sorted_free: Vec<(Micros, usize)>,
    figures: Vec<f64>,
    order: Vec<u8>,
}

impl<'a, const WORDS: usize> Extender<'a, WORDS> {
    pub(crate) fn new(context: &'a Context<'a, WORDS>) -> Self {
        let (tasks, devices) = (context.graph.tasks, context.graph.devices);
        let table = || vec![0.0; tasks * devices];
        Self {
            context,
            header: context.header(),
            counts_memory: context.counts_memory(),
            free_us: vec![0.0; devices],
            held: vec![0.0; devices],
            start_us: table(),
            earlier_us: table(),
            earlier_front: Set::EMPTY,
            horizon: 0,
            end_us: table(),
            child_us: table(),
            child_end_us: table(),
            soonest_us: vec![0.0; devices],
            child_free_us: vec![0.0; devices],
            child_held: vec![0.0; devices],
            sorted_free: Vec::with_capacity(devices),
            figures: Vec::new(),
            order: vec![0; if context.classes.is_empty() { 0 } else { devices }],
        }
    }

    /// Adds every extension of a state that the cutoff allows to the next layer; says how many were tried.
    pub(crate) fn extend(
        &mut self,
        place: usize,
        layer: &Layer<WORDS>,
        before: &Layer<WORDS>,
        next: &mut Layer<WORDS>,
    ) -> u64 {
        let state = &layer.states[place];
        self.load(place, layer, before);
        let Context { graph, masks, bounds, cutoff, .. } = *self.context;
        let devices = graph.devices;
        let mut tried = 0;
        for task in state.front.iter().filter(|task| masks.predecessors[*task].is_within(&state.done)) {
            for device in 0..devices {
                let at = task * devices + device;
                let start = self.start_us[at];
                let end = start + bounds.time_us[at];
                if end + bounds.tail_us[at] > cutoff || self.comes_too_late(state, task, device) {
                    continue;
                }
                self.add(place as u32, state, (task, device), (start, end), next);
                tried += 1;
            }
        }
        // Looking at a state is work too, and a search that only does that has to end.
        tried.max(1)
    }

    /// Whether the task could have started before the one that was started last, without being in its way: then that
    /// order of starts is looked at elsewhere, and is better.
    fn comes_too_late(&self, state: &State<WORDS>, task: usize, device: usize) -> bool {
        let at = task * self.context.graph.devices + device;
        device != usize::from(state.device)
            && self.earlier_front.contains(task)
            && self.earlier_us[at] < state.begun
            && self.context.bounds.time_us[at] > 0.0
            && !self.context.masks.successors[usize::from(state.task)].contains(task)
            && !self.context.masks.mates[usize::from(state.task)].contains(task)
    }

    /// Reads a state's figures, and works out the earliest starts that it does not keep.
    fn load(&mut self, place: usize, layer: &Layer<WORDS>, before: &Layer<WORDS>) {
        let devices = self.context.graph.devices;
        let state = &layer.states[place];
        let figures = layer.figures(place);
        self.free_us.copy_from_slice(&figures[..devices]);
        if self.counts_memory {
            self.held.copy_from_slice(&figures[devices..2 * devices]);
        }
        let rows = state.front.iter().zip(figures[self.header..].chunks(devices));
        for (task, row) in rows {
            self.start_us[task * devices..(task + 1) * devices].copy_from_slice(row);
        }
        self.earlier_front = Set::EMPTY;
        if let Some(parent) = before.states.get(state.parent as usize) {
            self.earlier_front = parent.front;
            let order = layer.order(place, devices);
            let rows = parent.front.iter().zip(before.figures(state.parent as usize)[self.header..].chunks(devices));
            for (task, row) in rows {
                for device in 0..devices {
                    let from = order.map_or(device, |order| usize::from(order[device]));
                    self.earlier_us[task * devices + device] = row[from];
                }
            }
        }
        let Context { graph, masks, bounds, .. } = *self.context;
        let undone = masks.all.without(&state.done);
        let first = undone.iter().next().unwrap_or(0);
        let horizon =
            graph.tasks.min(first + self.context.pruning.horizon).max(state.front.last().map_or(0, |last| last + 1));
        self.horizon = horizon;
        for task in undone.iter().take_while(|task| *task < horizon) {
            let row = task * devices..(task + 1) * devices;
            if !state.front.contains(task) {
                let starts = &mut self.start_us[row.clone()];
                let heads = &bounds.head_us[row.clone()];
                for device in 0..devices {
                    starts[device] = heads[device].max(self.free_us[device]);
                }
                for arc in &graph.predecessors[task] {
                    let ends = &self.end_us[arc.task * devices..(arc.task + 1) * devices];
                    wait(starts, ends, graph.delays(arc));
                }
                self.exclude(task);
            }
            for at in row {
                self.end_us[at] = self.start_us[at] + bounds.time_us[at];
            }
        }
    }

    /// Makes starts infinite where the loaded state cannot have the task.
    fn exclude(&mut self, task: usize) {
        let Context { graph, bounds, cutoff, .. } = *self.context;
        for device in 0..graph.devices {
            let at = task * graph.devices + device;
            let full = self.counts_memory && self.held[device] + graph.need[task] > graph.capacity[device];
            if full || self.start_us[at] + bounds.time_us[at] + bounds.tail_us[at] > cutoff {
                self.start_us[at] = f64::INFINITY;
            }
        }
    }

    /// Adds the state after one more task, unless it cannot end by the cutoff.
    fn add(
        &mut self,
        parent: u32,
        state: &State<WORDS>,
        (task, device): (usize, usize),
        (start, end): (Micros, Micros),
        next: &mut Layer<WORDS>,
    ) {
        let Context { graph, masks, bounds, cutoff, .. } = *self.context;
        let devices = graph.devices;
        let mut done = state.done;
        done.insert(task);
        let mut front = state.front.union(&masks.successors[task]).union(&masks.mates[task]).without(&done);
        front.remove(task);
        let reach = state.reach.max(end + graph.delivery_us[task * devices + device]);
        for (child, free) in self.child_free_us.iter_mut().zip(&self.free_us) {
            *child = free.max(start);
        }
        self.child_free_us[device] = end;
        if self.counts_memory {
            self.child_held.copy_from_slice(&self.held);
            if graph.capacity[device].is_finite() {
                self.child_held[device] += graph.need[task];
            }
        }
        let undone = masks.all.without(&done);
        let Some(first) = undone.iter().next() else {
            let last = State {
                done,
                front: Set::EMPTY,
                parent,
                task: task as u16,
                device: device as u8,
                begun: start,
                reach,
                bound: reach,
                sum: reach,
            };
            self.order.iter_mut().enumerate().for_each(|(place, device)| *device = place as u8);
            if reach <= cutoff {
                next.add(last, &[], &self.order);
            }
            return;
        };
        let least = state.bound.max(end + bounds.tail_us[task * devices + device]).max(reach);
        let Some((path, horizon)) = self.propagate(&undone, task, device, end) else { return };
        let bound = least.max(path);
        self.sorted_free.clear();
        self.sorted_free.extend(self.child_free_us.iter().copied().zip(0..devices));
        self.sorted_free.sort_unstable_by(|a, b| a.partial_cmp(b).expect("free times are numbers"));
        let bound = bounds.load(&done, first, &self.sorted_free, &self.child_us[..horizon * devices], cutoff, bound);
        if bound > cutoff {
            return;
        }
        let (sum, device) = self.write_figures(&front, device);
        let child =
            State { done, front, parent, task: task as u16, device: device as u8, begun: start, reach, bound, sum };
        next.add(child, &self.figures, &self.order);
    }

    /// Earliest starts after the extension, up to a horizon; the longest path through them and the horizon, or nothing if
    /// a task has no device left.
    fn propagate(&mut self, undone: &Set<WORDS>, task: usize, device: usize, end: Micros) -> Option<(Micros, usize)> {
        let Context { graph, masks, bounds, cutoff, .. } = *self.context;
        let devices = graph.devices;
        let mut longest: Micros = 0.0;
        let mut moved = Set::<WORDS>::EMPTY;
        moved.insert(task);
        self.soonest_us.fill(cutoff);
        let mut first_end = f64::INFINITY;
        // Tasks that the extension makes neighbours of what is done have figures, wherever they are.
        let horizon =
            self.horizon.max(masks.successors[task].union(&masks.mates[task]).last().map_or(0, |last| last + 1));
        for other in undone.iter().take_while(|other| *other < horizon) {
            let row = other * devices..(other + 1) * devices;
            let starts = &mut self.child_us[row.clone()];
            let known = if other < self.horizon { &self.start_us[row.clone()] } else { &bounds.head_us[row.clone()] };
            let mut changed = other >= self.horizon;
            for place in 0..devices {
                starts[place] = known[place].max(self.child_free_us[place]);
                changed |= known[place] < self.child_free_us[place];
            }
            if self.counts_memory {
                // Behind the horizon, nothing has been excluded yet.
                let filled = if other < self.horizon { device..device + 1 } else { 0..devices };
                for place in filled {
                    if self.child_held[place] + graph.need[other] > graph.capacity[place] {
                        changed |= starts[place].is_finite();
                        starts[place] = f64::INFINITY;
                    }
                }
            }
            if masks.mates[task].contains(other) {
                changed = true;
                let elsewhere = starts.iter_mut().enumerate().filter(|(place, _)| *place != device);
                elsewhere.for_each(|(_, start)| *start = f64::INFINITY);
            }
            if masks.predecessors[other].meets(&moved) {
                changed = true;
                for arc in graph.predecessors[other].iter().filter(|arc| moved.contains(arc.task)) {
                    let delays = graph.delays(arc);
                    if arc.task == task {
                        let delays = &delays[device * devices..(device + 1) * devices];
                        for place in 0..devices {
                            starts[place] = starts[place].max(end + delays[place]);
                        }
                    } else {
                        wait(starts, &self.child_end_us[arc.task * devices..(arc.task + 1) * devices], delays);
                    }
                }
            }
            if changed {
                moved.insert(other);
                let ends = &mut self.child_end_us[row.clone()];
                let (times, tails) = (&bounds.time_us[row.clone()], &bounds.tail_us[row]);
                let mut least = f64::INFINITY;
                for place in 0..devices {
                    let end = starts[place] + times[place];
                    let through = end + tails[place];
                    if through > cutoff {
                        starts[place] = f64::INFINITY;
                        ends[place] = f64::INFINITY;
                    } else {
                        ends[place] = end;
                        first_end = f64::min(first_end, end);
                        least = f64::min(least, through);
                    }
                }
                if least > cutoff {
                    return None;
                }
                longest = longest.max(least);
            } else {
                first_end = self.end_us[row].iter().copied().fold(first_end, f64::min);
            }
            for (soonest, start) in self.soonest_us.iter_mut().zip(&*starts) {
                *soonest = soonest.min(*start);
            }
        }
        // A device is not used before something can start on it. What is behind the horizon waits for something before.
        let behind = if undone.last() >= Some(horizon) { first_end } else { f64::INFINITY };
        for (free, soonest) in self.child_free_us.iter_mut().zip(&self.soonest_us) {
            *free = free.max(soonest.min(behind));
        }
        Some((longest, horizon))
    }

    /// Writes the figures of the extension, with equal devices in a canonical order; returns the sum of the times, and
    /// where the device has come.
    fn write_figures(&mut self, front: &Set<WORDS>, device: usize) -> (f64, usize) {
        let (devices, cutoff) = (self.context.graph.devices, self.context.cutoff);
        let mut place = device;
        if !self.order.is_empty() {
            let (free, held, starts) = (&self.child_free_us, &self.child_held, &self.child_us);
            self.context.classes.arrange(&mut self.order, |a, b| {
                let first = free[a].total_cmp(&free[b]).then(held[a].total_cmp(&held[b]));
                let rows = front.iter().map(|task| task * devices);
                first.then_with(|| {
                    rows.map(|row| starts[row + a].total_cmp(&starts[row + b]))
                        .find(|order| order.is_ne())
                        .unwrap_or(std::cmp::Ordering::Equal)
                })
            });
            place = self.order.iter().position(|old| usize::from(*old) == device).expect("an order has every device");
        }
        let old = |new: usize| self.order.get(new).map_or(new, |old| usize::from(*old));
        self.figures.clear();
        let mut sum = 0.0;
        for new in 0..devices {
            let free = self.child_free_us[old(new)];
            sum += free;
            self.figures.push(free);
        }
        if self.counts_memory {
            self.figures.extend((0..devices).map(|new| self.child_held[old(new)]));
        }
        for task in front.iter() {
            for new in 0..devices {
                let start = self.child_us[task * devices + old(new)];
                sum += start.min(cutoff);
                self.figures.push(start);
            }
        }
        (sum, place)
    }
}

/// Moves a task behind the earliest end of an undone predecessor, wherever that runs.
fn wait(starts: &mut [Micros], ends: &[Micros], delays: &[Micros]) {
    let devices = ends.len();
    let starts = &mut starts[..devices];
    let delays = &delays[..devices * devices];
    for device in 0..devices {
        let mut least = f64::INFINITY;
        for from in 0..devices {
            least = f64::min(least, ends[from] + delays[from * devices + device]);
        }
        starts[device] = starts[device].max(least);
    }
}
