//! A window over a queue's schedule: a stretch of the order in which tasks are taken out and put back.
//!
//! What comes before the window enters by when it ends, what comes behind it by how long it takes from there to the end of
//! the plan, so the makespan that the window gives is that of the whole schedule. Both are kept for tasks inside, too: with
//! a task taken out, the longest path through any of its parts is when the part can end plus what follows, and no path goes
//! through two parts of one task, since all devices run in one order.

use super::links::Links;
use super::model::Model;
use super::schedule::{Choice, Schedule, arrival, later, rest};
use super::state::State;
use crate::model::units::Micros;
use crate::solvers::search::method::Around;
use crate::solvers::search::model::Arc;

/// The window's own tables; `local` numbers run over the tasks in it.
#[derive(Debug, Default)]
pub(super) struct Window {
    pub(super) devices: usize,
    pub(super) tasks: Vec<u32>,
    pub(super) links: Vec<Links>,
    pub(super) now: State,
    /// What the window was loaded with, and the best since.
    start: State,
    best: State,
}

impl Window {
    /// Takes the window's part of the order. Ends before it and tails behind it must be right.
    pub(super) fn load(&mut self, model: &Model, schedule: &Schedule, around: &Around) {
        let (first, last, devices) = (around.first, around.last, model.devices);
        let width = last - first;
        self.devices = devices;
        self.tasks.clear();
        self.tasks.extend_from_slice(&schedule.choice.order[first..last]);
        self.now.load(width, around);
        self.links.resize_with(width, Links::default);
        for (links, task) in self.links.iter_mut().zip(&self.tasks) {
            let task = *task as usize;
            self.now.cuts.extend_from_slice(&schedule.choice.cuts[task * devices..(task + 1) * devices]);
            links.load(model, schedule, task, first..last);
        }
        self.forward(model, schedule, 0);
        self.backward(model, schedule, width);
        self.start.copy(&self.now);
        self.best.copy(&self.now);
    }

    /// Takes note of the schedule if it is better than all before.
    fn remember(&mut self) {
        if self.now.value < self.best.value {
            self.best.copy(&self.now);
        }
    }

    /// The cut of a local task.
    pub(super) fn cut(&self, local: usize) -> &[u64] {
        &self.now.cuts[local * self.devices..(local + 1) * self.devices]
    }

    /// When all that a part reads is on its device.
    fn ready(&self, model: &Model, schedule: &Schedule, local: usize, device: usize, part: u64) -> Micros {
        let (devices, links) = (self.devices, &self.links[local]);
        let mut ready: Micros = 0.0;
        for &arc in &links.from {
            let row = arc.task as usize * devices;
            let (cut, ends) = (&self.now.cuts[row..row + devices], &self.now.end[row..row + devices]);
            ready = later(ready, arrival(model, arc, cut, ends, device, part));
        }
        for &arc in &links.before {
            let row = arc.task as usize * devices;
            let (cut, ends) = (&schedule.choice.cuts[row..row + devices], &schedule.end[row..row + devices]);
            ready = later(ready, arrival(model, arc, cut, ends, device, part));
        }
        ready
    }

    /// From a part's end to the end of the plan over what reads it: inside the window, and behind it.
    fn after(&self, model: &Model, schedule: &Schedule, local: usize, device: usize, part: u64) -> Micros {
        let devices = self.devices;
        let mut after = self.behind(model, schedule, local, device, part);
        for &arc in &self.links[local].to {
            let row = arc.task as usize * devices;
            let (cut, tails) = (&self.now.cuts[row..row + devices], &self.now.tail[row..row + devices]);
            after = later(after, rest(model, arc, cut, tails, device, part));
        }
        after
    }

    fn behind(&self, model: &Model, schedule: &Schedule, local: usize, device: usize, part: u64) -> Micros {
        let devices = self.devices;
        let mut after: Micros = 0.0;
        for &arc in &self.links[local].behind {
            let row = arc.task as usize * devices;
            let (cut, tails) = (&schedule.choice.cuts[row..row + devices], &schedule.tail[row..row + devices]);
            after = later(after, rest(model, arc, cut, tails, device, part));
        }
        after
    }

    /// Computes when parts end, from a place on, and the makespan.
    fn forward(&mut self, model: &Model, schedule: &Schedule, from: usize) {
        let devices = self.devices;
        for place in from..self.now.order.len() {
            let local = usize::from(self.now.order[place]);
            self.now.place[local] = place as u8;
            self.now.free.copy_within(place * devices..(place + 1) * devices, (place + 1) * devices);
            let mut peak = self.now.peak[place];
            for device in 0..devices {
                let part = self.now.cuts[local * devices + device];
                if part != 0 {
                    let ready = self.ready(model, schedule, local, device, part);
                    let time = model.time(self.tasks[local] as usize, device, part.count_ones());
                    let end = later(ready, self.now.free[place * devices + device]) + time;
                    self.now.end[local * devices + device] = end;
                    self.now.free[(place + 1) * devices + device] = end;
                    peak = later(peak, end + self.behind(model, schedule, local, device, part));
                }
            }
            self.now.peak[place + 1] = peak;
        }
        let last = self.now.order.len();
        self.now.value = self.now.peak[last];
        for device in last * devices..(last + 1) * devices {
            self.now.value = self.now.value.max(self.now.free[device] + self.now.rear[device]);
        }
    }

    /// Computes tails of parts before a place.
    fn backward(&mut self, model: &Model, schedule: &Schedule, until: usize) {
        let devices = self.devices;
        for place in (0..until).rev() {
            let local = usize::from(self.now.order[place]);
            self.now.rear.copy_within((place + 1) * devices..(place + 2) * devices, place * devices);
            for device in 0..devices {
                let part = self.now.cuts[local * devices + device];
                if part != 0 {
                    let after = self.after(model, schedule, local, device, part);
                    let time = model.time(self.tasks[local] as usize, device, part.count_ones());
                    let tail = later(after, self.now.rear[(place + 1) * devices + device]) + time;
                    self.now.tail[local * devices + device] = tail;
                    self.now.rear[place * devices + device] = tail;
                }
            }
        }
    }

    /// Takes a task out. The makespan is that of the others then.
    pub(super) fn lift(&mut self, model: &Model, schedule: &Schedule, local: usize) {
        let (place, devices) = (usize::from(self.now.place[local]), self.devices);
        self.now.order.remove(place);
        // What is at the rear of the window is the same with a task less.
        let width = self.now.order.len();
        self.now.rear.copy_within((place + 1) * devices..(width + 2) * devices, place * devices);
        self.forward(model, schedule, place);
        self.backward(model, schedule, place);
    }

    /// Puts a task that was taken out to a place, with a cut.
    pub(super) fn put(&mut self, model: &Model, schedule: &Schedule, local: usize, place: usize, cut: &[u64]) {
        self.change(model, local, cut);
        let devices = self.devices;
        let width = self.now.order.len();
        self.now.order.insert(place, local as u8);
        self.now.rear.copy_within(place * devices..(width + 1) * devices, (place + 1) * devices);
        self.forward(model, schedule, place);
        self.backward(model, schedule, place + 1);
        self.remember();
    }

    /// The places that a task which was taken out can go to: behind all it waits for, before all that wait for it.
    pub(super) fn reach(&self, local: usize) -> (usize, usize) {
        let links = &self.links[local];
        let place = |arc: &Arc| usize::from(self.now.place[arc.task as usize]);
        let first = links.from.iter().map(|arc| place(arc) + 1).max().unwrap_or(0);
        (first, links.to.iter().map(place).min().unwrap_or(self.now.order.len()))
    }

    /// Gives a task another cut where it stands.
    pub(super) fn recut(&mut self, model: &Model, schedule: &Schedule, local: usize, cut: &[u64]) {
        let place = usize::from(self.now.place[local]);
        self.change(model, local, cut);
        self.forward(model, schedule, place);
        self.backward(model, schedule, place + 1);
        self.remember();
    }

    /// Whether a task can have a cut: it runs, and devices have room for it.
    pub(super) fn takes(&self, model: &Model, local: usize, cut: &[u64]) -> bool {
        let fits = |(device, part): (usize, &u64)| self.fits(model, local, device, *part);
        model.runs(self.tasks[local] as usize, cut) && cut.iter().enumerate().all(fits)
    }

    /// Whether a device has room for a part instead of what it has of the task.
    pub(super) fn fits(&self, model: &Model, local: usize, device: usize, part: u64) -> bool {
        let task = self.tasks[local] as usize;
        let (new, old) = (model.bytes(task, part), model.bytes(task, self.cut(local)[device]));
        new <= old || new - old <= self.now.room[device]
    }

    fn change(&mut self, model: &Model, local: usize, cut: &[u64]) {
        let (task, devices) = (self.tasks[local] as usize, self.devices);
        for (device, part) in cut.iter().enumerate() {
            let old = std::mem::replace(&mut self.now.cuts[local * devices + device], *part);
            self.now.room[device] += model.bytes(task, old) - model.bytes(task, *part);
        }
    }

    /// The best makespan seen since the window was loaded.
    pub(super) fn best(&self) -> Micros {
        self.best.value
    }

    /// Writes the best schedule seen into the choice that the window was loaded from.
    pub(super) fn write_best(&self, first: usize, choice: &mut Choice) {
        self.write_as(first, &self.best, choice);
    }

    /// Writes the current schedule into the choice that the window was loaded from.
    pub(super) fn write(&self, first: usize, choice: &mut Choice) {
        self.write_as(first, &self.now, choice);
    }

    fn write_as(&self, first: usize, state: &State, choice: &mut Choice) {
        for (place, &local) in state.order.iter().enumerate() {
            choice.order[first + place] = self.tasks[usize::from(local)];
        }
        for (&task, cut) in self.tasks.iter().zip(state.cuts.chunks(self.devices)) {
            choice.cuts[task as usize * self.devices..][..self.devices].copy_from_slice(cut);
        }
    }

    /// Writes the current schedule back, with the ends of its parts.
    pub(super) fn store(&self, schedule: &mut Schedule, first: usize) {
        self.write(first, &mut schedule.choice);
        for (local, &task) in self.tasks.iter().enumerate() {
            schedule.place[task as usize] = (first + usize::from(self.now.place[local])) as u32;
        }
        self.store_ends(schedule, &self.now.end);
    }

    /// Leaves the schedule as it was when the window was loaded, with the ends of its parts.
    pub(super) fn store_ends_of_start(&self, schedule: &mut Schedule) {
        self.store_ends(schedule, &self.start.end);
    }

    fn store_ends(&self, schedule: &mut Schedule, ends: &[Micros]) {
        for (&task, ends) in self.tasks.iter().zip(ends.chunks(self.devices)) {
            schedule.end[task as usize * self.devices..][..self.devices].copy_from_slice(ends);
        }
    }
}
