//! The best pipeline so far, and what nothing is better than.

use super::meeting::Meeting;
use super::model::Model;
use super::state::State;
use super::{anneal, bounds, brief, brkga, milp};
use crate::model::options::Options;
use crate::model::plan::Limit;
use crate::solvers::chains::Allowance;
use crate::solvers::incumbent::Incumbent;

/// Moves that annealing tries when nothing is said: about two seconds on two cores.
const MOVES: u64 = 8_000_000;
/// Orders that are looked at for a start, and the share of the time that they may take.
const ORDERS: u64 = 100;
const ORDERS_SHARE: f64 = 0.2;

/// Blocks that hold, with the order in which their tasks run.
#[derive(Clone)]
pub(super) struct Known {
    pub(super) best: Incumbent<Vec<u32>>,
    pub(super) order: Vec<u32>,
}

impl Known {
    /// The best slicing of a few orders.
    pub(super) fn start(model: &Model, options: &Options) -> Self {
        let mut best = Incumbent::new(bounds::best(model, options));
        let most = match options.limit {
            Some(Limit::Seconds(seconds)) => Some(seconds * ORDERS_SHARE),
            Some(Limit::Iterations(_)) | None => None,
        };
        let options = Options { limit: Some(Limit::Iterations(ORDERS)), order: None, ..options.named("slicegraph") };
        let sliced = brkga::search(model, best.bound().value, &options, most);
        options.observer.plan(sliced.slicing.value);
        best.take(sliced.slicing.value, sliced.blocks(), "slicegraph");
        Self { best, order: sliced.order }
    }

    /// A short search, for proofs to start from.
    pub(super) fn briefly(model: &Model, options: &Options) -> (Self, Meeting) {
        let mut known = Self::start(model, &brief(options));
        let meeting = Meeting::new(&known.best);
        known.anneal(model, &brief(options), &meeting, 0);
        (known, meeting)
    }

    pub(super) fn blocks(&self) -> &[u32] {
        self.best.solution().map_or(&[], Vec::as_slice)
    }

    /// True if it is verified that nothing is better. A solver's word ends no search.
    pub(super) fn is_closed(&self) -> bool {
        milp::closes(self.best.bound().verified_value(), self.best.value())
    }

    /// Takes what others have found, where it is better.
    pub(super) fn learn(&mut self, meeting: &Meeting) {
        if let Some(better) = meeting.better_than(self.best.value()) {
            self.best.take_over(better);
        }
    }

    /// Annealing from the best that anyone has, unless nothing can be better. Leaves some cores to others.
    pub(super) fn anneal(&mut self, model: &Model, options: &Options, meeting: &Meeting, others: usize) {
        self.learn(meeting);
        if self.is_closed() || meeting.incumbent.is_over() {
            return;
        }
        let least = self.best.bound().verified_value();
        let allowance = Allowance::new(&options.named("anneal"), MOVES).beside(others).sharing(&meeting.incumbent);
        let start = || State::new(model, self.blocks().to_vec(), self.order.clone());
        let moves = model.k > 1 && model.tasks() > 1;
        if let Some((value, blocks)) = moves.then(|| anneal::anneal(start, least, &allowance)).flatten() {
            meeting.found(value, blocks, "anneal");
            self.learn(meeting);
        }
    }
}
