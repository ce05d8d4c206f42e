//! Annealing on the blocks of equal devices.

use super::anneal::{Change, Stages, View};
use super::state::State;
use crate::model::units::Micros;
use crate::random::Random;

impl Stages for State<'_> {
    type Found = Vec<u32>;
    type Undo = ();

    const STRIDE: u64 = 256;

    fn view(&self) -> View<'_> {
        View { stage: &self.block, before: &self.model.before, after: &self.model.after, k: self.model.k }
    }

    fn shift(&mut self, task: usize, to: u32) {
        let change = self.change(task, to as usize);
        let costs = self.costs_after(task, to as usize, change);
        self.make(task, to as usize, change, costs);
    }

    fn energy(&self) -> f64 {
        self.energy
    }

    fn restore(&mut self, energy: f64) {
        self.energy = energy;
    }

    fn value(&self) -> Micros {
        self.cost.iter().copied().fold(Micros::ZERO, Micros::max)
    }

    fn found(&self) -> Vec<u32> {
        self.block.clone()
    }

    /// Renumbers blocks in a random topological order: the blocks that a task may move to depend on it.
    fn refresh(&mut self, random: &mut Random) {
        let (model, blocks) = (self.model, &mut self.block);
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
            // The order is acyclic, so some block is free.
            let Some(&block) = free.get(random.below(free.len())) else { return };
            number[block] = next as u32;
            left.retain(|other| *other != block);
        }
        blocks.iter_mut().for_each(|block| *block = number[*block as usize]);
        let was = std::mem::take(&mut self.parts);
        self.parts = vec![1.0; was.len()];
        number.iter().zip(was).for_each(|(number, part)| self.parts[*number as usize] = part);
        self.recount();
    }

    fn choose(&self, random: &mut Random) -> Change {
        let task = random.below(self.block.len());
        match random.below(8) {
            0 => Change::Draw(task),
            kind => Change::Move(task, kind < 4),
        }
    }
}
