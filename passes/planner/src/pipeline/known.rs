//! The best pipeline so far, and what nothing is better than.

use super::model::Model;
use super::{anneal, bounds, brkga};
use crate::plan::{Bound, Limit, closes};
use crate::search::chains::Allowance;
use crate::solve::Options;
use crate::units::Micros;

/// Moves that annealing tries when nothing is said: about two seconds on two cores.
const MOVES: u64 = 8_000_000;
/// Orders that are looked at for a start, and the share of the time that they may take.
const ORDERS: u64 = 100;
const ORDERS_SHARE: f64 = 0.2;

/// Blocks that hold, with the order in which their tasks run.
pub(super) struct Known {
    pub(super) value: Micros,
    pub(super) blocks: Vec<u32>,
    pub(super) order: Vec<u32>,
    pub(super) bound: Bound,
}

impl Known {
    /// The best slicing of a few orders.
    pub(super) fn start(model: &Model, options: &Options) -> Self {
        let bound = bounds::best(model);
        let most = match options.limit {
            Some(Limit::Seconds(seconds)) => Some(seconds * ORDERS_SHARE),
            Some(Limit::Iterations(_)) | None => None,
        };
        let options = Options { limit: Some(Limit::Iterations(ORDERS)), order: None, ..options.clone() };
        let sliced = brkga::search(model, bound.value, &options, most);
        options.watch.plan(sliced.slicing.value);
        Self { value: sliced.slicing.value, blocks: sliced.blocks(), order: sliced.order, bound }
    }

    pub(super) fn is_closed(&self) -> bool {
        closes(self.bound.value, self.value)
    }

    pub(super) fn prove(&mut self, bound: Bound) {
        if bound.value > self.bound.value {
            self.bound = bound;
        }
    }

    /// Annealing, unless nothing can be better.
    pub(super) fn anneal(&mut self, model: &Model, options: &Options) {
        if self.is_closed() {
            return;
        }
        let allowance = Allowance::new(options, MOVES);
        let found = anneal::anneal(model, &self.blocks, &self.order, self.bound.value, &allowance);
        if let Some((value, blocks)) = found.filter(|(value, _)| *value < self.value) {
            (self.value, self.blocks) = (value, blocks);
        }
    }
}
