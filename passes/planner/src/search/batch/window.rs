//! A window over a queue's schedule: see [`crate::search::window`], of which this is the form with cuts.

use super::cut;
use super::model::Model;
use super::schedule::{Choice, Schedule, arrival, rest};
use crate::random::Random;
use crate::search::method::{Around, Heat};
use crate::search::model::Arc;
use crate::units::{Bytes, Micros};

/// The window's own tables; `local` numbers run over the tasks in it.
#[derive(Debug, Default)]
pub(super) struct Window {
    pub(super) devices: usize,
    pub(super) tasks: Vec<u32>,
    /// Tensors from inside the window, the task as a local number; by local task.
    inner: Vec<Vec<Arc>>,
    /// Tensors from before the window, and to behind it.
    before: Vec<Vec<Arc>>,
    behind: Vec<Vec<Arc>>,
    waits_for: Vec<u64>,
    waited_for: Vec<u64>,
    /// The order of local tasks, and where each stands in it.
    pub(super) order: Vec<u8>,
    pub(super) place: Vec<u8>,
    /// By local task and device.
    pub(super) cuts: Vec<u64>,
    end: Vec<Micros>,
    trial: Vec<Micros>,
    start_end: Vec<Micros>,
    free: Vec<Micros>,
    peak: Vec<Micros>,
    trial_free: Vec<Micros>,
    device_tail: Vec<Micros>,
    pub(super) value: Micros,
    best: Micros,
    best_order: Vec<u8>,
    best_cuts: Vec<u64>,
    /// Whether a task's cut may change.
    pub(super) fixed: Vec<bool>,
    pub(super) room: Vec<Bytes>,
    /// The cut being tried.
    pub(super) fresh: Vec<u64>,
}

/// A vector of so many empty vectors that keeps what those have allocated.
fn empty(lists: &mut Vec<Vec<Arc>>, count: usize) {
    lists.resize_with(count, Vec::new);
    lists.iter_mut().for_each(Vec::clear);
}

/// A vector of so many of a value.
fn fill<T: Clone>(list: &mut Vec<T>, count: usize, value: T) {
    list.clear();
    list.resize(count, value);
}

impl Window {
    /// Takes the window's part of the order. Ends before it and tails behind it must be right.
    pub(super) fn load(&mut self, model: &Model, schedule: &Schedule, around: &Around) {
        let (first, last, devices) = (around.first, around.last, model.devices);
        let width = last - first;
        self.devices = devices;
        self.tasks.clear();
        self.tasks.extend_from_slice(&schedule.choice.order[first..last]);
        empty(&mut self.inner, width);
        empty(&mut self.before, width);
        empty(&mut self.behind, width);
        fill(&mut self.waits_for, width, 0);
        fill(&mut self.waited_for, width, 0);
        self.cuts.clear();
        self.fixed.clear();
        for local in 0..width {
            let task = self.tasks[local] as usize;
            self.cuts.extend_from_slice(&schedule.choice.cuts[task * devices..(task + 1) * devices]);
            self.fixed.push(model.together[task]);
            for &arc in model.graph.preds(task) {
                let place = schedule.place[arc.task as usize] as usize;
                if place < first {
                    self.before[local].push(arc);
                } else {
                    let other = place - first;
                    self.inner[local].push(Arc { task: other as u32, hop: arc.hop });
                    self.waits_for[local] |= 1 << other;
                    self.waited_for[other] |= 1 << local;
                }
            }
            let behind = |arc: &&Arc| schedule.place[arc.task as usize] as usize >= last;
            self.behind[local].extend(model.graph.succs(task).iter().filter(behind));
        }
        self.order.clear();
        self.order.extend(0..width as u8);
        self.place.clone_from(&self.order);
        fill(&mut self.end, width * devices, 0.0);
        fill(&mut self.trial, width * devices, 0.0);
        self.free.clone_from(&around.free);
        self.free.resize((width + 1) * devices, 0.0);
        fill(&mut self.peak, width + 1, around.floor);
        fill(&mut self.trial_free, devices, 0.0);
        fill(&mut self.fresh, devices, 0);
        self.device_tail.clone_from(&around.device_tail);
        self.room.clone_from(&around.room);
        self.value = self.simulate(model, schedule, 0, f64::INFINITY);
        self.keep(model, schedule, 0);
        self.start_end.clone_from(&self.end);
        self.remember();
    }

    fn remember(&mut self) {
        self.best = self.value;
        self.best_order.clone_from(&self.order);
        self.best_cuts.clone_from(&self.cuts);
    }

    /// The makespan over a part's end and what comes behind the window.
    fn behind(&self, model: &Model, schedule: &Schedule, local: usize, device: usize, part: u64) -> Micros {
        let devices = self.devices;
        let mut after: Micros = 0.0;
        for &arc in &self.behind[local] {
            let row = arc.task as usize * devices;
            let (cut, tails) = (&schedule.choice.cuts[row..row + devices], &schedule.tail[row..row + devices]);
            after = after.max(rest(model, arc, cut, tails, device, part));
        }
        after
    }

    /// The makespan when the tasks from a place on run as chosen now; infinite once it is known to be above `limit`.
    fn simulate(&mut self, model: &Model, schedule: &Schedule, from: usize, limit: Micros) -> Micros {
        let devices = self.devices;
        let mut value = self.peak[from];
        self.trial_free.copy_from_slice(&self.free[from * devices..(from + 1) * devices]);
        for place in from..self.order.len() {
            let local = usize::from(self.order[place]);
            for device in 0..devices {
                let part = self.cuts[local * devices + device];
                if part == 0 {
                    continue;
                }
                let mut start = self.trial_free[device];
                for &arc in &self.inner[local] {
                    let row = arc.task as usize * devices;
                    let (cut, ends) = (&self.cuts[row..row + devices], &self.trial[row..row + devices]);
                    start = start.max(arrival(model, arc, cut, ends, device, part));
                }
                for &arc in &self.before[local] {
                    let row = arc.task as usize * devices;
                    let (cut, ends) = (&schedule.choice.cuts[row..row + devices], &schedule.end[row..row + devices]);
                    start = start.max(arrival(model, arc, cut, ends, device, part));
                }
                let end = start + model.time(self.tasks[local] as usize, device, part.count_ones());
                self.trial[local * devices + device] = end;
                self.trial_free[device] = end;
                if end > limit {
                    return f64::INFINITY;
                }
                value = value.max(end + self.behind(model, schedule, local, device, part));
                if value > limit {
                    return f64::INFINITY;
                }
            }
        }
        for (free, tail) in self.trial_free.iter().zip(&self.device_tail) {
            value = value.max(free + tail);
        }
        value
    }

    /// Makes the schedule tried last, simulated from a place on, the current one.
    fn keep(&mut self, model: &Model, schedule: &Schedule, from: usize) {
        let devices = self.devices;
        for place in from..self.order.len() {
            let local = usize::from(self.order[place]);
            self.place[local] = place as u8;
            self.free.copy_within(place * devices..(place + 1) * devices, (place + 1) * devices);
            let mut peak = self.peak[place];
            for device in 0..devices {
                let cell = local * devices + device;
                let part = self.cuts[cell];
                if part != 0 {
                    self.end[cell] = self.trial[cell];
                    self.free[(place + 1) * devices + device] = self.trial[cell];
                    peak = peak.max(self.trial[cell] + self.behind(model, schedule, local, device, part));
                }
            }
            self.peak[place + 1] = peak;
        }
    }

    fn shift(order: &mut [u8], from: usize, to: usize) {
        if from < to {
            order[from..=to].rotate_left(1);
        } else {
            order[to..=from].rotate_right(1);
        }
    }

    /// How far a task can go from its place, up to `wanted`, without passing one it waits for or that waits for it.
    pub(super) fn reach(&self, place: usize, wanted: usize) -> usize {
        let local = usize::from(self.order[place]);
        let mut to = place;
        while to < wanted && self.waited_for[local] >> self.order[to + 1] & 1 == 0 {
            to += 1;
        }
        while to > wanted && self.waits_for[local] >> self.order[to - 1] & 1 == 0 {
            to -= 1;
        }
        to
    }

    /// The cut of a local task.
    pub(super) fn cut(&self, local: usize) -> &[u64] {
        &self.cuts[local * self.devices..(local + 1) * self.devices]
    }

    /// Makes the cut to try a random change of a task's own, or that of a neighbour.
    pub(super) fn propose(&mut self, schedule: &Schedule, local: usize, random: &mut Random) {
        let devices = self.devices;
        self.fresh.clear();
        let (inner, before, behind) = (&self.inner[local], &self.before[local], &self.behind[local]);
        let neighbours = inner.len() + before.len() + behind.len();
        if neighbours > 0 && random.below(3) == 0 {
            let pick = random.below(neighbours);
            let cut = if let Some(arc) = inner.get(pick) {
                self.cut(arc.task as usize)
            } else {
                let arc = before.iter().chain(behind).nth(pick - inner.len());
                let row = arc.map_or(self.tasks[local], |arc| arc.task) as usize * devices;
                &schedule.choice.cuts[row..row + devices]
            };
            let cut = cut.to_vec();
            self.fresh.extend(cut);
        } else {
            self.fresh.extend_from_slice(&self.cuts[local * devices..(local + 1) * devices]);
            cut::mutate(&mut self.fresh, random);
        }
    }

    /// Anneals inside the window.
    pub(super) fn anneal(&mut self, model: &Model, schedule: &Schedule, heat: Heat<'_>, random: &mut Random) -> u64 {
        let width = self.order.len();
        for _ in 0..heat.trials {
            let place = random.below(width);
            let local = usize::from(self.order[place]);
            let kind = random.below(8);
            if kind < 6 && !self.fixed[local] {
                self.propose(schedule, local, random);
            } else {
                self.stay(local);
            }
            let to = if kind >= 3 { self.reach(place, random.below(width)) } else { place };
            let limit = self.value + heat.threshold(random.next_u64());
            self.attempt(model, schedule, place, to, limit);
        }
        heat.trials as u64
    }

    /// Makes the cut to try a task's own.
    pub(super) fn stay(&mut self, local: usize) {
        self.fresh.clear();
        self.fresh.extend_from_slice(&self.cuts[local * self.devices..(local + 1) * self.devices]);
    }

    /// Moves the task at a place to another place and to the cut to try, if memory and a limit of the makespan allow.
    pub(super) fn attempt(
        &mut self,
        model: &Model,
        schedule: &Schedule,
        place: usize,
        to: usize,
        limit: Micros,
    ) -> bool {
        let local = usize::from(self.order[place]);
        let (task, row) = (self.tasks[local] as usize, local * self.devices);
        let same = self.cut(local) == self.fresh;
        let possible = same || model.runs(task, &self.fresh) && self.fits(model, local);
        if !possible || same && to == place {
            return false;
        }
        Self::shift(&mut self.order, place, to);
        self.cuts[row..row + self.devices].swap_with_slice(&mut self.fresh);
        let from = place.min(to);
        let value = self.simulate(model, schedule, from, limit);
        if value <= limit {
            self.value = value;
            self.keep(model, schedule, from);
            for (device, room) in self.room.iter_mut().enumerate() {
                *room += model.bytes(task, self.fresh[device]) - model.bytes(task, self.cuts[row + device]);
            }
            if value < self.best {
                self.remember();
            }
            return true;
        }
        Self::shift(&mut self.order, to, place);
        self.cuts[row..row + self.devices].swap_with_slice(&mut self.fresh);
        self.trial.copy_from_slice(&self.end);
        false
    }

    /// Whether devices have room for the cut to try.
    fn fits(&self, model: &Model, local: usize) -> bool {
        let task = self.tasks[local] as usize;
        let fits = |device: usize| {
            let (new, old) = (model.bytes(task, self.fresh[device]), model.bytes(task, self.cut(local)[device]));
            new <= old || new - old <= self.room[device]
        };
        (0..self.devices).all(fits)
    }

    /// Goes back to an order and to cuts that the window had before.
    pub(super) fn restore(
        &mut self,
        model: &Model,
        schedule: &Schedule,
        order: Vec<u8>,
        cuts: Vec<u64>,
        room: Vec<Bytes>,
    ) {
        (self.order, self.cuts, self.room) = (order, cuts, room);
        self.value = self.simulate(model, schedule, 0, f64::INFINITY);
        self.keep(model, schedule, 0);
    }

    /// The best makespan seen since the window was loaded.
    pub(super) fn best(&self) -> Micros {
        self.best
    }

    /// Writes the best schedule seen into the choice that the window was loaded from.
    pub(super) fn write_best(&self, first: usize, choice: &mut Choice) {
        self.write_as(first, &self.best_order, &self.best_cuts, choice);
    }

    /// Writes the current schedule into the choice that the window was loaded from.
    pub(super) fn write(&self, first: usize, choice: &mut Choice) {
        self.write_as(first, &self.order, &self.cuts, choice);
    }

    fn write_as(&self, first: usize, order: &[u8], cuts: &[u64], choice: &mut Choice) {
        for (place, &local) in order.iter().enumerate() {
            choice.order[first + place] = self.tasks[usize::from(local)];
        }
        for (&task, cut) in self.tasks.iter().zip(cuts.chunks(self.devices)) {
            choice.cuts[task as usize * self.devices..][..self.devices].copy_from_slice(cut);
        }
    }

    /// Writes the current schedule back, with the ends of its parts.
    pub(super) fn store(&self, schedule: &mut Schedule, first: usize) {
        self.write(first, &mut schedule.choice);
        for (local, &task) in self.tasks.iter().enumerate() {
            schedule.place[task as usize] = (first + usize::from(self.place[local])) as u32;
        }
        self.store_ends(schedule, &self.end);
    }

    /// Leaves the schedule as it was when the window was loaded, with the ends of its parts.
    pub(super) fn store_ends_of_start(&self, schedule: &mut Schedule) {
        self.store_ends(schedule, &self.start_end);
    }

    fn store_ends(&self, schedule: &mut Schedule, ends: &[Micros]) {
        for (&task, ends) in self.tasks.iter().zip(ends.chunks(self.devices)) {
            schedule.end[task as usize * self.devices..][..self.devices].copy_from_slice(ends);
        }
    }
}
