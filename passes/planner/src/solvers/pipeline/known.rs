//! The best pipeline so far, and what nothing is better than.

use super::meeting::Meeting;
use super::model::Model;
use super::{anneal, bounds, brkga, milp};
use crate::model::options::Options;
use crate::model::plan::{Bound, Limit};
use crate::model::units::Micros;
use crate::solvers::chains::Allowance;

/// Moves that annealing tries when nothing is said: about two seconds on two cores.
const MOVES: u64 = 8_000_000;
/// Orders that are looked at for a start, and the share of the time that they may take.
const ORDERS: u64 = 100;
const ORDERS_SHARE: f64 = 0.2;

/// Blocks that hold, with the order in which their tasks run.
#[derive(Clone)]
pub(super) struct Known {
    pub(super) value: Micros,
    pub(super) blocks: Vec<u32>,
    pub(super) order: Vec<u32>,
    pub(super) bound: Bound,
    /// The algorithm that has found the blocks.
    pub(super) by: &'static str,
}

impl Known {
    /// The best slicing of a few orders.
    pub(super) fn start(model: &Model, options: &Options) -> Self {
        let bound = bounds::best(model, options);
        let most = match options.limit {
            Some(Limit::Seconds(seconds)) => Some(seconds * ORDERS_SHARE),
            Some(Limit::Iterations(_)) | None => None,
        };
        let options = Options { limit: Some(Limit::Iterations(ORDERS)), order: None, ..options.named("slicegraph") };
        let sliced = brkga::search(model, bound.value, &options, most);
        options.observer.plan(sliced.slicing.value);
        Self { value: sliced.slicing.value, blocks: sliced.blocks(), order: sliced.order, bound, by: "slicegraph" }
    }

    /// True if it is verified that nothing is better. A solver's word ends no search.
    pub(super) fn is_closed(&self) -> bool {
        milp::closes(self.bound.verified_value(), self.value)
    }

    pub(super) fn prove(&mut self, bound: Bound) {
        self.bound = std::mem::replace(&mut self.bound, Bound::none()).or(bound);
    }

    /// Takes what others have found, where it is better.
    pub(super) fn learn(&mut self, meeting: &Meeting) {
        if let Some((value, blocks, by)) = meeting.better_than(self.value) {
            (self.value, self.blocks, self.by) = (value, blocks, by);
        }
    }

    /// Annealing from the best that anyone has, unless nothing can be better. Leaves some cores to others.
    pub(super) fn anneal(&mut self, model: &Model, options: &Options, meeting: &Meeting, others: usize) {
        self.learn(meeting);
        if self.is_closed() || meeting.incumbent.is_over() {
            return;
        }
        let least = self.bound.verified_value();
        let allowance = Allowance::new(&options.named("anneal"), MOVES).beside(others).sharing(&meeting.incumbent);
        if let Some((value, blocks)) = anneal::anneal(model, &self.blocks, &self.order, least, &allowance) {
            meeting.found(value, &blocks, "anneal");
            self.learn(meeting);
        }
    }
}
