//! Large neighbourhoods inside a window of a queue: several tasks are moved at random, then each to where it is best.

use super::cut;
use super::model::Model;
use super::schedule::Schedule;
use super::window::Window;
use crate::random::Random;
use crate::search::method::Heat;

impl Window {
    /// Moves a few tasks at random, then each in turn to where it is best; several times.
    pub(super) fn rebuild(&mut self, model: &Model, schedule: &Schedule, heat: Heat<'_>, random: &mut Random) -> u64 {
        let mut trials = 0;
        while trials < heat.trials as u64 {
            let (order, cuts, room) = (self.order.clone(), self.cuts.clone(), self.room.clone());
            let limit = self.value + heat.threshold(random.next_u64());
            let width = self.order.len();
            let count = (1 + random.below(3)).min(width);
            let first = random.below(width - count + 1);
            let chosen = self.order[first..first + count].to_vec();
            for &local in &chosen {
                let local = usize::from(local);
                let place = usize::from(self.place[local]);
                self.stay(local);
                if !self.fixed[local] {
                    self.propose(schedule, local, random);
                }
                let to = self.reach(place, random.below(width));
                trials += 1;
                self.attempt(model, schedule, place, to, f64::MAX);
            }
            for &local in &chosen {
                trials += self.settle(model, schedule, usize::from(local), random);
            }
            if self.value > limit {
                self.restore(model, schedule, order, cuts, room);
            }
        }
        trials
    }

    /// Gives a task the best of several cuts, then the best place. Returns how many were tried.
    fn settle(&mut self, model: &Model, schedule: &Schedule, local: usize, random: &mut Random) -> u64 {
        let mut trials = 0;
        let place = usize::from(self.place[local]);
        if !self.fixed[local] {
            for device in 0..self.devices {
                self.stay(local);
                cut::gather(&mut self.fresh, device);
                self.attempt(model, schedule, place, place, self.value.next_down());
                trials += 1;
            }
            for _ in 0..3 * self.devices {
                self.propose(schedule, local, random);
                self.attempt(model, schedule, place, place, self.value.next_down());
                trials += 1;
            }
        }
        let (low, high) = (self.reach(place, 0), self.reach(place, self.order.len() - 1));
        for to in low..=high {
            let place = usize::from(self.place[local]);
            if to != place {
                self.stay(local);
                self.attempt(model, schedule, place, to, self.value.next_down());
                trials += 1;
            }
        }
        trials
    }
}
