//! Where search and proof meet: the best pipeline that either has found, and when nothing better is to be found.

use std::sync::Mutex;

use super::known::Known;
use super::milp::closes;
use crate::model::units::Micros;
use crate::solvers::incumbent::SharedIncumbent;

pub(super) struct Meeting {
    pub(super) incumbent: SharedIncumbent,
    best: Mutex<Best>,
}

struct Best {
    value: Micros,
    blocks: Vec<u32>,
    by: &'static str,
    bound: Micros,
}

impl Meeting {
    pub(super) fn new(known: &Known) -> Self {
        let best = Best {
            value: known.value,
            blocks: known.blocks.clone(),
            by: known.by,
            bound: known.bound.verified_value(),
        };
        Self { incumbent: SharedIncumbent::new(known.value), best: Mutex::new(best) }
    }

    /// Blocks that an algorithm has found.
    pub(super) fn found(&self, value: Micros, blocks: &[u32], by: &'static str) {
        self.change(|best| {
            if value < best.value {
                (best.value, best.blocks, best.by) = (value, blocks.to_vec(), by);
            }
        });
    }

    /// A verified bound.
    pub(super) fn proven(&self, bound: Micros) {
        self.change(|best| best.bound = best.bound.max(bound));
    }

    /// The best blocks and who has found them, where they are better than that.
    pub(super) fn better_than(&self, value: Micros) -> Option<(Micros, Vec<u32>, &'static str)> {
        let best = self.best.lock().ok()?;
        (best.value < value).then(|| (best.value, best.blocks.clone(), best.by))
    }

    /// Poison means that another thread panicked, which its scope will say.
    fn change(&self, change: impl FnOnce(&mut Best)) {
        if let Ok(mut best) = self.best.lock() {
            change(&mut best);
            self.incumbent.report(best.value);
            if closes(best.bound, best.value) {
                self.incumbent.end();
            }
        }
    }
}
