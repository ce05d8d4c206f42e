//! Simulated annealing on pipelines: tasks move to other stages, alone, as an exchange of two, or together with their
//! successors or predecessors.

use super::state::range;
use crate::model::units::Micros;
use crate::random::Random;
use crate::solvers::chains::Allowance;

/// Maximum number of tasks that move together.
const DRAWN: usize = 12;
/// Initial and final temperature, in units of the initial bottleneck.
const HOT: f64 = 0.3;
const COLD: f64 = 0.002;
/// Trials between recomputations of the sums.
const REFRESH: u64 = 1 << 16;

/// Pipeline under annealing, on equal or on different devices.
pub(super) trait Stages {
    type Found: Send;
    /// State before a change other than moves of tasks between stages.
    type Undo;

    /// Trials between checks of the budget.
    const STRIDE: u64;

    fn view(&self) -> View<'_>;

    fn shift(&mut self, task: usize, to: u32);

    /// Sum over stages of a high power of their costs: a smooth approximation of the maximum.
    fn energy(&self) -> f64;

    /// Restores the energy of before an undone change, if it is maintained incrementally.
    fn restore(&mut self, _energy: f64) {}

    /// Returns the cost of the slowest stage.
    fn value(&self) -> Micros;

    fn found(&self) -> Self::Found;

    /// Recomputes all sums, which removes accumulated rounding errors.
    fn refresh(&mut self, random: &mut Random);

    /// Draws the next change.
    fn choose(&self, random: &mut Random) -> Change;

    /// Applies a change of the pipeline's own kind; `None` if it has no effect.
    fn change_own(&mut self, _: usize, _: &mut Random) -> Option<Self::Undo> {
        None
    }

    fn undo(&mut self, _: Self::Undo) {}

    /// Returns true if devices, links and memory allow the pipeline.
    fn holds(&self) -> bool {
        true
    }
}

/// Stages of the movable tasks, and the predecessors and successors of each.
pub(super) struct View<'a> {
    /// Values never go to a stage with a lower number.
    pub(super) stage: &'a [u32],
    pub(super) before: &'a [Vec<u32>],
    pub(super) after: &'a [Vec<u32>],
    /// Number of stages.
    pub(super) k: usize,
}

impl View<'_> {
    /// Returns the lowest and the highest stage that a task may be in while the others stay.
    pub(super) fn range(&self, task: usize) -> (u32, u32) {
        range(&self.before[task], &self.after[task], self.stage, self.k)
    }
}

/// Kind of a change.
pub(super) enum Change {
    /// Moves a task to another stage; if true, optionally exchanges it with another task.
    Move(usize, bool),
    /// Moves a task to the next or the previous stage, together with all tasks that precedences require to move along.
    Draw(usize),
    /// A change of the pipeline's own kind.
    Own(usize),
}

/// Returns the best pipeline that the chains find from a start.
pub(super) fn anneal<S: Stages>(
    start: impl Fn() -> S + Sync,
    least: Micros,
    allowance: &Allowance,
) -> Option<(Micros, S::Found)> {
    allowance.best_of(|random| {
        let stages = start();
        let (value, best, energy) = (stages.value(), stages.found(), stages.energy());
        let mut chain = Chain { stages, random, value, best, energy, made: Vec::new(), drawn: Vec::new() };
        chain.run(allowance, least);
        (chain.value, (chain.value, chain.best))
    })
}

struct Chain<S: Stages> {
    stages: S,
    random: Random,
    best: S::Found,
    /// Value of the best pipeline.
    value: Micros,
    energy: f64,
    /// Moves of the current trial, with the previous stage of each task.
    made: Vec<(usize, u32)>,
    /// Scratch space for tasks that move together.
    drawn: Vec<u32>,
}

impl<S: Stages> Chain<S> {
    fn run(&mut self, allowance: &Allowance, least: Micros) {
        let mut trials = 0;
        loop {
            let spent = allowance.spent(trials);
            if spent >= 1.0 || self.value <= least {
                break;
            }
            if trials % REFRESH == 0 {
                self.stages.refresh(&mut self.random);
                self.energy = self.stages.energy();
            }
            let heat = HOT * (COLD / HOT).powf(spent);
            for _ in 0..S::STRIDE {
                self.trial(heat);
            }
            trials += S::STRIDE;
            allowance.report(self.value);
        }
    }

    fn trial(&mut self, heat: f64) {
        self.made.clear();
        match self.stages.choose(&mut self.random) {
            Change::Move(task, exchanges) => self.step(task, exchanges),
            Change::Draw(task) => self.draw(task),
            Change::Own(kind) => {
                let Some(undo) = self.stages.change_own(kind, &mut self.random) else { return };
                if !self.is_kept(heat) {
                    self.stages.undo(undo);
                }
            }
        }
        if !self.made.is_empty() && !self.is_kept(heat) {
            while let Some((task, was)) = self.made.pop() {
                self.stages.shift(task, was);
            }
            self.stages.restore(self.energy);
        }
    }

    /// Decides by the Metropolis criterion if a change is accepted.
    fn is_kept(&mut self, heat: f64) -> bool {
        if !self.stages.holds() {
            return false;
        }
        let energy = self.stages.energy();
        let worse = energy - self.energy;
        if worse > 0.0 && self.random.unit() >= (-worse / heat).exp() {
            return false;
        }
        self.energy = energy;
        let value = self.stages.value();
        if value < self.value * (1.0 - 1e-12) {
            (self.value, self.best) = (value, self.stages.found());
        }
        true
    }

    fn shift(&mut self, task: usize, to: u32) {
        self.made.push((task, self.stages.view().stage[task]));
        self.stages.shift(task, to);
    }

    /// Moves a task to another feasible stage, and optionally another one from there in exchange.
    fn step(&mut self, task: usize, exchanges: bool) {
        let from = self.stages.view().stage[task];
        let (low, high) = self.stages.view().range(task);
        if low == high {
            return;
        }
        let to = low + self.random.below((high - low) as usize) as u32;
        let to = if to >= from { to + 1 } else { to };
        self.shift(task, to);
        if !exchanges {
            return;
        }
        let View { stage, .. } = self.stages.view();
        let other = self.random.below(stage.len());
        if other != task && stage[other] == to {
            let (low, high) = self.stages.view().range(other);
            if (low..=high).contains(&from) {
                self.shift(other, from);
            }
        }
    }

    /// Moves a task to the next or the previous stage, together with all tasks of its stage that have to move along,
    /// unless there are too many.
    fn draw(&mut self, task: usize) {
        let View { stage, before, after, k } = self.stages.view();
        let from = stage[task];
        let forwards = self.random.chance(0.5);
        if (forwards && from + 1 == k as u32) || (!forwards && from == 0) {
            return;
        }
        let next = if forwards { after } else { before };
        let mut drawn = std::mem::take(&mut self.drawn);
        drawn.clear();
        drawn.push(task as u32);
        let mut at = 0;
        while at < drawn.len() && drawn.len() <= DRAWN {
            for &other in &next[drawn[at] as usize] {
                if stage[other as usize] == from && !drawn.contains(&other) {
                    drawn.push(other);
                }
            }
            at += 1;
        }
        if drawn.len() <= DRAWN {
            let to = if forwards { from + 1 } else { from - 1 };
            drawn.iter().for_each(|task| self.shift(*task as usize, to));
        }
        self.drawn = drawn;
    }
}
