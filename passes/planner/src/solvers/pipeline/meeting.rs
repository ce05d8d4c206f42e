//! The incumbent that search and proof share: the best pipeline that either has found, and when nothing better is to be found.

use std::sync::Mutex;

use super::milp::closes;
use crate::model::plan::Bound;
use crate::model::units::Micros;
use crate::solvers::incumbent::{Incumbent, SharedIncumbent};

pub(super) struct Meeting {
    pub(super) incumbent: SharedIncumbent,
    best: Mutex<Incumbent<Vec<u32>>>,
}

impl Meeting {
    pub(super) fn new(best: &Incumbent<Vec<u32>>) -> Self {
        Self { incumbent: SharedIncumbent::new(best.value()), best: Mutex::new(best.clone()) }
    }

    /// Blocks that an algorithm has found.
    pub(super) fn found(&self, value: Micros, blocks: Vec<u32>, by: &'static str) {
        self.change(|best| {
            best.take(value, blocks, by);
        });
    }

    pub(super) fn proven(&self, bound: &Bound) {
        self.change(|best| best.prove(bound.clone()));
    }

    /// The best blocks, where they are better than a value.
    pub(super) fn better_than(&self, value: Micros) -> Option<Incumbent<Vec<u32>>> {
        let best = self.best.lock().ok()?;
        (best.value() < value).then(|| best.clone())
    }

    /// Poison means that another thread panicked, which its scope will say.
    fn change(&self, change: impl FnOnce(&mut Incumbent<Vec<u32>>)) {
        if let Ok(mut best) = self.best.lock() {
            change(&mut best);
            self.incumbent.report(best.value());
            if closes(best.bound().verified_value(), best.value()) {
                self.incumbent.end();
            }
        }
    }
}
