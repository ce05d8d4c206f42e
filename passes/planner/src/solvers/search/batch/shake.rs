//! Large neighbourhoods inside a window of a queue: a connected handful of tasks gets one cut, then each goes to where it is
//! best.
//!
//! A cut pays off when neighbours share it, since nothing moves between them then; one task alone would have to go through
//! transfers that cost more.

use super::cut;
use super::model::Model;
use super::settle::Scales;
use super::state::State;
use super::window::Window;
use crate::random::Random;
use crate::solvers::search::method::Heat;
use crate::solvers::search::schedule::Schedule;

/// Number of tasks that change at once: at least, and at most.
const HANDFUL: (usize, usize) = (2, 4);
/// So many others of the window are put to where they are best afterwards.
const OTHERS: usize = 2;

/// Tables of shaking, beside the window; kept so that nothing is allocated anew.
#[derive(Debug, Default)]
pub(super) struct Shaker {
    scales: Scales,
    before: State,
    chosen: Vec<u8>,
    fresh: Vec<u64>,
}

impl Shaker {
    /// Shakes a handful of tasks after the other; each is taken or not by temperature. Returns how often a task was moved.
    pub(super) fn shake(
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
                self.scales.settle(window, model, schedule, usize::from(local), random);
            }
            trials += self.chosen.len();
            if window.now.value > limit {
                window.now.copy(&self.before);
            }
        }
        trials as u64
    }

    /// A task, and some that it is connected with inside the window.
    fn choose(&mut self, window: &Window, random: &mut Random) {
        let width = window.now.order.len();
        let count = (HANDFUL.0 + random.below(HANDFUL.1 - HANDFUL.0 + 1)).min(width);
        self.chosen.clear();
        self.chosen.push(random.below(width) as u8);
        // Some steps lead back to where another has been.
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
