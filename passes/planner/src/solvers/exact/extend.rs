//! Appends a task to a partial schedule and propagates the consequences to all unfinished tasks.
//!
//! Schedules grow in the order of starts, so nothing starts before the latest start so far. Every unfinished task has
//! an earliest start on each device, from the devices' free times, from finished predecessors, and from the earliest
//! ends of unfinished ones; it is infinite if the cutoff, memory or co-location excludes the device. These starts are
//! the state: the future depends on nothing else.

use super::context::Context;
use super::layer::{Layer, State};
use super::set::Set;
use crate::model::units::{Bytes, Micros};

/// Computes the extensions of states one by one; its buffers are reused.
pub(crate) struct Extender<'a, const WORDS: usize> {
    context: &'a Context<'a, WORDS>,
    header: usize,
    counts_memory: bool,
    free_us: Vec<Micros>,
    held: Vec<Bytes>,
    /// Earliest starts of unfinished tasks in the state, by task and device.
    start_us: Vec<Micros>,
    /// Earliest starts in the parent state, for tasks of its front.
    parent_start_us: Vec<Micros>,
    parent_front: Set<WORDS>,
    /// First task without earliest starts.
    horizon: usize,
    /// Ends that correspond to the earliest starts.
    end_us: Vec<Micros>,
    /// Earliest starts and their ends after the current extension.
    child_start_us: Vec<Micros>,
    child_end_us: Vec<Micros>,
    /// By device: earliest start of any unfinished task there.
    soonest_us: Vec<Micros>,
    child_free_us: Vec<Micros>,
    child_held: Vec<Bytes>,
    sorted_free: Vec<(Micros, usize)>,
    figures: Vec<f64>,
    order: Vec<u8>,
}

impl<'a, const WORDS: usize> Extender<'a, WORDS> {
    pub(crate) fn new(context: &'a Context<'a, WORDS>) -> Self {
        let (tasks, devices) = (context.graph.tasks, context.graph.devices);
        let table = || vec![Micros::ZERO; tasks * devices];
        Self {
            context,
            header: context.header(),
            counts_memory: context.counts_memory(),
            free_us: vec![Micros::ZERO; devices],
            held: vec![Bytes::ZERO; devices],
            start_us: table(),
            parent_start_us: table(),
            parent_front: Set::EMPTY,
            horizon: 0,
            end_us: table(),
            child_start_us: table(),
            child_end_us: table(),
            soonest_us: vec![Micros::ZERO; devices],
            child_free_us: vec![Micros::ZERO; devices],
            child_held: vec![Bytes::ZERO; devices],
            sorted_free: Vec::with_capacity(devices),
            figures: Vec::new(),
            order: vec![0; if context.classes.is_empty() { 0 } else { devices }],
        }
    }

    /// Adds every extension of a state that the cutoff allows to the next layer; returns the number of extensions
    /// tried.
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
        for task in state.front.iter().filter(|task| masks.predecessors[*task].is_subset(&state.done)) {
            for device in 0..devices {
                let at = task * devices + device;
                let start = self.start_us[at];
                let end = start + bounds.time_us[at];
                if end + bounds.tail_us[at] > cutoff || self.violates_start_order(state, task, device) {
                    continue;
                }
                self.add(place as u32, state, (task, device), (start, end), next);
                tried += 1;
            }
        }
        // Loading a state counts as work too, so that a search without extensions terminates.
        tried.max(1)
    }

    /// Returns true if the task could have started before the last one without delaying it. The schedule in which it
    /// does is no worse, and is explored from another state.
    fn violates_start_order(&self, state: &State<WORDS>, task: usize, device: usize) -> bool {
        let at = task * self.context.graph.devices + device;
        device != usize::from(state.device)
            && self.parent_front.contains(task)
            && self.parent_start_us[at] < state.last_start
            && self.context.bounds.time_us[at] > Micros::ZERO
            && !self.context.masks.successors[usize::from(state.task)].contains(task)
            && !self.context.masks.colocated[usize::from(state.task)].contains(task)
    }

    /// Loads a state's figures and computes the earliest starts that it does not store.
    fn load(&mut self, place: usize, layer: &Layer<WORDS>, before: &Layer<WORDS>) {
        let devices = self.context.graph.devices;
        let state = &layer.states[place];
        let figures = layer.figures(place);
        read(&mut self.free_us, &figures[..devices], Micros);
        if self.counts_memory {
            read(&mut self.held, &figures[devices..2 * devices], Bytes);
        }
        let rows = state.front.iter().zip(figures[self.header..].chunks(devices));
        for (task, row) in rows {
            read(&mut self.start_us[task * devices..(task + 1) * devices], row, Micros);
        }
        self.parent_front = Set::EMPTY;
        if let Some(parent) = before.states.get(state.parent as usize) {
            self.parent_front = parent.front;
            let order = layer.order(place, devices);
            let rows = parent.front.iter().zip(before.figures(state.parent as usize)[self.header..].chunks(devices));
            for (task, row) in rows {
                for device in 0..devices {
                    let from = order.map_or(device, |order| usize::from(order[device]));
                    self.parent_start_us[task * devices + device] = Micros(row[from]);
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
                    delay_starts(starts, ends, graph.delays(arc));
                }
                self.exclude(task);
            }
            for at in row {
                self.end_us[at] = self.start_us[at] + bounds.time_us[at];
            }
        }
    }

    /// Sets a task's earliest starts to infinity on devices without enough memory, and where it would exceed the
    /// cutoff.
    fn exclude(&mut self, task: usize) {
        let Context { graph, bounds, cutoff, .. } = *self.context;
        for device in 0..graph.devices {
            let at = task * graph.devices + device;
            let full = self.counts_memory && self.held[device] + graph.need[task] > graph.capacity[device];
            if full || self.start_us[at] + bounds.time_us[at] + bounds.tail_us[at] > cutoff {
                self.start_us[at] = Micros::INFINITY;
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
        let front = state.front.union(&masks.successors[task]).union(&masks.colocated[task]).without(&done);
        let last_delivery = state.last_delivery.max(end + graph.delivery_us[task * devices + device]);
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
                last_start: start,
                last_delivery,
                bound: last_delivery,
                sum: last_delivery,
            };
            self.order.iter_mut().enumerate().for_each(|(place, device)| *device = place as u8);
            if last_delivery <= cutoff {
                next.add(last, &[], &self.order);
            }
            return;
        };
        let least = state.bound.max(end + bounds.tail_us[task * devices + device]).max(last_delivery);
        let Some((path, horizon)) = self.propagate(&undone, task, device, end) else { return };
        let bound = least.max(path);
        self.sorted_free.clear();
        self.sorted_free.extend(self.child_free_us.iter().copied().zip(0..devices));
        self.sorted_free.sort_unstable_by(|a, b| a.partial_cmp(b).expect("free times are numbers"));
        let bound =
            bounds.load(&done, first, &self.sorted_free, &self.child_start_us[..horizon * devices], cutoff, bound);
        if bound > cutoff {
            return;
        }
        let (sum, device) = self.write_figures(&front, device);
        let child = State {
            done,
            front,
            parent,
            task: task as u16,
            device: device as u8,
            last_start: start,
            last_delivery,
            bound,
            sum,
        };
        next.add(child, &self.figures, &self.order);
    }

    /// Computes earliest starts after the extension, up to a horizon. Returns the longest path through them and the
    /// horizon, or `None` if a task has no device left.
    fn propagate(&mut self, undone: &Set<WORDS>, task: usize, device: usize, end: Micros) -> Option<(Micros, usize)> {
        let Context { graph, masks, bounds, cutoff, .. } = *self.context;
        let devices = graph.devices;
        let mut longest = Micros::ZERO;
        // The new task, and tasks whose earliest starts have changed.
        let mut delayed = Set::<WORDS>::EMPTY;
        delayed.insert(task);
        self.soonest_us.fill(cutoff);
        let mut first_end = Micros::INFINITY;
        // Successors and co-located tasks of the new task join the front, so they need starts even beyond the horizon.
        let horizon =
            self.horizon.max(masks.successors[task].union(&masks.colocated[task]).last().map_or(0, |last| last + 1));
        for other in undone.iter().take_while(|other| *other < horizon) {
            let row = other * devices..(other + 1) * devices;
            let starts = &mut self.child_start_us[row.clone()];
            let known = if other < self.horizon { &self.start_us[row.clone()] } else { &bounds.head_us[row.clone()] };
            let mut changed = other >= self.horizon;
            for place in 0..devices {
                starts[place] = known[place].max(self.child_free_us[place]);
                changed |= known[place] < self.child_free_us[place];
            }
            if self.counts_memory {
                // Beyond the horizon, nothing has been excluded yet.
                let filled = if other < self.horizon { device..device + 1 } else { 0..devices };
                for place in filled {
                    if self.child_held[place] + graph.need[other] > graph.capacity[place] {
                        changed |= starts[place].is_finite();
                        starts[place] = Micros::INFINITY;
                    }
                }
            }
            if masks.colocated[task].contains(other) {
                changed = true;
                let elsewhere = starts.iter_mut().enumerate().filter(|(place, _)| *place != device);
                elsewhere.for_each(|(_, start)| *start = Micros::INFINITY);
            }
            if masks.predecessors[other].intersects(&delayed) {
                changed = true;
                for arc in graph.predecessors[other].iter().filter(|arc| delayed.contains(arc.task)) {
                    let delays = graph.delays(arc);
                    if arc.task == task {
                        let delays = &delays[device * devices..(device + 1) * devices];
                        for place in 0..devices {
                            starts[place] = starts[place].max(end + delays[place]);
                        }
                    } else {
                        delay_starts(starts, &self.child_end_us[arc.task * devices..(arc.task + 1) * devices], delays);
                    }
                }
            }
            if changed {
                delayed.insert(other);
                let ends = &mut self.child_end_us[row.clone()];
                let (times, tails) = (&bounds.time_us[row.clone()], &bounds.tail_us[row]);
                let mut least = Micros::INFINITY;
                for place in 0..devices {
                    let end = starts[place] + times[place];
                    let through = end + tails[place];
                    if through > cutoff {
                        starts[place] = Micros::INFINITY;
                        ends[place] = Micros::INFINITY;
                    } else {
                        ends[place] = end;
                        first_end = Micros::min(first_end, end);
                        least = Micros::min(least, through);
                    }
                }
                if least > cutoff {
                    return None;
                }
                longest = longest.max(least);
            } else {
                first_end = self.end_us[row].iter().copied().fold(first_end, Micros::min);
            }
            for (soonest, start) in self.soonest_us.iter_mut().zip(&*starts) {
                *soonest = soonest.min(*start);
            }
        }
        // A device is idle until something can start on it. A task beyond the horizon depends on an unfinished task
        // before the horizon, so it cannot start before `first_end`.
        let behind = if undone.last() >= Some(horizon) { first_end } else { Micros::INFINITY };
        for (free, soonest) in self.child_free_us.iter_mut().zip(&self.soonest_us) {
            *free = free.max(soonest.min(behind));
        }
        Some((longest, horizon))
    }

    /// Writes the figures of the extension, with equal devices in canonical order; returns the sum of the times, and
    /// the new index of the device.
    fn write_figures(&mut self, front: &Set<WORDS>, device: usize) -> (Micros, usize) {
        let (devices, cutoff) = (self.context.graph.devices, self.context.cutoff);
        let mut place = device;
        if !self.order.is_empty() {
            let (free, held, starts) = (&self.child_free_us, &self.child_held, &self.child_start_us);
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
        let mut sum = Micros::ZERO;
        for new in 0..devices {
            let free = self.child_free_us[old(new)];
            sum += free;
            self.figures.push(free.0);
        }
        if self.counts_memory {
            self.figures.extend((0..devices).map(|new| self.child_held[old(new)].0));
        }
        for task in front.iter() {
            for new in 0..devices {
                let start = self.child_start_us[task * devices + old(new)];
                sum += start.min(cutoff);
                self.figures.push(start.0);
            }
        }
        (sum, place)
    }
}

/// Copies figures of a state into a table with units.
fn read<T>(row: &mut [T], figures: &[f64], unit: impl Fn(f64) -> T) {
    row.iter_mut().zip(figures).for_each(|(cell, figure)| *cell = unit(*figure));
}

/// Raises the earliest starts of a task to the earliest arrival from a predecessor that may run on any of its devices.
fn delay_starts(starts: &mut [Micros], ends: &[Micros], delays: &[Micros]) {
    let devices = ends.len();
    let starts = &mut starts[..devices];
    let delays = &delays[..devices * devices];
    for device in 0..devices {
        let mut least = Micros::INFINITY;
        for from in 0..devices {
            least = Micros::min(least, ends[from] + delays[from * devices + device]);
        }
        starts[device] = starts[device].max(least);
    }
}
