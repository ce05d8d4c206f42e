//! Solvers, and what each of them declares about itself.
//!
//! A solver takes a well-formed [`Problem`] to a [`Solution`]. The table of [`crate::api`] gives it a name; the row says
//! which objectives it has, which views of a problem it plans, and whether it plans transfers itself.

pub(crate) mod baseline;
pub mod chains;
pub(crate) mod contention;
pub(crate) mod cuts;
pub(crate) mod dominators;
pub mod edge;
pub mod exact;
pub(crate) mod expected;
pub(crate) mod incumbent;
pub mod list;
pub(crate) mod microbatch;
pub mod milp;
pub mod pipeline;
pub mod placement;
pub mod replicated;
pub mod search;
pub(crate) mod sortinghat;
pub mod split;
pub(crate) mod timing;

use crate::model::error::Error;
use crate::model::options::Options;
use crate::model::plan::{Bound, Objective, Schedule};
use crate::model::problem::{Problem, View, ViewKind};
use crate::model::units::Micros;
use contention::TimedSolution;

/// A schedule, and a lower bound where the solver has proven one.
#[derive(Clone, Debug, PartialEq)]
pub struct Solution {
    /// Feasible schedule; the caller verifies it.
    pub schedule: Schedule,
    /// Lower bound on the value of every schedule.
    pub bound: Option<Bound>,
}

impl Solution {
    /// Returns the value of the best verified bound; zero if there is none.
    pub(crate) fn verified_value(&self) -> Micros {
        self.bound.as_ref().map_or(Micros::ZERO, Bound::verified_value)
    }
}

/// Solves a well-formed problem for an objective.
pub type Solver = fn(&Problem, Objective, &Options) -> Result<Solution, Error>;

/// Solves a problem whose plans list their transfers: see [`Problem::lists_transfers`].
pub(crate) type TimedSolver = fn(&Problem, Objective, &Options) -> Result<TimedSolution, Error>;

/// Row of the table of algorithms: a name, and what the algorithm can do.
#[derive(Clone, Copy, Debug)]
pub struct Algorithm {
    /// Name on command lines and in plans.
    pub name: &'static str,
    /// One line for help texts.
    pub summary: &'static str,
    /// The solver of each objective that the algorithm has.
    pub(crate) solvers: &'static [(Objective, Solver)],
    /// Views of a problem that its pipelines are planned on, the preferred one first.
    pub(crate) views: &'static [ViewKind],
    pub(crate) device_pipelines: DevicePipelines,
    /// True if the stages of its pipelines may take batches, and may have several devices.
    pub(crate) batched_pipelines: bool,
    pub(crate) effort: Effort,
    /// True for a portfolio, which reports itself which of its parts the plan is from.
    pub(crate) is_portfolio: bool,
    /// True if queues may have several launches of a task on a device; otherwise the algorithm plans one, whatever the
    /// options allow.
    pub plans_many_launches: bool,
    /// Plans with contention and from cold starts. Without it, the solver plans the relaxed problem and its schedule is
    /// retimed.
    pub(crate) timed: Option<TimedSolver>,
}

/// Influence of seed and limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effort {
    /// None: the algorithm is deterministic and unlimited.
    Fixed,
    /// Both apply, and are recorded in the plan.
    Limited,
}

/// Pipelines on the problem's devices that an algorithm plans.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DevicePipelines {
    /// Any cost of stages, shared devices or not, any number of stages, contention.
    All,
    /// The cost `overlap` on shared devices, without contention and without a limit on the number of stages.
    SharedOverlap,
}

impl Algorithm {
    /// A row with the defaults: limited effort, all pipelines on equal and on different devices, schedules retimed.
    pub const fn new(name: &'static str, summary: &'static str, solvers: &'static [(Objective, Solver)]) -> Self {
        Self {
            name,
            summary,
            solvers,
            views: pipeline::VIEWS,
            device_pipelines: DevicePipelines::All,
            batched_pipelines: false,
            effort: Effort::Limited,
            is_portfolio: false,
            plans_many_launches: false,
            timed: None,
        }
    }

    /// Seed and limit make no difference.
    pub const fn fixed(self) -> Self {
        Self { effort: Effort::Fixed, ..self }
    }

    /// Plans pipelines on these views, the preferred one first.
    pub const fn on_views(self, views: &'static [ViewKind], device_pipelines: DevicePipelines) -> Self {
        Self { views, device_pipelines, ..self }
    }

    /// Plans problems whose plans list transfers itself.
    pub(crate) const fn with_transfers(self, timed: TimedSolver) -> Self {
        Self { timed: Some(timed), ..self }
    }

    /// Plans pipelines of batches and of devices that take turns.
    pub(crate) const fn with_batches(self) -> Self {
        Self { batched_pipelines: true, ..self }
    }

    /// Plans any number of launches of a task on a device.
    pub const fn with_many_launches(self) -> Self {
        Self { plans_many_launches: true, ..self }
    }

    pub(crate) const fn portfolio(self) -> Self {
        Self { is_portfolio: true, ..self }
    }

    /// The solver of an objective, if the algorithm has it.
    pub fn solver(&self, objective: Objective) -> Option<Solver> {
        self.solvers.iter().find(|(own, _)| *own == objective).map(|(_, solver)| *solver)
    }

    /// The objectives that the algorithm has.
    pub fn objectives(&self) -> impl Iterator<Item = Objective> {
        Objective::ALL.into_iter().filter(|objective| self.solver(*objective).is_some())
    }

    /// The view of a problem that the algorithm plans pipelines on.
    pub(crate) fn view<'a>(&self, problem: &'a Problem) -> View<'a> {
        problem.view_among(self.views)
    }
}
