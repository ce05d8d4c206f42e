//! One more task on a partial schedule, and what follows from it for all that is undone.
//!
//! Schedules grow in the order of starts, so nothing starts before the latest start so far. Every undone task gets an
//! earliest start on each device, from the devices' loads, from what is done, and from the earliest ends of undone
//! predecessors; a device that the cutoff, the memory or a mate excludes is infinite. These starts are the state: no
//! more is known about the past, and no less is needed for the future.

use super::bounds::Bounds;
use super::graph::Graph;
use super::layer::{Birth, Layer, State};
use super::masks::Masks;
use super::set::Set;
use super::symmetry::Classes;
use crate::units::Micros;

/// What does not change during a sweep.
pub(crate) struct Context<'a, const WORDS: usize> {
    pub(crate) graph: &'a Graph,
    pub(crate) masks: &'a Masks<WORDS>,
    pub(crate) classes: &'a Classes,
    pub(crate) bounds: &'a Bounds,
    /// Schedules that end later are not looked for.
    pub(crate) cutoff: Micros,
}

impl<const WORDS: usize> Context<'_, WORDS> {
    /// Whether states have to know how full devices are.
    fn counts_memory(&self) -> bool {
        self.graph.capacity.iter().any(|capacity| capacity.is_finite())
    }

    /// Where the figures of the front begin: after the devices' free times, and what they hold if that matters.
    fn header(&self) -> usize {
        self.graph.devices * if self.counts_memory() { 2 } else { 1 }
    }

    /// The state before anything is done.
    pub(crate) fn root(&self) -> Layer<WORDS> {
        let devices = self.graph.devices;
        let mut figures = vec![0.0; self.header()];
        for task in self.masks.sources.iter() {
            for at in task * devices..(task + 1) * devices {
                let possible = self.bounds.time_us[at].is_finite();
                figures.push(if possible { self.bounds.head_us[at] } else { f64::INFINITY });
            }
        }
        let mut layer = Layer::default();
        let birth = Birth {
            done: Set::EMPTY,
            front: self.masks.sources,
            parent: 0,
            task: 0,
            device: 0,
            begun: 0.0,
            reach: 0.0,
            bound: self.bounds.value,
            sum: 0.0,
        };
        let order: Vec<u8> = if self.classes.is_empty() { Vec::new() } else { (0..devices as u8).collect() };
        layer.add(birth, &figures, &order);
        layer
    }
}

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
    /// For the extension at hand.
    child_us: Vec<Micros>,
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
            child_us: table(),
            child_free_us: vec![0.0; devices],
            child_held: vec![0.0; devices],
            sorted_free: Vec::with_capacity(devices),
            figures: Vec::new(),
            order: vec![0; if context.classes.is_empty() { 0 } else { devices }],
        }
    }

    /// Adds every extension of a state that the cutoff allows to the next layer.
    pub(crate) fn extend(
        &mut self,
        place: usize,
        layer: &Layer<WORDS>,
        before: &Layer<WORDS>,
        next: &mut Layer<WORDS>,
    ) {
        let state = &layer.states[place];
        self.load(place, layer, before);
        let Context { graph, masks, bounds, cutoff, .. } = *self.context;
        let devices = graph.devices;
        for task in state.front.iter().filter(|task| masks.predecessors[*task].is_within(&state.done)) {
            for device in 0..devices {
                let at = task * devices + device;
                let start = self.start_us[at];
                let end = start + bounds.time_us[at];
                if end + bounds.tail_us[at] > cutoff || self.comes_too_late(state, task, device) {
                    continue;
                }
                self.add(place as u32, state, (task, device), (start, end), next);
            }
        }
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
        let figures = layer.figures(state);
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
            let rows = parent.front.iter().zip(before.figures(parent)[self.header..].chunks(devices));
            for (task, row) in rows {
                for device in 0..devices {
                    let from = order.map_or(device, |order| usize::from(order[device]));
                    self.earlier_us[task * devices + device] = row[from];
                }
            }
        }
        let undone = self.context.masks.all.without(&state.done);
        for task in undone.without(&state.front).iter() {
            for device in 0..devices {
                self.start_us[task * devices + device] =
                    self.context.bounds.head_us[task * devices + device].max(self.free_us[device]);
            }
            for index in 0..self.context.graph.predecessors[task].len() {
                Self::wait_for_undone(self.context, task, index, &mut self.start_us);
            }
            self.exclude(task);
        }
    }

    /// Moves a task behind the earliest end of an undone predecessor, wherever that runs.
    fn wait_for_undone(context: &Context<'_, WORDS>, task: usize, index: usize, start_us: &mut [Micros]) {
        let devices = context.graph.devices;
        let arc = &context.graph.predecessors[task][index];
        let delays = context.graph.delays(arc);
        for device in 0..devices {
            let mut least = f64::INFINITY;
            for from in 0..devices {
                let at = arc.task * devices + from;
                least = least.min(start_us[at] + context.bounds.time_us[at] + delays[from * devices + device]);
            }
            let start = &mut start_us[task * devices + device];
            *start = start.max(least);
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
            let birth = Birth {
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
                next.add(birth, &[], &self.order);
            }
            return;
        };
        let least = state.bound.max(end + bounds.tail_us[task * devices + device]).max(reach);
        let Some(path) = self.propagate(&undone, task, device, end) else { return };
        let bound = least.max(path);
        self.sorted_free.clear();
        self.sorted_free.extend(self.child_free_us.iter().copied().zip(0..devices));
        self.sorted_free.sort_unstable_by(|a, b| a.partial_cmp(b).expect("free times are numbers"));
        let bound = bounds.load(&done, first, &self.sorted_free, cutoff, bound);
        if bound > cutoff {
            return;
        }
        let (sum, device) = self.write_figures(&front, device);
        let birth =
            Birth { done, front, parent, task: task as u16, device: device as u8, begun: start, reach, bound, sum };
        next.add(birth, &self.figures, &self.order);
    }

    /// Earliest starts after the extension; the longest path through them, or none if a task has no device left.
    fn propagate(&mut self, undone: &Set<WORDS>, task: usize, device: usize, end: Micros) -> Option<Micros> {
        let Context { graph, masks, bounds, cutoff, .. } = *self.context;
        let devices = graph.devices;
        let mut longest: Micros = 0.0;
        let mut moved = Set::<WORDS>::EMPTY;
        moved.insert(task);
        for other in undone.iter() {
            let row = other * devices..(other + 1) * devices;
            let mate = masks.mates[task].contains(other);
            self.child_us[row.clone()].copy_from_slice(&self.start_us[row.clone()]);
            let starts = &mut self.child_us[row.clone()];
            let mut changed = mate;
            for (start, free) in starts.iter_mut().zip(&self.child_free_us) {
                if *start < *free {
                    *start = *free;
                    changed = true;
                }
            }
            if self.counts_memory && self.child_held[device] + graph.need[other] > graph.capacity[device] {
                changed |= starts[device].is_finite();
                starts[device] = f64::INFINITY;
            }
            if mate {
                for (place, start) in starts.iter_mut().enumerate() {
                    *start = if place == device { *start } else { f64::INFINITY };
                }
            }
            if masks.predecessors[other].meets(&moved) {
                changed = true;
                for (index, arc) in graph.predecessors[other].iter().enumerate() {
                    if arc.task == task {
                        let delays = &graph.delays(arc)[device * devices..(device + 1) * devices];
                        for (start, delay) in self.child_us[row.clone()].iter_mut().zip(delays) {
                            *start = start.max(end + delay);
                        }
                    } else if moved.contains(arc.task) {
                        Self::wait_for_undone(self.context, other, index, &mut self.child_us);
                    }
                }
            }
            if changed {
                moved.insert(other);
                let mut least = f64::INFINITY;
                for at in row {
                    let through = self.child_us[at] + bounds.time_us[at] + bounds.tail_us[at];
                    if through > cutoff {
                        self.child_us[at] = f64::INFINITY;
                    } else {
                        least = least.min(through);
                    }
                }
                if least > cutoff {
                    return None;
                }
                longest = longest.max(least);
            }
        }
        // A device is not used before something can start on it.
        for (place, free) in self.child_free_us.iter_mut().enumerate() {
            let earliest = undone.iter().map(|other| self.child_us[other * devices + place]).fold(cutoff, f64::min);
            *free = free.max(earliest);
        }
        Some(longest)
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
