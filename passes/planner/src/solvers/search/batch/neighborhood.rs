//! Large neighborhood search inside a window of a queue: a few connected tasks get the same cut, then each is
//! reinserted optimally.
//!
//! A new cut pays off if neighbors share it, since nothing moves between them then; a change of one task at a time
//! would have to pass through states with expensive transfers.

use super::cut;
use super::model::Model;
use super::reinsert::Reinsertion;
use super::state::State;
use super::window::Window;
use crate::random::Random;
use crate::solvers::search::method::Heat;
use crate::solvers::search::schedule::Schedule;

/// Minimum and maximum number of tasks that change at once.
const SIZE: (usize, usize) = (2, 4);
/// Number of other tasks of the window that are reinserted afterwards.
const OTHERS: usize = 2;

/// Buffers beside the window, reused to avoid allocation.
#[derive(Debug, Default)]
pub(super) struct NeighborhoodSearch {
    reinsertion: Reinsertion,
    before: State,
    chosen: Vec<u8>,
    fresh: Vec<u64>,
}

impl NeighborhoodSearch {
    /// Perturbs and repairs small sets of tasks; each result is accepted by temperature. Returns the number of moved
    /// tasks.
    pub(super) fn run(
        &mut self,
        window: &mut Window,
        model: &Model,
        schedule: &Schedule<Model>,
        heat: Heat<'_>,
        random: &mut Random,
    ) -> u64 {
        let mut trials = 0;
        while trials < heat.trials {
            self.before.copy(&window.now);
            let limit = window.now.value + heat.threshold(random.next_u64());
            self.choose(window, random);
            self.fresh.clear();
            self.fresh.extend_from_slice(window.cut(usize::from(self.chosen[0])));
            for _ in 0..=random.below(2) {
                cut::mutate(&mut self.fresh, random);
            }
            for &local in &self.chosen {
                let local = usize::from(local);
                if !window.links[local].fixed && window.takes(model, local, &self.fresh) {
                    window.recut(model, schedule, local, &self.fresh);
                }
            }
            self.chosen.extend((0..OTHERS).map(|_| random.below(window.now.order.len()) as u8));
            for &local in &self.chosen {
                self.reinsertion.reinsert(window, model, schedule, usize::from(local), random);
            }
            trials += self.chosen.len();
            if window.now.value > limit {
                window.now.copy(&self.before);
            }
        }
        trials as u64
    }

    /// Chooses a task and some of its neighbors inside the window.
    fn choose(&mut self, window: &Window, random: &mut Random) {
        let width = window.now.order.len();
        let count = (SIZE.0 + random.below(SIZE.1 - SIZE.0 + 1)).min(width);
        self.chosen.clear();
        self.chosen.push(random.below(width) as u8);
        // Some steps lead back to a chosen task.
        for _ in 0..3 * count {
            let links = &window.links[usize::from(self.chosen[random.below(self.chosen.len())])];
            let step = random.below(links.from.len() + links.to.len());
            if let Some(arc) = links.from.iter().chain(&links.to).nth(step)
                && self.chosen.len() < count
                && !self.chosen.contains(&(arc.task as u8))
            {
                self.chosen.push(arc.task as u8);
            }
        }
    }
}
