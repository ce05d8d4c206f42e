//! Incumbent of the search on equal devices: the best pipeline so far, and the best bound.

use super::model::Model;
use super::shared::SharedSolution;
use super::state::State;
use super::{anneal, bounds, brief, brkga, milp};
use crate::model::options::Options;
use crate::model::plan::Limit;
use crate::solvers::chains::Allowance;
use crate::solvers::incumbent::Incumbent;

/// Default number of annealing moves: about two seconds on two cores.
const MOVES: u64 = 8_000_000;
/// Number of orders sliced for a start, and their share of the time.
const ORDERS: u64 = 100;
const ORDERS_SHARE: f64 = 0.2;

/// Best blocks, with an order of the tasks within them.
#[derive(Clone)]
pub(super) struct PipelineIncumbent {
    pub(super) best: Incumbent<Vec<u32>>,
    pub(super) order: Vec<u32>,
}

impl PipelineIncumbent {
    /// Returns the best slicing of a few orders.
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

    /// Runs a short search, as a warm start for proofs.
    pub(super) fn short_search(model: &Model, options: &Options) -> (Self, SharedSolution) {
        let mut incumbent = Self::start(model, &brief(options));
        let shared = SharedSolution::new(&incumbent.best);
        incumbent.anneal(model, &brief(options), &shared, 0);
        (incumbent, shared)
    }

    pub(super) fn blocks(&self) -> &[u32] {
        self.best.solution().map_or(&[], Vec::as_slice)
    }

    /// Returns true if a verified bound proves optimality. Unverified bounds of a solver do not end a search.
    pub(super) fn is_closed(&self) -> bool {
        milp::closes(self.best.bound().verified_value(), self.best.value())
    }

    /// Updates from the shared incumbent.
    pub(super) fn update_from(&mut self, shared: &SharedSolution) {
        if let Some(better) = shared.better_than(self.best.value()) {
            self.best.take_over(better);
        }
    }

    /// Anneals from the best solution of all searches, unless it is proven optimal. Leaves cores to `others` concurrent
    /// solvers.
    pub(super) fn anneal(&mut self, model: &Model, options: &Options, shared: &SharedSolution, others: usize) {
        self.update_from(shared);
        if self.is_closed() || shared.incumbent.is_over() {
            return;
        }
        let least = self.best.bound().verified_value();
        let allowance = Allowance::new(&options.named("anneal"), MOVES).beside(others).sharing(&shared.incumbent);
        let start = || State::new(model, self.blocks().to_vec(), self.order.clone());
        let moves = model.k > 1 && model.tasks() > 1;
        if let Some((value, blocks)) = moves.then(|| anneal::anneal(start, least, &allowance)).flatten() {
            shared.report_solution(value, blocks, "anneal");
            self.update_from(shared);
        }
    }
}
