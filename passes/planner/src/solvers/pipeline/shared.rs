//! Incumbent shared by search and proof: the best pipeline of either, and whether it is proven optimal.

use std::sync::Mutex;

use super::milp::closes;
use crate::model::plan::Bound;
use crate::model::units::Micros;
use crate::solvers::incumbent::{Incumbent, SharedIncumbent};

pub(super) struct SharedSolution {
    pub(super) incumbent: SharedIncumbent,
    best: Mutex<Incumbent<Vec<u32>>>,
}

impl SharedSolution {
    pub(super) fn new(best: &Incumbent<Vec<u32>>) -> Self {
        Self { incumbent: SharedIncumbent::new(best.value()), best: Mutex::new(best.clone()) }
    }

    /// Reports blocks that an algorithm has found.
    pub(super) fn report_solution(&self, value: Micros, blocks: Vec<u32>, by: &'static str) {
        self.change(|best| {
            best.take(value, blocks, by);
        });
    }

    pub(super) fn report_bound(&self, bound: &Bound) {
        self.change(|best| best.prove(bound.clone()));
    }

    /// Returns the best blocks if they are better than a value.
    pub(super) fn better_than(&self, value: Micros) -> Option<Incumbent<Vec<u32>>> {
        let best = self.best.lock().ok()?;
        (best.value() < value).then(|| best.clone())
    }

    /// A poisoned lock means that another thread has panicked; its scope propagates the panic.
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
