//! Simulated annealing on blocks: tasks move to other blocks, alone, two in exchange, or with what they draw along.

use super::model::Model;
use super::state::State;
use crate::model::units::Micros;
use crate::random::Random;
use crate::solvers::chains::{Allowance, Budget};

/// Trials between looks at the clock.
const STRIDE: u64 = 256;
/// A task draws at most so many others along.
const DRAWN: usize = 12;
/// The first and the last temperature, in blocks that cost as much as the worst did at the start.
pub(super) const HOT: f64 = 0.3;
pub(super) const COLD: f64 = 0.002;
/// Trials after which blocks get other numbers.
const RENUMBER: u64 = 1 << 16;

/// The best blocks that were found, from where the search starts.
pub(super) fn anneal(
    model: &Model,
    start: &[u32],
    order: &[u32],
    least: Micros,
    allowance: &Allowance,
) -> Option<(Micros, Vec<u32>)> {
    if model.k < 2 || model.tasks() < 2 {
        return None;
    }
    allowance.best_of(|random, budget| {
        let mut chain = Chain::new(State::new(model, start.to_vec(), order.to_vec()), random);
        chain.run(budget, least);
        (chain.best_value, (chain.best_value, chain.best))
    })
}

struct Chain<'a> {
    state: State<'a>,
    random: Random,
    best: Vec<u32>,
    best_value: Micros,
    /// What a cost of one is.
    scale: Micros,
    energy: f64,
    /// Moves of the trial that is under way, with where each task was.
    made: Vec<(u32, u32)>,
    /// Room for tasks that move together.
    drawn: Vec<u32>,
}

impl<'a> Chain<'a> {
    fn new(state: State<'a>, random: Random) -> Self {
        let (best, best_value) = (state.block.clone(), state.value());
        let mut chain = Self {
            state,
            random,
            best,
            best_value,
            scale: best_value,
            energy: 0.0,
            made: Vec::new(),
            drawn: Vec::new(),
        };
        chain.energy = chain.total();
        chain
    }

    fn run(&mut self, budget: Budget<'_>, least: Micros) {
        let mut trials = 0;
        loop {
            let spent = budget.spent(trials);
            if spent >= 1.0 || self.best_value <= least {
                break;
            }
            if trials % RENUMBER == 0 {
                self.renumber();
            }
            let heat = HOT * (COLD / HOT).powf(spent);
            for _ in 0..STRIDE {
                self.trial(heat);
            }
            trials += STRIDE;
            budget.tell(self.best_value);
        }
    }

    /// Kahn's order of the blocks, chosen at random where it can be: which blocks a task may move to depends on it.
    fn renumber(&mut self) {
        let (model, blocks) = (self.state.model, &mut self.state.block);
        let mut waits_for = vec![false; model.k * model.k];
        for (task, before) in model.before.iter().enumerate() {
            for &other in before {
                waits_for[blocks[task] as usize * model.k + blocks[other as usize] as usize] = true;
            }
        }
        let mut left: Vec<usize> = (0..model.k).collect();
        let mut number = vec![0; model.k];
        for next in 0..model.k {
            let is_free =
                |block: usize| left.iter().all(|other| *other == block || !waits_for[block * model.k + other]);
            let free: Vec<usize> = left.iter().copied().filter(|block| is_free(*block)).collect();
            // Values never go to a lower number, so the lowest is free.
            let Some(&block) = free.get(self.random.below(free.len())) else { return };
            number[block] = next as u32;
            left.retain(|other| *other != block);
        }
        blocks.iter_mut().for_each(|block| *block = number[*block as usize]);
        self.state.recount();
        self.energy = self.total();
    }

    fn total(&self) -> f64 {
        self.state.cost.iter().map(|cost| self.of(*cost)).sum()
    }

    /// What a block adds to the energy: a high power of its cost, so that the highest counts most.
    fn of(&self, cost: Micros) -> f64 {
        power(cost / self.scale)
    }

    fn trial(&mut self, heat: f64) {
        let tasks = self.state.model.tasks();
        let task = self.random.below(tasks);
        let from = self.state.block[task];
        let before = self.energy;
        self.made.clear();
        let kind = self.random.below(8);
        if kind == 0 {
            self.draw(task);
        } else {
            let Some(to) = another(&mut self.random, self.state.range(task), from) else { return };
            self.shift(task, to);
            if kind < 4 {
                let other = self.random.below(tasks);
                if other != task && self.state.block[other] == to {
                    let (low, high) = self.state.range(other);
                    if (low..=high).contains(&from) {
                        self.shift(other, from);
                    }
                }
            }
        }
        if self.made.is_empty() {
            return;
        }
        let worse = self.energy - before;
        if worse > 0.0 && self.random.unit() >= (-worse / heat).exp() {
            while let Some((task, was)) = self.made.pop() {
                self.state.shift(task as usize, was as usize);
            }
            self.energy = before;
            return;
        }
        let value = self.state.value();
        if value < self.best_value * (1.0 - 1e-12) {
            self.best_value = value;
            self.best.clone_from(&self.state.block);
        }
    }

    fn shift(&mut self, task: usize, to: u32) {
        let (from, to) = (self.state.block[task] as usize, to as usize);
        let change = self.state.change(task, to);
        let costs = self.state.costs_after(task, to, change);
        self.energy -= self.of(self.state.cost[from]) + self.of(self.state.cost[to]);
        self.energy += self.of(costs.0) + self.of(costs.1);
        self.state.make(task, to, change, costs);
        self.made.push((task as u32, from as u32));
    }

    /// Moves a task to the next or the last block, and with it all that have to come along.
    fn draw(&mut self, task: usize) {
        let model = self.state.model;
        let from = self.state.block[task];
        let forwards = self.random.chance(0.5);
        if (forwards && from + 1 == model.k as u32) || (!forwards && from == 0) {
            return;
        }
        let to = if forwards { from + 1 } else { from - 1 };
        let next = if forwards { &model.after } else { &model.before };
        let mut drawn = std::mem::take(&mut self.drawn);
        draw(next, &self.state.block, task, &mut drawn);
        drawn.iter().for_each(|task| self.shift(*task as usize, to));
        self.drawn = drawn;
    }
}

/// Another block that a task may be in, where there is one.
pub(super) fn another(random: &mut Random, (low, high): (u32, u32), from: u32) -> Option<u32> {
    if low == high {
        return None;
    }
    let to = low + random.below((high - low) as usize) as u32;
    Some(if to >= from { to + 1 } else { to })
}

/// A task, and all of its block that have to come along when it moves in this direction; nobody where that is too many.
pub(super) fn draw(next: &[Vec<u32>], block: &[u32], task: usize, drawn: &mut Vec<u32>) {
    drawn.clear();
    drawn.push(task as u32);
    let mut at = 0;
    while at < drawn.len() {
        for &other in &next[drawn[at] as usize] {
            if block[other as usize] == block[task] && !drawn.contains(&other) {
                if drawn.len() == DRAWN {
                    drawn.clear();
                    return;
                }
                drawn.push(other);
            }
        }
        at += 1;
    }
}

/// The sixteenth power.
pub(super) fn power(x: f64) -> f64 {
    let x2 = x * x;
    let x4 = x2 * x2;
    let x8 = x4 * x4;
    x8 * x8
}
