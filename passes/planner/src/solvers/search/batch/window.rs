//! Window over a queue's schedule: a section of the order in which tasks are removed and reinserted.
//!
//! Tasks before the window are represented by their ends, tasks behind it by their tails, so the makespan computed in
//! the window is that of the whole schedule. Ends and tails are maintained for tasks inside, too: with a task removed,
//! the longest path through any of its parts is the part's end plus its tail, and no path goes through two parts of one
//! task, since all devices run in one order.

use super::links::Links;
use super::model::{Model, later};
use super::neighborhood::NeighborhoodSearch;
use super::state::State;
use crate::model::units::{Bytes, Micros};
use crate::random::Random;
use crate::solvers::search::method::{Heat, Step, Surroundings};
use crate::solvers::search::model::{self, Arc, Model as _, WindowState};
use crate::solvers::search::schedule::Schedule;

/// Tables of a window; `local` indices run over its tasks.
#[derive(Debug, Default)]
pub struct Window {
    pub(super) devices: usize,
    pub(super) tasks: Vec<u32>,
    pub(super) links: Vec<Links>,
    pub(super) now: State,
    /// State that the window was loaded with, and the best since.
    start: State,
    best: State,
    neighborhood: NeighborhoodSearch,
}

impl Window {
    /// Stores the state if it is the best so far.
    fn remember(&mut self) {
        if self.now.value < self.best.value {
            self.best.copy(&self.now);
        }
    }

    /// Returns the cut of a local task.
    pub(super) fn cut(&self, local: usize) -> &[u64] {
        &self.now.cuts[local * self.devices..(local + 1) * self.devices]
    }

    /// Returns the time at which all operands of a part are on its device.
    fn ready(&self, model: &Model, schedule: &Schedule<Model>, local: usize, device: usize, part: u64) -> Micros {
        let mut ready = Micros::ZERO;
        for &arc in &self.links[local].from {
            ready = later(ready, model.arrival(arc, &self.now.cuts, &self.now.end, device, part));
        }
        for &arc in &self.links[local].before {
            ready = later(ready, model.arrival(arc, &schedule.choice.places, &schedule.end, device, part));
        }
        ready
    }

    /// Returns the time from a part's end to the makespan over its readers inside the window and behind it.
    fn after(&self, model: &Model, schedule: &Schedule<Model>, local: usize, device: usize, part: u64) -> Micros {
        let mut after = self.behind(model, schedule, local, device, part);
        for &arc in &self.links[local].to {
            after = later(after, model.path(arc, &self.now.cuts, &self.now.tail, (device, part), Micros::ZERO));
        }
        after
    }

    fn behind(&self, model: &Model, schedule: &Schedule<Model>, local: usize, device: usize, part: u64) -> Micros {
        let mut after = Micros::ZERO;
        for &arc in &self.links[local].behind {
            after =
                later(after, model.path(arc, &schedule.choice.places, &schedule.tail, (device, part), Micros::ZERO));
        }
        after
    }

    /// Computes ends of parts from a position on, and the makespan.
    fn forward(&mut self, model: &Model, schedule: &Schedule<Model>, from: usize) {
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

    /// Computes tails of parts before a position.
    fn backward(&mut self, model: &Model, schedule: &Schedule<Model>, until: usize) {
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

    /// Removes a task; the makespan is then that of the others.
    pub(super) fn lift(&mut self, model: &Model, schedule: &Schedule<Model>, local: usize) {
        let (place, devices) = (usize::from(self.now.place[local]), self.devices);
        self.now.order.remove(place);
        // Tails behind the window do not change by removing a task.
        let width = self.now.order.len();
        self.now.rear.copy_within((place + 1) * devices..(width + 2) * devices, place * devices);
        self.forward(model, schedule, place);
        self.backward(model, schedule, place);
    }

    /// Inserts a removed task at a position, with a cut.
    pub(super) fn put(&mut self, model: &Model, schedule: &Schedule<Model>, local: usize, place: usize, cut: &[u64]) {
        self.change(model, local, cut);
        let devices = self.devices;
        let width = self.now.order.len();
        self.now.order.insert(place, local as u8);
        self.now.rear.copy_within(place * devices..(width + 1) * devices, (place + 1) * devices);
        self.forward(model, schedule, place);
        self.backward(model, schedule, place + 1);
        self.remember();
    }

    /// Returns the range of positions for a removed task: behind all predecessors, before all successors.
    pub(super) fn reach(&self, local: usize) -> (usize, usize) {
        let links = &self.links[local];
        let place = |arc: &Arc| usize::from(self.now.place[arc.task as usize]);
        let first = links.from.iter().map(|arc| place(arc) + 1).max().unwrap_or(0);
        (first, links.to.iter().map(place).min().unwrap_or(self.now.order.len()))
    }

    /// Changes the cut of a task at its position.
    pub(super) fn recut(&mut self, model: &Model, schedule: &Schedule<Model>, local: usize, cut: &[u64]) {
        let place = usize::from(self.now.place[local]);
        self.change(model, local, cut);
        self.forward(model, schedule, place);
        self.backward(model, schedule, place + 1);
        self.remember();
    }

    /// Returns true if a task can have a cut: supported batch sizes, and enough memory.
    pub(super) fn takes(&self, model: &Model, local: usize, cut: &[u64]) -> bool {
        let fits = |(device, part): (usize, &u64)| self.fits(model, local, device, *part);
        model.runs(self.tasks[local] as usize, cut) && cut.iter().enumerate().all(fits)
    }

    /// Returns true if a device has memory for a part that replaces its present part of the task.
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
}

impl model::Window<Model> for Window {
    fn load(&mut self, model: &Model, schedule: &Schedule<Model>, surroundings: &Surroundings) {
        let (first, last, devices) = (surroundings.first, surroundings.last, model.graph.devices);
        let width = last - first;
        self.devices = devices;
        self.tasks.clear();
        self.tasks.extend_from_slice(&schedule.choice.order[first..last]);
        self.now.load(width, surroundings);
        self.links.resize_with(width, Links::default);
        for (links, task) in self.links.iter_mut().zip(&self.tasks) {
            let task = *task as usize;
            self.now.cuts.extend_from_slice(&schedule.choice.places[task * devices..(task + 1) * devices]);
            links.load(model, schedule, task, first..last);
        }
        self.forward(model, schedule, 0);
        self.backward(model, schedule, width);
        self.start.copy(&self.now);
        self.best.copy(&self.now);
    }

    fn search(
        &mut self,
        model: &Model,
        schedule: &Schedule<Model>,
        _: Step,
        heat: Heat<'_>,
        random: &mut Random,
    ) -> u64 {
        let mut neighborhood = std::mem::take(&mut self.neighborhood);
        let trials = neighborhood.run(self, model, schedule, heat, random);
        self.neighborhood = neighborhood;
        trials
    }

    fn tasks(&self) -> &[u32] {
        &self.tasks
    }

    fn now(&self) -> WindowState<'_, u64> {
        self.now.view()
    }

    fn best(&self) -> WindowState<'_, u64> {
        self.best.view()
    }

    fn ends(&self) -> &[Micros] {
        &self.now.end
    }

    fn initial_ends(&self) -> &[Micros] {
        &self.start.end
    }

    fn room(&self) -> &[Bytes] {
        &self.now.room
    }
}
