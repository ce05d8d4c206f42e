//! Solves a program within limits, checks plans against memory, and maintains bounds.

use std::ops::ControlFlow;
use std::time::Instant;

use super::cuts;
use super::latency::Latency;
use super::{Formulation, times};
use crate::mip::{self, Column, Event, Limits, Program};
use crate::model::budget::Budget;
use crate::model::error::{Error, Finding};
use crate::model::instance::Instance;
use crate::model::observer::Observer;
use crate::model::options::Options;
use crate::model::plan::{Batch, Bound, Objective, Proof, Schedule, closes};
use crate::model::problem::MemoryModel;
use crate::model::units::Micros;
use crate::solvers::Solution;
use crate::solvers::incumbent::Incumbent;
use crate::solvers::timing;

/// Name of plans and bounds.
const NAME: &str = "milp";
/// Tolerance of the solver's bounds in horizons, accumulated over a schedule.
const SLACK: f64 = 1e-6;
/// Maximum number of plans that are forbidden because they do not fit.
const MOST_MISFITS: usize = 200;
/// Share of the effort spent on cutting planes before the search.
const RELAXED_SHARE: f64 = 0.25;
/// Default limit of simplex iterations.
const ITERATIONS: u64 = 200_000;

/// Best plan and bound so far.
pub(super) struct Search<'a> {
    instance: &'a Instance,
    objective: Objective,
    seed: u64,
    budget: Budget,
    /// Upper limit on makespans.
    pub(super) horizon: Micros,
    best: Incumbent<Vec<Batch>>,
    observer: Observer,
}

/// Result of a check of a schedule's memory.
enum MemoryCheck {
    Fits,
    /// Does not fit; with its makespan, if it has one.
    Misfit(Option<Micros>),
}

impl<'a> Search<'a> {
    pub(super) fn new(
        instance: &'a Instance,
        objective: Objective,
        options: &Options,
        clock: Instant,
        start: Option<&Schedule>,
    ) -> Self {
        let mut best = Incumbent::new(Bound::none());
        if let Some(start) = start {
            best.take(start.value(), timing::launches(start), NAME);
        }
        let horizon = start.map_or_else(|| times::longest(instance), Schedule::value);
        let horizon = if horizon > Micros::ZERO { horizon } else { Micros(1.0) };
        Self {
            instance,
            objective,
            seed: options.seed,
            budget: Budget::new(options.limit, clock, options.worth(ITERATIONS)),
            horizon,
            best,
            observer: options.observer.clone(),
        }
    }

    pub(super) fn is_closed(&self, bound: Micros) -> bool {
        closes(bound, self.best.value())
    }

    /// Solves the program, and again as long as the result does not fit.
    pub(super) fn run(&mut self, mut program: Program, model: &dyn Formulation) -> Result<(), Error> {
        let is_static = self.instance.memory_model() == MemoryModel::Static;
        // Least makespan of forbidden plans that might fit if some task were delayed.
        let mut forbidden = Micros::INFINITY;
        for _ in 0..MOST_MISFITS {
            let Some(limits) = self.left() else { break };
            let start = self.best.solution().and_then(|launches| model.solution(&program, launches));
            let mut observer = |event: Event<'_>| {
                match event {
                    Event::Solution(values) => drop(self.see(model.launches(values))),
                    Event::Bound(bound) => self.observer.bound(self.in_micros(bound).min(forbidden), NAME),
                    Event::SolutionRequest(_) => {}
                }
                ControlFlow::Continue(())
            };
            let outcome = program.prove(&limits, start.as_deref(), &mut observer)?;
            self.spend(outcome.iterations);
            self.observer.explored(outcome.nodes);
            // Without a plan the horizon is no cutoff: if the program is infeasible, so is the problem.
            let nothing_left = outcome.verified == f64::INFINITY && self.best.solution().is_none();
            let verified = if nothing_left { Micros::INFINITY } else { self.verified_micros(outcome.verified) };
            self.prove(self.in_micros(outcome.bound).min(forbidden), Proof::Solver);
            self.prove(verified.min(forbidden), Proof::SafeDual);
            let Some(values) = outcome.values else { break };
            let MemoryCheck::Misfit(misfit) = self.see(model.launches(&values)) else {
                if outcome.finished {
                    self.close(forbidden);
                }
                break;
            };
            let orders = misfit.is_some() && !is_static;
            let decisions = model.decisions(&values, orders);
            forbid(&mut program, &decisions);
            forbidden = forbidden.min(misfit.filter(|_| orders).unwrap_or(Micros::INFINITY));
        }
        Ok(())
    }

    /// Converts a bound of HiGHS to microseconds, less its tolerances; zero if it failed. Beyond the horizon it is not
    /// valid.
    fn in_micros(&self, bound: f64) -> Micros {
        if bound.is_nan() { Micros::ZERO } else { (bound.min(1.0) - SLACK) * self.horizon }
    }

    fn verified_micros(&self, bound: f64) -> Micros {
        mip::rounded(bound.min(1.0)) * self.horizon
    }

    /// Computes exact times of launches, and updates the incumbent if they fit.
    fn see(&mut self, mut launches: Vec<Batch>) -> MemoryCheck {
        let value = timing::retime(self.instance, &mut launches);
        let Some(value) = value.filter(|_| self.instance.fits_launches(&launches)) else {
            return MemoryCheck::Misfit(value);
        };
        if self.best.take(value, launches, NAME) {
            self.observer.plan(value);
        }
        MemoryCheck::Fits
    }

    /// Spends a share of the remaining budget on valid inequalities that tighten the relaxation.
    pub(super) fn relax(&mut self, program: &mut Program, model: &Latency<'_>) -> Result<(), Error> {
        let Some(left) = self.left() else { return Ok(()) };
        let share = Limits {
            iterations: (left.iterations as f64 * RELAXED_SHARE) as u64,
            seconds: left.seconds.map(|seconds| seconds * RELAXED_SHARE),
            ..left
        };
        let relaxed = cuts::add(model, program, &share)?;
        self.spend(relaxed.iterations);
        self.prove(self.verified_micros(relaxed.bound), Proof::SafeDual);
        self.observer.bound(self.best.bound().verified_value(), NAME);
        Ok(())
    }

    fn prove(&mut self, bound: Micros, proof: Proof) {
        self.best.prove(Bound::by(bound, NAME, proof));
    }

    fn spend(&mut self, iterations: u64) {
        self.budget.iterations = self.budget.iterations.saturating_sub(iterations);
    }

    /// Returns the remaining limits; `None` if nothing is left.
    fn left(&self) -> Option<Limits> {
        let limits = Limits::new(self.seed, &self.budget);
        (limits.iterations > 0 && limits.seconds.is_none_or(|seconds| seconds > 0.0)).then_some(limits)
    }

    /// After an exhaustive search, a plan whose value the bound reaches up to rounding is optimal.
    fn close(&mut self, forbidden: Micros) {
        let (claimed, value) = (self.best.bound().value, self.best.value());
        if claimed >= value - 3.0 * SLACK * self.horizon && claimed <= value {
            self.prove(value.min(forbidden), Proof::Solver);
        }
    }

    /// Returns the best plan. A failure of the solver is an error only without a plan.
    pub(super) fn answer(self, solved: Result<(), Error>, start: Result<Schedule, Error>) -> Result<Solution, Error> {
        let (value, is_proven_empty) = (self.best.value(), self.best.bound().verified_value().is_infinite());
        let (Some(launches), bound) = self.best.into_parts() else {
            solved?;
            if is_proven_empty {
                return Err(Error::Infeasible(vec![no_placement()]));
            }
            let none = |_| Error::NotFound("no schedule found that fits into memory".to_owned());
            return Err(start.map_or_else(|error| error, none));
        };
        let schedule = timing::schedule(self.instance, launches, value, self.objective == Objective::Batch);
        Ok(Solution { schedule, bound: (bound.value > Micros::ZERO).then_some(bound) })
    }
}

fn no_placement() -> Finding {
    let message = "no placement keeps to memory, links, pins and co-location together: the integer program has no \
                   solution; more memory, another link or fewer pins would help";
    Finding::new("devices", message)
}
/// Excludes solutions with these decisions.
fn forbid(program: &mut Program, decisions: &[(Column, bool)]) {
    let ones = decisions.iter().filter(|(_, one)| *one).count();
    let sign = |one: bool| if one { 1.0 } else { -1.0 };
    program.at_most(ones as f64 - 1.0, decisions.iter().map(|(column, one)| (*column, sign(*one))));
}
