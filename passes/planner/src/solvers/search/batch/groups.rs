//! Tasks that share devices: their cuts change together, or not at all.

use super::anneal::Annealer;
use super::cut;
use super::model::Model;
use super::schedule::{ABSENT, Choice, Schedule};
use crate::model::instance::Instance;
use crate::model::units::{Bytes, Micros};
use crate::solvers::search::memory::{Limits, fits};

impl Annealer<'_> {
    /// Tries another cut for each group of tasks that share devices.
    pub(super) fn move_groups(&mut self, temperature: Micros) {
        let (model, devices) = (self.model, self.model.devices);
        let there = |group: &Vec<usize>| group.iter().all(|task| self.schedule.place[*task] != ABSENT);
        let groups: Vec<&Vec<usize>> = model.groups.iter().filter(|group| group.len() > 1 && there(group)).collect();
        for group in groups {
            self.trials += 1;
            let before = self.schedule.forward(model);
            let limit = before + temperature * self.exponential[self.random.below(self.exponential.len())];
            let old = self.schedule.choice.cuts[group[0] * devices..][..devices].to_vec();
            let mut fresh = old.clone();
            cut::mutate(&mut fresh, &mut self.random);
            if !group.iter().all(|task| model.runs(*task, &fresh)) {
                continue;
            }
            recut(&mut self.schedule.choice, group, &fresh);
            let value = self.schedule.forward(model);
            let room: Vec<Bytes> = model.room(&self.schedule.choice.cuts);
            let roomy = room.iter().all(|room| *room >= 0.0);
            if value <= limit && roomy && self.alive_fits(&self.schedule.choice) {
                self.around.room = room;
                if value < self.best_value {
                    self.best_value = value;
                    self.best.clone_from(&self.schedule.choice);
                }
            } else {
                recut(&mut self.schedule.choice, group, &old);
            }
        }
    }
}

/// Gives every task of a group a cut.
pub(super) fn recut(choice: &mut Choice, group: &[usize], cut: &[u64]) {
    for task in group {
        choice.cuts[task * cut.len()..][..cut.len()].copy_from_slice(cut);
    }
}

/// Whether what is alive at once fits into memory, where that has to be looked at.
pub(super) fn alive_fits(instance: &Instance, model: &Model, limits: Limits, choice: &Choice) -> bool {
    limits != Limits::Lives
        || fits(instance, &instance.peak_use_of(&Schedule::new(model, choice.clone()).batches(model)))
}
