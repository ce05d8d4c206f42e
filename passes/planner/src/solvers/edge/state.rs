//! The first layers on their machines, and what that takes; the last one can be taken back.

use super::model::Model;
use crate::model::units::Micros;

pub(super) struct State<'a> {
    model: &'a Model,
    /// The machine of each layer that is placed.
    pub(super) on: Vec<u32>,
    /// What each machine takes, then each way between two, then what each machine holds.
    pub(super) loads: Vec<f64>,
    /// How many runs of layers each machine has.
    pub(super) runs: Vec<u32>,
    pub(super) splits: usize,
    /// For each value that moves once, how many of its readers are on each machine.
    delivered: Vec<u32>,
    /// What the slowest takes, after each layer.
    slowest: Vec<Micros>,
    /// Loads as they were before, and how many of them there were before each layer.
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

    /// What the slowest machine or way takes so far; infinite where something cannot be.
    pub(super) fn value(&self) -> Micros {
        self.slowest.last().copied().unwrap_or(0.0)
    }

    /// The machine of the last layer.
    pub(super) fn current(&self) -> Option<usize> {
        self.on.last().map(|machine| *machine as usize)
    }

    pub(super) fn work(&self, machine: usize) -> Micros {
        self.loads[machine]
    }

    /// What a way takes so far.
    pub(super) fn link(&self, from: usize, to: usize) -> Micros {
        self.loads[self.link_place(from, to)]
    }

    pub(super) fn is_delivered(&self, value: u32, machine: usize) -> bool {
        self.delivered[value as usize * self.model.machines + machine] > 0
    }

    /// The machines that a value has moved to, as bits; there are few machines.
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
        let mut slowest = self.value().max(self.add(machine, model.time(layer, machine)));
        for read in &model.reads[layer] {
            let other = self.on[read.with as usize] as usize;
            if other == machine || !self.is_first(read.shared, machine) {
                continue;
            }
            let (from, to) = if read.backwards { (machine, other) } else { (other, machine) };
            let takes = model.move_time(read.bytes, from, to);
            let place = self.link_place(from, to);
            slowest = slowest.max(self.add(place, takes));
        }
        if let Some(held) = model.held.get(layer) {
            let held = self.add(model.machines * (model.machines + 1) + machine, *held);
            if held > model.capacity[machine] {
                slowest = f64::INFINITY;
            }
        }
        if self.current() != Some(machine) {
            self.splits += usize::from(layer > 0);
            self.runs[machine] += 1;
        }
        self.on.push(machine as u32);
        self.slowest.push(slowest);
    }

    /// Counts a reader; whether it is the first of its value on a machine.
    fn is_first(&mut self, shared: Option<u32>, machine: usize) -> bool {
        let Some(value) = shared else { return true };
        let count = &mut self.delivered[value as usize * self.model.machines + machine];
        *count += 1;
        *count == 1
    }

    /// Takes the last layer back.
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
