//! Simulated annealing on pipelines: tasks move to other stages, alone, two in exchange, or with what they draw along.

use super::state::range;
use crate::model::units::Micros;
use crate::random::Random;
use crate::solvers::chains::Allowance;

/// A task draws at most so many others along.
const DRAWN: usize = 12;
/// The first and the last temperature, in stages that cost as much as the worst did at the start.
const HOT: f64 = 0.3;
const COLD: f64 = 0.002;
/// Trials after which a pipeline is counted anew.
const REFRESH: u64 = 1 << 16;

/// Pipeline under annealing: on equal devices, or on devices of its own.
pub(super) trait Stages {
    type Found: Send;
    /// State before a change that moves no task between stages.
    type Undo;

    /// Trials between looks at the clock.
    const STRIDE: u64;

    fn view(&self) -> View<'_>;

    fn shift(&mut self, task: usize, to: u32);

    /// Sum over stages of a high power of their costs, so that the highest counts most.
    fn energy(&self) -> f64;

    /// Sets the energy to that of before a change that is undone, where it is kept by sums.
    fn restore(&mut self, _energy: f64) {}

    /// Cost of the slowest.
    fn value(&self) -> Micros;

    fn found(&self) -> Self::Found;

    /// Counts everything anew: sums that have been changed often are rounded otherwise than fresh ones.
    fn refresh(&mut self, random: &mut Random);

    /// Draws the next change.
    fn choose(&self, random: &mut Random) -> Change;

    /// Makes a change of its own kind; none where it changes nothing.
    fn change_own(&mut self, _: usize, _: &mut Random) -> Option<Self::Undo> {
        None
    }

    fn undo(&mut self, _: Self::Undo) {}

    /// True if devices, links and memory allow the pipeline.
    fn holds(&self) -> bool {
        true
    }
}

/// Stages of the tasks that move between them, and the tasks before and behind each.
pub(super) struct View<'a> {
    /// Values never go to a stage with a lower number.
    pub(super) stage: &'a [u32],
    pub(super) before: &'a [Vec<u32>],
    pub(super) after: &'a [Vec<u32>],
    /// Number of stages.
    pub(super) k: usize,
}

impl View<'_> {
    /// The lowest and the highest stage that a task may be in while the others stay.
    pub(super) fn range(&self, task: usize) -> (u32, u32) {
        range(&self.before[task], &self.after[task], self.stage, self.k)
    }
}

/// Kind of a change.
pub(super) enum Change {
    /// A task to another stage, and another task in exchange if that is wanted and possible.
    Move(usize, bool),
    /// A task to the next or the last stage, and with it all that have to come along.
    Draw(usize),
    /// One of the pipeline's own kinds.
    Own(usize),
}

/// The best pipeline that was found, from where the search starts.
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
    /// Of the best.
    value: Micros,
    energy: f64,
    /// Moves of the trial that is under way, with where each task was.
    made: Vec<(usize, u32)>,
    /// Room for tasks that move together.
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

    /// Decides whether a change stays, by temperature.
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

    /// Moves a task to another stage that it may be in, and another one from there in exchange, if that may be.
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

    /// Moves a task to the next or the last stage, and with it all of its stage that have to come along; none where these are too
    /// many.
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
