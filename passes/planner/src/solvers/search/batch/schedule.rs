//! A schedule of a queue under search.

use super::model::Model;
use crate::model::instance::Instance;
use crate::model::plan::{self, Batch};
use crate::model::units::Micros;
use crate::solvers::search::model::Arc;

/// How each task's queue is cut, and in which order tasks run. The order may have the first tasks only; others have no cuts
/// then.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Choice {
    /// By task and device: a mask of units.
    pub(super) cuts: Vec<u64>,
    pub(super) order: Vec<u32>,
}

/// The place of a task that is not in the order.
pub(super) const ABSENT: u32 = u32::MAX;

/// A choice with its times, by task and device.
#[derive(Clone, Debug)]
pub(super) struct Schedule {
    pub(super) choice: Choice,
    pub(super) place: Vec<u32>,
    start: Vec<Micros>,
    pub(super) end: Vec<Micros>,
    /// From a part's start to the end of the plan on the longest path through it.
    pub(super) tail: Vec<Micros>,
    scratch: Vec<Micros>,
}

/// The greater of two times, neither of which is NaN: that takes one instruction, other than `f64::max`.
#[inline]
pub(super) fn later(a: Micros, b: Micros) -> Micros {
    if a > b { a } else { b }
}

/// When what a part reads over one arc is on its device, the producer being cut and ending so.
#[inline]
pub(super) fn arrival(model: &Model, arc: Arc, cut: &[u64], ends: &[Micros], device: usize, part: u64) -> Micros {
    let mut arrival: Micros = 0.0;
    for (from, (other, end)) in cut.iter().zip(ends).enumerate() {
        let shared = other & part;
        if shared != 0 {
            arrival = later(arrival, end + model.hop(arc, from, device, shared.count_ones()));
        }
    }
    arrival
}

/// From a part's end to the end of the plan over one arc, the reader being cut and having such tails.
#[inline]
pub(super) fn rest(model: &Model, arc: Arc, cut: &[u64], tails: &[Micros], device: usize, part: u64) -> Micros {
    let mut rest: Micros = 0.0;
    for (to, (other, tail)) in cut.iter().zip(tails).enumerate() {
        let shared = other & part;
        if shared != 0 {
            rest = later(rest, tail + model.hop(arc, device, to, shared.count_ones()));
        }
    }
    rest
}

impl Schedule {
    pub(super) fn new(model: &Model, choice: Choice) -> Self {
        let cells = model.tasks * model.devices;
        let mut schedule = Self {
            place: vec![ABSENT; model.tasks],
            start: vec![0.0; cells],
            end: vec![0.0; cells],
            tail: vec![0.0; cells],
            scratch: vec![0.0; model.devices],
            choice,
        };
        schedule.number();
        schedule.forward(model);
        schedule
    }

    fn number(&mut self) {
        for (place, &task) in self.choice.order.iter().enumerate() {
            self.place[task as usize] = place as u32;
        }
    }

    /// Computes when each part ends, and returns when the last does.
    pub(super) fn forward(&mut self, model: &Model) -> Micros {
        let devices = model.devices;
        let mut makespan: Micros = 0.0;
        self.scratch.fill(0.0);
        for &task in &self.choice.order {
            let task = task as usize;
            for device in 0..devices {
                let part = self.choice.cuts[task * devices + device];
                if part == 0 {
                    continue;
                }
                let mut start = self.scratch[device];
                for &arc in model.graph.preds(task) {
                    let row = arc.task as usize * devices;
                    let (cut, ends) = (&self.choice.cuts[row..row + devices], &self.end[row..row + devices]);
                    start = start.max(arrival(model, arc, cut, ends, device, part));
                }
                let end = start + model.time(task, device, part.count_ones());
                self.start[task * devices + device] = start;
                self.end[task * devices + device] = end;
                self.scratch[device] = end;
                makespan = makespan.max(end);
            }
        }
        makespan
    }

    /// Computes each part's tail.
    pub(super) fn backward(&mut self, model: &Model) {
        let devices = model.devices;
        self.scratch.fill(0.0);
        for &task in self.choice.order.iter().rev() {
            let task = task as usize;
            for device in 0..devices {
                let part = self.choice.cuts[task * devices + device];
                if part == 0 {
                    continue;
                }
                let mut after = self.scratch[device];
                for &arc in model.graph.succs(task) {
                    let row = arc.task as usize * devices;
                    let (cut, tails) = (&self.choice.cuts[row..row + devices], &self.tail[row..row + devices]);
                    after = after.max(rest(model, arc, cut, tails, device, part));
                }
                let tail = after + model.time(task, device, part.count_ones());
                self.tail[task * devices + device] = tail;
                self.scratch[device] = tail;
            }
        }
    }

    /// When the first part of a task starts; right after [`Schedule::forward`] only.
    fn first_start(&self, model: &Model, task: usize) -> Micros {
        let cells = task * model.devices..(task + 1) * model.devices;
        let parts = self.choice.cuts[cells.clone()].iter().zip(&self.start[cells]);
        parts.filter(|(part, _)| **part != 0).map(|(_, start)| *start).fold(f64::INFINITY, f64::min)
    }

    /// Brings the order into the order of first starts, where that changes no device's own order; else leaves it.
    pub(super) fn sort_by_start(&mut self, model: &Model) {
        let before = self.choice.order.clone();
        let value = self.forward(model);
        let starts: Vec<Micros> = (0..model.tasks).map(|task| self.first_start(model, task)).collect();
        self.choice.order.sort_by(|a, b| starts[*a as usize].total_cmp(&starts[*b as usize]));
        // Parts of two tasks may run in one order here and in the other there: then sorting makes another schedule.
        if self.forward(model) > value {
            self.choice.order = before;
            self.forward(model);
        }
        self.number();
    }

    /// From the first start on each device at or behind a place to the end of the plan; nothing where there is none.
    pub(super) fn device_tails(&self, place: usize, tails: &mut Vec<Micros>) {
        const UNKNOWN: Micros = -1.0;
        let devices = self.scratch.len();
        tails.clear();
        tails.resize(devices, UNKNOWN);
        let mut unknown = devices;
        for &task in &self.choice.order[place..] {
            for (device, tail) in tails.iter_mut().enumerate() {
                let cell = task as usize * devices + device;
                if *tail == UNKNOWN && self.choice.cuts[cell] != 0 {
                    *tail = self.tail[cell];
                    unknown -= 1;
                }
            }
            if unknown == 0 {
                return;
            }
        }
        tails.iter_mut().for_each(|tail| *tail = tail.max(0.0));
    }

    /// The choice that a plan made; none where its batches are not made of whole units.
    pub(super) fn of_plan(instance: &Instance, model: &Model, batches: &[Batch]) -> Option<Choice> {
        let devices = model.devices;
        let mut cuts = vec![0_u64; model.tasks * devices];
        let mut start = vec![f64::INFINITY; model.tasks];
        for batch in batches {
            let mut counts = vec![0; model.units as usize];
            batch.inputs.iter().for_each(|input| counts[(input / model.unit) as usize] += 1);
            for (unit, count) in counts.into_iter().enumerate() {
                if count == model.unit {
                    cuts[batch.node * devices + batch.device] |= 1 << unit;
                } else if count != 0 {
                    return None;
                }
            }
            start[batch.node] = start[batch.node].min(batch.start);
        }
        let mut order: Vec<u32> = instance.order().iter().map(|task| *task as u32).collect();
        order.sort_by(|a, b| start[*a as usize].total_cmp(&start[*b as usize]));
        Some(Choice { cuts, order })
    }

    /// The launches of the schedule.
    pub(super) fn batches(&self, model: &Model) -> Vec<Batch> {
        let mut batches = Vec::new();
        for (cell, &part) in self.choice.cuts.iter().enumerate().filter(|(_, part)| **part != 0) {
            let units = (0..model.units).filter(|unit| part >> unit & 1 == 1);
            batches.push(Batch {
                node: cell / model.devices,
                device: cell % model.devices,
                inputs: units.flat_map(|unit| unit * model.unit..(unit + 1) * model.unit).collect(),
                start: self.start[cell],
            });
        }
        batches
    }

    pub(super) fn into_plan(self, model: &Model) -> plan::Schedule {
        let ends = self.choice.cuts.iter().zip(&self.end).filter(|(part, _)| **part != 0).map(|(_, end)| *end);
        let makespan = ends.fold(0.0, f64::max);
        plan::Schedule::Batch { batches: self.batches(model), makespan }
    }
}
