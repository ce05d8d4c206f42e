//! Partial placement: the first layers on their machines, and the resulting loads; the last layer can be undone.

use super::model::Model;
use crate::model::units::{Bytes, Micros};

pub(super) struct State<'a> {
    model: &'a Model,
    /// Machine of each placed layer.
    pub(super) on: Vec<u32>,
    /// Microseconds of each machine, then of each link, then bytes on each machine.
    pub(super) loads: Vec<f64>,
    /// Number of runs of layers on each machine.
    pub(super) runs: Vec<u32>,
    pub(super) splits: usize,
    /// By shared value and machine: number of its readers placed there.
    delivered: Vec<u32>,
    /// Largest load after each layer.
    slowest: Vec<Micros>,
    /// Undo log of loads, and its length before each layer.
    saved: Vec<(u32, f64)>,
    marks: Vec<usize>,
}

impl<'a> State<'a> {
    pub(super) fn new(model: &'a Model) -> Self {
        let machines = model.machines;
        Self {
            model,
            on: Vec::new(),
            loads: vec![0.0; machines * (machines + 1) + model.capacity.len()],
            runs: vec![0; machines],
            splits: 0,
            delivered: vec![0; model.shared * machines],
            slowest: Vec::new(),
            saved: Vec::new(),
            marks: Vec::new(),
        }
    }

    pub(super) fn placed(&self) -> usize {
        self.on.len()
    }

    /// Returns the largest load so far; infinite if the placement is infeasible.
    pub(super) fn value(&self) -> Micros {
        self.slowest.last().copied().unwrap_or_default()
    }

    /// Returns the machine of the last layer.
    pub(super) fn current(&self) -> Option<usize> {
        self.on.last().map(|machine| *machine as usize)
    }

    pub(super) fn work(&self, machine: usize) -> Micros {
        Micros(self.loads[machine])
    }

    /// Returns the load of a link.
    pub(super) fn link(&self, from: usize, to: usize) -> Micros {
        Micros(self.loads[self.link_place(from, to)])
    }

    pub(super) fn is_delivered(&self, value: u32, machine: usize) -> bool {
        self.delivered[value as usize * self.model.machines + machine] > 0
    }

    /// Returns the machines that a value has moved to as a bit mask; the memo limits the number of machines.
    pub(super) fn delivered_to(&self, value: u32) -> u32 {
        (0..self.model.machines).filter(|machine| self.is_delivered(value, *machine)).map(|machine| 1 << machine).sum()
    }

    fn link_place(&self, from: usize, to: usize) -> usize {
        self.model.machines * (from + 1) + to
    }

    fn add(&mut self, place: usize, amount: f64) -> f64 {
        self.saved.push((place as u32, self.loads[place]));
        self.loads[place] += amount;
        self.loads[place]
    }

    /// Places the next layer.
    pub(super) fn place(&mut self, machine: usize) {
        let model = self.model;
        let layer = self.placed();
        self.marks.push(self.saved.len());
        let mut slowest = self.value().max(Micros(self.add(machine, model.time(layer, machine).0)));
        for read in &model.reads[layer] {
            let other = self.on[read.with as usize] as usize;
            if other == machine || !self.is_first(read.shared, machine) {
                continue;
            }
            let (from, to) = if read.backwards { (machine, other) } else { (other, machine) };
            let takes = model.move_time(read.bytes, from, to);
            let place = self.link_place(from, to);
            slowest = slowest.max(Micros(self.add(place, takes.0)));
        }
        if let Some(held) = model.held.get(layer) {
            let held = self.add(model.machines * (model.machines + 1) + machine, held.0);
            if Bytes(held) > model.capacity[machine] {
                slowest = Micros::INFINITY;
            }
        }
        if self.current() != Some(machine) {
            self.splits += usize::from(layer > 0);
            self.runs[machine] += 1;
        }
        self.on.push(machine as u32);
        self.slowest.push(slowest);
    }

    /// Counts a reader; returns true if it is the first of its value on a machine.
    fn is_first(&mut self, shared: Option<u32>, machine: usize) -> bool {
        let Some(value) = shared else { return true };
        let count = &mut self.delivered[value as usize * self.model.machines + machine];
        *count += 1;
        *count == 1
    }

    /// Undoes the last layer.
    pub(super) fn undo(&mut self) {
        let (Some(machine), Some(mark)) = (self.on.pop(), self.marks.pop()) else { return };
        let machine = machine as usize;
        self.slowest.pop();
        for (place, load) in self.saved.drain(mark..).rev() {
            self.loads[place as usize] = load;
        }
        if self.current() != Some(machine) {
            self.runs[machine] -= 1;
            self.splits -= usize::from(!self.on.is_empty());
        }
        for read in &self.model.reads[self.on.len()] {
            if let Some(value) = read.shared.filter(|_| self.on[read.with as usize] as usize != machine) {
                self.delivered[value as usize * self.model.machines + machine] -= 1;
            }
        }
    }
}
