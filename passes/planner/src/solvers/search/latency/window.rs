//! Window: a few adjacent tasks in the order, with everything around them fixed.
//!
//! Tasks before the window are represented by release times, tasks after it by tails, so that simulating the window
//! alone gives the exact makespan, at a cost that does not depend on the size of the problem.

use super::Model;
use crate::model::units::{Bytes, Micros};
use crate::random::Random;
use crate::solvers::search::method::{Heat, Step, Surroundings};
use crate::solvers::search::model::{self, WindowState};
use crate::solvers::search::schedule::Schedule;

/// Maximum number of tasks in a window: one bit each in a mask.
pub(super) const MAX_WIDTH: usize = 64;

/// A task of the window that another one depends on.
#[derive(Clone, Copy, Debug)]
struct Inner {
    task: u8,
    hop: u32,
}

/// Tables of a window; `local` indices run over its tasks.
#[derive(Debug, Default)]
pub struct Window {
    devices: usize,
    tasks: Vec<u32>,
    /// By local task and device: arrival of operands from before the window.
    release: Vec<Micros>,
    /// By local task and device: time from the task's end to the makespan over readers behind the window.
    after: Vec<Micros>,
    time: Vec<Micros>,
    inner_at: Vec<u32>,
    inner: Vec<Inner>,
    /// By local task: bit masks of its direct predecessors and successors in the window.
    predecessor_mask: Vec<u64>,
    successor_mask: Vec<u64>,
    /// Order of local tasks, and the position of each in it.
    order: Vec<u8>,
    place: Vec<u8>,
    device: Vec<u8>,
    end: Vec<Micros>,
    /// Ends when the window was loaded.
    initial_end: Vec<Micros>,
    /// Ends of the schedule under trial.
    trial: Vec<Micros>,
    /// By position and device: time at which the device is free.
    free: Vec<Micros>,
    /// By position: makespan over the tasks before it.
    peak: Vec<Micros>,
    trial_free: Vec<Micros>,
    /// Time from the first start on a device after the window to the makespan.
    device_tail: Vec<Micros>,
    value: Micros,
    best: Micros,
    best_order: Vec<u8>,
    best_device: Vec<u8>,
    /// Allowed devices of each local task; only its present one if it is co-located with others.
    allowed: Vec<u8>,
    allowed_at: Vec<u32>,
    bytes: Vec<Bytes>,
    /// Free memory of each device.
    room: Vec<Bytes>,
}

impl Window {
    fn remember(&mut self) {
        self.best = self.value;
        self.best_order.clone_from(&self.order);
        self.best_device.clone_from(&self.device);
    }

    /// Returns the makespan with the current choice, simulated from a position on. May stop early and return infinity
    /// if it exceeds `limit`.
    #[inline]
    fn simulate(&mut self, model: &Model, from: usize, limit: Micros) -> Micros {
        let devices = self.devices;
        let mut value = self.peak[from];
        self.trial_free.copy_from_slice(&self.free[from * devices..(from + 1) * devices]);
        for &local in &self.order[from..] {
            let local = usize::from(local);
            let device = usize::from(self.device[local]);
            let cell = local * devices + device;
            let mut start = self.trial_free[device].max(self.release[cell]);
            for inner in &self.inner[self.inner_at[local] as usize..self.inner_at[local + 1] as usize] {
                let other = usize::from(inner.task);
                let hop = model.hops[inner.hop as usize + usize::from(self.device[other]) * devices + device];
                start = start.max(self.trial[other] + hop);
            }
            let end = start + self.time[cell];
            self.trial[local] = end;
            self.trial_free[device] = end;
            value = value.max(end + self.after[cell]);
            if value > limit {
                return Micros::INFINITY;
            }
        }
        for (free, tail) in self.trial_free.iter().zip(&self.device_tail) {
            value = value.max(*free + *tail);
        }
        value
    }

    /// Accepts the last trial, simulated from a position on.
    fn keep(&mut self, from: usize) {
        let devices = self.devices;
        for place in from..self.order.len() {
            let local = usize::from(self.order[place]);
            let device = usize::from(self.device[local]);
            let end = self.trial[local];
            self.end[local] = end;
            self.place[local] = place as u8;
            self.free.copy_within(place * devices..(place + 1) * devices, (place + 1) * devices);
            self.free[(place + 1) * devices + device] = end;
            self.peak[place + 1] = self.peak[place].max(end + self.after[local * devices + device]);
        }
    }

    /// Moves the task at `from` to `to`, shifting those between.
    fn shift(order: &mut [u8], from: usize, to: usize) {
        if from < to {
            order[from..=to].rotate_left(1);
        } else {
            order[to..=from].rotate_right(1);
        }
    }

    /// Returns the position closest to `wanted` that a task can move to without passing a predecessor or successor.
    fn reach(&self, place: usize, wanted: usize) -> usize {
        let local = usize::from(self.order[place]);
        let mut to = place;
        if wanted > place {
            while to < wanted && self.successor_mask[local] >> self.order[to + 1] & 1 == 0 {
                to += 1;
            }
        } else {
            while to > wanted && self.predecessor_mask[local] >> self.order[to - 1] & 1 == 0 {
                to -= 1;
            }
        }
        to
    }

    /// Anneals inside the window.
    fn anneal(&mut self, model: &Model, heat: Heat<'_>, random: &mut Random) -> u64 {
        let width = self.order.len();
        for _ in 0..heat.trials {
            let bits = random.next_u64();
            let share = |shift: u32, of: usize| ((((bits >> shift) & 0xffff) as usize) * of) >> 16;
            let place = share(0, width);
            let local = usize::from(self.order[place]);
            let old = self.device[local];
            let kind = (bits >> 16) & 7;
            let mut device = old;
            let options = &self.allowed[self.allowed_at[local] as usize..self.allowed_at[local + 1] as usize];
            if kind < 5 && options.len() > 1 {
                device = options[share(19, options.len() - 1)];
                if device == old {
                    device = options[options.len() - 1];
                }
                if self.bytes[local] > self.room[usize::from(device)] {
                    device = old;
                }
            }
            let to = if kind >= 3 { self.reach(place, share(35, width)) } else { place };
            if to == place && device == old {
                continue;
            }
            let limit = self.value + heat.threshold(bits >> 51);
            self.attempt(model, place, to, device, limit);
        }
        heat.trials as u64
    }

    /// Large neighborhood search: moves a few tasks at random, then reinserts each optimally; several times.
    fn rebuild(&mut self, model: &Model, heat: Heat<'_>, random: &mut Random) -> u64 {
        let mut trials = 0;
        while trials < heat.trials as u64 {
            let before = (self.order.clone(), self.device.clone(), self.room.clone());
            let limit = self.value + heat.threshold(random.next_u64());
            let chosen = self.choose(random);
            for &local in &chosen {
                let (place, device) = (usize::from(self.place[usize::from(local)]), self.any_device(local, random));
                let to = self.reach(place, random.below(self.order.len()));
                self.attempt(model, place, to, device, Micros(f64::MAX));
            }
            trials += chosen.len() as u64;
            for &local in &chosen {
                trials += self.reinsert(model, local);
            }
            if self.value > limit {
                (self.order, self.device, self.room) = before;
                self.value = self.simulate(model, 0, Micros::INFINITY);
                self.keep(0);
            }
        }
        trials
    }

    /// Returns up to four tasks: adjacent ones of the order, or the next ones on two random devices.
    fn choose(&self, random: &mut Random) -> Vec<u8> {
        let width = self.order.len();
        let count = (2 + random.below(3)).min(width);
        let first = random.below(width - count + 1);
        if random.below(2) == 0 {
            return self.order[first..first + count].to_vec();
        }
        let pair = [0, 1].map(|_| self.device[random.below(width)]);
        let of_pair = self.order[first..].iter().filter(|local| pair.contains(&self.device[usize::from(**local)]));
        of_pair.copied().take(count).collect()
    }

    /// Returns a random allowed device of a task, or its present one if the drawn device has too little free memory.
    fn any_device(&self, local: u8, random: &mut Random) -> u8 {
        let local = usize::from(local);
        let options = &self.allowed[self.allowed_at[local] as usize..self.allowed_at[local + 1] as usize];
        let device = options[random.below(options.len())];
        if self.bytes[local] > self.room[usize::from(device)] { self.device[local] } else { device }
    }

    /// Moves a task to its best position and device. Returns the number of trials.
    fn reinsert(&mut self, model: &Model, local: u8) -> u64 {
        let mut trials = 0;
        let index = usize::from(local);
        let low = self.reach(usize::from(self.place[index]), 0);
        let high = self.reach(usize::from(self.place[index]), self.order.len() - 1);
        for option in self.allowed_at[index]..self.allowed_at[index + 1] {
            let device = self.allowed[option as usize];
            if device != self.device[index] && self.bytes[index] > self.room[usize::from(device)] {
                continue;
            }
            for to in low..=high {
                let place = usize::from(self.place[index]);
                if to != place || device != self.device[index] {
                    // Only improvements are accepted, so the last accepted one is the best.
                    self.attempt(model, place, to, device, Micros(self.value.0.next_down()));
                    trials += 1;
                }
            }
        }
        trials
    }

    /// Moves the task at a position to another position and device, if the makespan stays within a limit.
    fn attempt(&mut self, model: &Model, place: usize, to: usize, device: u8, limit: Micros) {
        let local = usize::from(self.order[place]);
        let old = self.device[local];
        Self::shift(&mut self.order, place, to);
        self.device[local] = device;
        let from = place.min(to);
        let value = self.simulate(model, from, limit);
        if value <= limit {
            self.value = value;
            self.keep(from);
            self.room[usize::from(old)] += self.bytes[local];
            self.room[usize::from(device)] -= self.bytes[local];
            if value < self.best {
                self.remember();
            }
        } else {
            Self::shift(&mut self.order, to, place);
            self.device[local] = old;
            self.trial.copy_from_slice(&self.end);
        }
    }
}

impl model::Window<Model> for Window {
    fn load(&mut self, model: &Model, schedule: &Schedule<Model>, surroundings: &Surroundings) {
        let (first, last, floor) = (surroundings.first, surroundings.last, surroundings.floor);
        let devices = model.graph.devices;
        let choice = &schedule.choice;
        self.devices = devices;
        let width = last - first;
        self.tasks.clear();
        self.tasks.extend_from_slice(&choice.order[first..last]);
        self.release.clear();
        self.release.resize(width * devices, Micros::ZERO);
        self.after.clear();
        self.after.resize(width * devices, Micros::ZERO);
        self.time.clear();
        self.inner_at.clear();
        self.inner_at.push(0);
        self.inner.clear();
        self.predecessor_mask.clear();
        self.predecessor_mask.resize(width, 0);
        self.successor_mask.clear();
        self.successor_mask.resize(width, 0);
        self.allowed.clear();
        self.allowed_at.clear();
        self.allowed_at.push(0);
        self.device.clear();
        self.bytes.clear();
        for local in 0..width {
            let task = self.tasks[local] as usize;
            self.device.push(choice.places[task]);
            self.time.extend_from_slice(&model.time[task * devices..(task + 1) * devices]);
            let release = &mut self.release[local * devices..(local + 1) * devices];
            for &arc in model.graph.preds(task) {
                let from = arc.task as usize;
                let place = schedule.place[from] as usize;
                if place >= first {
                    let inner = place - first;
                    self.inner.push(Inner { task: inner as u8, hop: arc.hop });
                    self.predecessor_mask[local] |= 1 << inner;
                    self.successor_mask[inner] |= 1 << local;
                } else {
                    let row = arc.hop as usize + usize::from(choice.places[from]) * devices;
                    for (release, hop) in release.iter_mut().zip(&model.hops[row..row + devices]) {
                        *release = release.max(schedule.end[from] + *hop);
                    }
                }
            }
            self.inner_at.push(self.inner.len() as u32);
            let after = &mut self.after[local * devices..(local + 1) * devices];
            for &arc in model.graph.succs(task) {
                let to = arc.task as usize;
                if schedule.place[to] as usize >= last {
                    let column = arc.hop as usize + usize::from(choice.places[to]);
                    for (device, after) in after.iter_mut().enumerate() {
                        *after = after.max(schedule.tail[to] + model.hops[column + device * devices]);
                    }
                }
            }
            if model.graph.colocated[task] {
                self.allowed.push(choice.places[task]);
            } else {
                self.allowed.extend(model.allowed(task).map(|device| device as u8));
            }
            self.bytes.push(model.bytes[task]);
            self.allowed_at.push(self.allowed.len() as u32);
        }
        self.order.clear();
        self.order.extend(0..width as u8);
        self.place.clear();
        self.place.extend(0..width as u8);
        self.end.clear();
        self.end.resize(width, Micros::ZERO);
        self.trial.clear();
        self.trial.resize(width, Micros::ZERO);
        self.free.clear();
        self.free.extend_from_slice(&surroundings.free);
        self.free.resize((width + 1) * devices, Micros::ZERO);
        self.peak.clear();
        self.peak.resize(width + 1, floor);
        self.trial_free.clear();
        self.trial_free.resize(devices, Micros::ZERO);
        self.device_tail.clear();
        self.device_tail.extend_from_slice(&surroundings.device_tail);
        self.room.clone_from(&surroundings.room);
        self.value = self.simulate(model, 0, Micros::INFINITY);
        self.keep(0);
        self.initial_end.clone_from(&self.end);
        self.remember();
    }

    fn search(&mut self, model: &Model, _: &Schedule<Model>, step: Step, heat: Heat<'_>, random: &mut Random) -> u64 {
        match step {
            Step::One => self.anneal(model, heat, random),
            Step::Several => self.rebuild(model, heat, random),
        }
    }

    fn tasks(&self) -> &[u32] {
        &self.tasks
    }

    fn now(&self) -> WindowState<'_, u8> {
        WindowState { value: self.value, order: &self.order, places: &self.device }
    }

    fn best(&self) -> WindowState<'_, u8> {
        WindowState { value: self.best, order: &self.best_order, places: &self.best_device }
    }

    fn ends(&self) -> &[Micros] {
        &self.end
    }

    fn initial_ends(&self) -> &[Micros] {
        &self.initial_end
    }

    fn room(&self) -> &[Bytes] {
        &self.room
    }
}
