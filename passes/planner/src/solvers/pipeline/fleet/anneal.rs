//! Annealing on stages and their devices.

use super::loads::Loads;
use super::{Fleet, Pipe};
use crate::model::units::Micros;
use crate::random::Random;
use crate::solvers::chains::{Allowance, Budget};
use crate::solvers::pipeline::anneal::{COLD, HOT, another, draw, power};
use crate::solvers::pipeline::state::range;

/// Trials between looks at the clock.
const STRIDE: u64 = 128;
/// Trials after which sums are made anew.
const RECOUNT: u64 = 1 << 16;
/// What trials do, of so many: one gives a stage another device, one moves a port, a few draw tasks along or exchange two.
const KINDS: usize = 32;
const DRAWS: usize = 6;
const EXCHANGES: usize = 14;

/// The best pipeline that was found.
pub(super) fn anneal(fleet: &Fleet, start: &Pipe, least: Micros, allowance: &Allowance) -> Option<Pipe> {
    if fleet.devices < 2 || fleet.working == 0 {
        return None;
    }
    let movable: Vec<usize> = (fleet.working..fleet.tasks())
        .filter(|port| fleet.times(*port).iter().filter(|time| time.is_finite()).count() > 1)
        .collect();
    allowance.best_of(|random, budget| {
        let loads = Loads::new(fleet, start.devices());
        let value = loads.value();
        let mut chain = Chain {
            fleet,
            movable: &movable,
            random,
            pipe: start.clone(),
            best: start.clone(),
            value,
            scale: value.max(f64::MIN_POSITIVE),
            energy: 0.0,
            loads,
            made: Vec::new(),
            drawn: Vec::new(),
        };
        chain.run(budget, least);
        (chain.value, chain.best)
    })
}

struct Chain<'a> {
    fleet: &'a Fleet,
    /// Ports that can be in several places.
    movable: &'a [usize],
    random: Random,
    pipe: Pipe,
    loads: Loads<'a>,
    best: Pipe,
    /// Of the best.
    value: Micros,
    /// What a load of one is.
    scale: Micros,
    energy: f64,
    /// Moves of the trial that is under way, with where each task was.
    made: Vec<(u32, u32)>,
    /// Room for tasks that move together.
    drawn: Vec<u32>,
}

impl Chain<'_> {
    fn run(&mut self, budget: Budget<'_>, least: Micros) {
        let mut trials = 0;
        loop {
            let spent = budget.spent(trials);
            if spent >= 1.0 || self.value <= least {
                break;
            }
            if trials % RECOUNT == 0 {
                self.loads.recount();
                self.energy = self.energy_now();
            }
            let heat = HOT * (COLD / HOT).powf(spent);
            for _ in 0..STRIDE {
                self.trial(heat);
            }
            trials += STRIDE;
            budget.tell(self.value);
        }
    }

    fn energy_now(&self) -> f64 {
        self.loads.each().map(|load| power(load / self.scale)).sum()
    }

    fn trial(&mut self, heat: f64) {
        self.made.clear();
        match self.random.below(KINDS) {
            0 => self.other_device(heat),
            1 => self.other_port(heat),
            kind => {
                let task = self.random.below(self.fleet.working);
                if kind < DRAWS {
                    self.draw(task);
                } else {
                    self.step(task, kind < EXCHANGES);
                }
                if !self.made.is_empty() && !self.is_kept(heat) {
                    while let Some((task, was)) = self.made.pop() {
                        self.shift(task as usize, was);
                    }
                }
            }
        }
    }

    /// Whether what has been tried is to stay.
    fn is_kept(&mut self, heat: f64) -> bool {
        if !self.loads.holds() {
            return false;
        }
        let energy = self.energy_now();
        let worse = energy - self.energy;
        if worse > 0.0 && self.random.unit() >= (-worse / heat).exp() {
            return false;
        }
        self.energy = energy;
        let value = self.loads.value();
        if value < self.value * (1.0 - 1e-12) {
            self.value = value;
            self.best.clone_from(&self.pipe);
        }
        true
    }

    /// Another device for a stage, or two that exchange theirs.
    fn other_device(&mut self, heat: f64) {
        let was = self.pipe.device.clone();
        let stage = self.random.below(self.fleet.k);
        if self.fleet.shared && self.random.chance(0.5) {
            self.pipe.device[stage] = self.random.below(self.fleet.devices);
        } else {
            let other = self.random.below(self.pipe.device.len());
            self.pipe.device.swap(stage, other);
        }
        if self.pipe.device == was {
            return;
        }
        self.settle();
        if !self.is_kept(heat) {
            self.pipe.device = was;
            self.settle();
        }
    }

    /// Every task to where its stage is.
    fn settle(&mut self) {
        for task in 0..self.fleet.working {
            let to = self.pipe.device_of(task);
            if self.loads.on[task] != to {
                self.place(task, to);
            }
        }
    }

    fn other_port(&mut self, heat: f64) {
        let Some(&task) = self.movable.get(self.random.below(self.movable.len().max(1))) else { return };
        let (was, to) = (self.loads.on[task], self.random.below(self.fleet.devices));
        if to == was {
            return;
        }
        for (to, undo) in [(to, false), (was, true)] {
            self.pipe.port[task - self.fleet.working] = to;
            self.place(task, to);
            if undo || self.is_kept(heat) {
                return;
            }
        }
    }

    /// Moves a task to another stage that it may be in, and another one from there in exchange, if that may be.
    fn step(&mut self, task: usize, exchanges: bool) {
        let from = self.pipe.stage[task];
        let Some(to) = another(&mut self.random, self.fleet.range(&self.pipe, task), from) else { return };
        self.shift(task, to);
        self.made.push((task as u32, from));
        if !exchanges {
            return;
        }
        let other = self.random.below(self.fleet.working);
        if other != task && self.pipe.stage[other] == to {
            let (low, high) = self.fleet.range(&self.pipe, other);
            if (low..=high).contains(&from) {
                self.shift(other, from);
                self.made.push((other as u32, to));
            }
        }
    }

    /// Moves a task to the next or the last stage, and with it all that have to come along.
    fn draw(&mut self, task: usize) {
        let from = self.pipe.stage[task];
        let forwards = self.random.chance(0.5);
        if (forwards && from + 1 == self.fleet.k as u32) || (!forwards && from == 0) {
            return;
        }
        let to = if forwards { from + 1 } else { from - 1 };
        let next = if forwards { &self.fleet.after } else { &self.fleet.before };
        let mut drawn = std::mem::take(&mut self.drawn);
        draw(next, &self.pipe.stage, task, &mut drawn);
        for &task in &drawn {
            self.shift(task as usize, to);
            self.made.push((task, from));
        }
        self.drawn = drawn;
    }

    fn shift(&mut self, task: usize, to: u32) {
        self.pipe.stage[task] = to;
        self.place(task, self.pipe.device[to as usize]);
    }

    /// A task, and the ports that go where it goes.
    fn place(&mut self, task: usize, to: usize) {
        self.loads.place(task, to);
        for &port in &self.fleet.company[task] {
            if self.fleet.is_port(port as usize) && self.loads.on[port as usize] != to {
                self.pipe.port[port as usize - self.fleet.working] = to;
                self.loads.place(port as usize, to);
            }
        }
    }
}

impl Fleet {
    /// The lowest and the highest stage that a task may be in while the others stay.
    fn range(&self, pipe: &Pipe, task: usize) -> (u32, u32) {
        range(&self.before[task], &self.after[task], &pipe.stage, self.k)
    }
}
