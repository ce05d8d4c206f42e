//! Mixed integer programs: costs, columns and rows; `Program::solve` passes them to HiGHS, and `Program::prove` verifies
//! the bound that HiGHS returns.
//!
//! This module does not depend on the meaning of a program. In a program that is used for a proof every plan is a
//! solution, except for the rounding of coefficients; bounds are therefore reduced by a relative tolerance (`rounded`): a
//! plan that costs less than the bound by that share would be a solution in exact arithmetic, too.

mod deadline;
mod ffi;
mod propagate;
mod safe;
mod tree;

use crate::model::budget::Budget;
use crate::model::error::Error;
pub use deadline::exit_if_solver_detached;
pub(crate) use ffi::Relaxation;
pub use ffi::version as highs_version;
use propagate::Propagator;
use std::ops::ControlFlow;
use std::time::Instant;

/// Relative reduction of a bound: more than the rounding of coefficients, and less than the difference of two distinct
/// times.
const ROUNDED: f64 = 4e-10;
/// Share of the limits for the verification of HiGHS's bound.
const VERIFIED_SHARE: f64 = 0.25;
/// Without a limit in seconds, maximum number of iterations of the verification: a multiple of HiGHS's iterations, plus a
/// constant.
const VERIFIED_FACTOR: u64 = 2;
const VERIFIED_ITERATIONS: u64 = 5000;

/// Reduces a verified bound by the rounding error of coefficients.
pub(crate) fn rounded(bound: f64) -> f64 {
    if bound > 0.0 { bound * (1.0 - ROUNDED) } else { bound * (1.0 + ROUNDED) }
}

/// Variable of a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Column(usize);

impl Column {
    /// Returns its value in a solution.
    pub fn of(self, values: &[f64]) -> f64 {
        values[self.0]
    }

    /// Sets its value in a solution.
    pub fn set(self, values: &mut [f64], value: f64) {
        values[self.0] = value;
    }
}

/// `minimize cost · x, lower ≤ x ≤ upper, row.lower ≤ row · x ≤ row.upper`, some of x integer.
#[derive(Clone, Debug, Default)]
pub struct Program {
    cost: Vec<f64>,
    lower: Vec<f64>,
    upper: Vec<f64>,
    is_integer: Vec<bool>,
    row_lower: Vec<f64>,
    row_upper: Vec<f64>,
    /// Index of each row's first entry.
    row_start: Vec<usize>,
    entry_column: Vec<usize>,
    entry_value: Vec<f64>,
}

impl Program {
    /// Returns the number of variables: a solution has a value for each.
    pub fn columns(&self) -> usize {
        self.cost.len()
    }

    /// Returns the number of rows.
    pub fn rows(&self) -> usize {
        self.row_lower.len()
    }

    /// Adds a continuous variable with its bounds and its cost.
    pub fn column(&mut self, lower: f64, upper: f64, cost: f64) -> Column {
        self.cost.push(cost);
        self.lower.push(lower);
        self.upper.push(upper);
        self.is_integer.push(false);
        Column(self.cost.len() - 1)
    }

    /// Adds a binary variable.
    pub fn binary(&mut self) -> Column {
        let column = self.column(0.0, 1.0, 0.0);
        self.is_integer[column.0] = true;
        column
    }

    /// Fixes a variable to a value.
    pub fn fix(&mut self, column: Column, value: f64) {
        (self.lower[column.0], self.upper[column.0]) = (value, value);
    }

    /// Adds a row `terms ≥ lower`. A variable may occur in several terms.
    pub fn at_least(&mut self, lower: f64, terms: impl IntoIterator<Item = (Column, f64)>) {
        self.row(lower, f64::INFINITY, terms);
    }

    /// Adds a row `terms ≤ upper`.
    pub fn at_most(&mut self, upper: f64, terms: impl IntoIterator<Item = (Column, f64)>) {
        self.row(f64::NEG_INFINITY, upper, terms);
    }

    /// Adds a row `terms = value`.
    pub fn exactly(&mut self, value: f64, terms: impl IntoIterator<Item = (Column, f64)>) {
        self.row(value, value, terms);
    }

    fn row(&mut self, lower: f64, upper: f64, terms: impl IntoIterator<Item = (Column, f64)>) {
        self.row_start.push(self.entry_column.len());
        self.row_lower.push(lower);
        self.row_upper.push(upper);
        for (column, value) in added_up(terms) {
            self.entry_column.push(column.0);
            self.entry_value.push(value);
        }
    }

    /// Returns the linear relaxation, which can be solved repeatedly. The limits are for all of its solves together.
    pub(crate) fn relaxation(&self, limits: &Limits) -> Result<Relaxation, Error> {
        Relaxation::new(&Self { is_integer: vec![false; self.columns()], ..self.clone() }, limits)
    }

    /// Iterates over the entries of a row: columns and coefficients.
    fn entries(&self, row: usize) -> impl Iterator<Item = (usize, f64)> + '_ {
        let end = self.row_start.get(row + 1).copied().unwrap_or(self.entry_column.len());
        let range = self.row_start[row]..end;
        self.entry_column[range.clone()].iter().copied().zip(self.entry_value[range].iter().copied())
    }

    /// Returns a lower bound on the cost of every solution from the dual values of a linear program with these rows, with
    /// directed rounding; infinite if a ray proves infeasibility.
    pub(crate) fn safe_bound(&self, outcome: &Outcome) -> f64 {
        let mut bounds = safe::Bounds::of(self);
        // Reduced costs of unbounded variables would have to be exact.
        let is_unlimited = self.lower.iter().chain(&self.upper).any(|limit| limit.is_infinite());
        if is_unlimited && !Propagator::new(self).all(&mut bounds) {
            return f64::INFINITY;
        }
        if outcome.ray.as_ref().is_some_and(|ray| safe::is_infeasible(self, &bounds, ray)) {
            return f64::INFINITY;
        }
        safe::bound(self, &bounds, &outcome.duals)
    }

    /// Solves, and verifies the bound within the remaining limits: [`Outcome::verified`].
    pub(crate) fn prove(
        &self,
        limits: &Limits,
        start: Option<&[f64]>,
        observer: &mut dyn FnMut(Event<'_>) -> ControlFlow<()>,
    ) -> Result<Outcome, Error> {
        let since = Instant::now();
        let share = |all: f64| all * (1.0 - VERIFIED_SHARE);
        let iterations = if limits.iterations == u64::MAX { u64::MAX } else { share(limits.iterations as f64) as u64 };
        let most = Limits { iterations, seconds: limits.seconds.map(share), ..*limits };
        let mut outcome = self.solve(&most, start, observer)?;
        // Proportional to the effort of the solve if iterations are limited.
        let most = VERIFIED_FACTOR.saturating_mul(outcome.iterations).saturating_add(VERIFIED_ITERATIONS);
        let iterations = if limits.seconds.is_some() { u64::MAX } else { most };
        let left = Limits {
            iterations: limits.iterations.saturating_sub(outcome.iterations).min(iterations),
            seconds: limits.seconds.map(|seconds| (seconds - since.elapsed().as_secs_f64()).max(0.0)),
            ..*limits
        };
        if outcome.bound.is_nan() || outcome.bound == f64::NEG_INFINITY {
            return Ok(outcome);
        }
        // Solvers stop within a tolerance of the optimum. If the solver fails on a linear program, the bound stays
        // unverified; the solution remains.
        if let Ok(verified) = tree::verify(self, rounded(outcome.bound), outcome.finished, &left) {
            outcome.verified = verified.bound;
            outcome.iterations += verified.iterations;
        }
        Ok(outcome)
    }

    /// Solves within limits, from a start solution if one is given, and reports progress to the observer.
    pub(crate) fn solve(
        &self,
        limits: &Limits,
        start: Option<&[f64]>,
        observer: &mut dyn FnMut(Event<'_>) -> ControlFlow<()>,
    ) -> Result<Outcome, Error> {
        match limits.seconds {
            Some(seconds) => deadline::solve(self, limits, seconds, start, observer),
            None => ffi::solve(self, limits, start, observer),
        }
    }
}

/// Sums the terms of each variable.
fn added_up(terms: impl IntoIterator<Item = (Column, f64)>) -> Vec<(Column, f64)> {
    let mut terms: Vec<(Column, f64)> = terms.into_iter().collect();
    terms.sort_by_key(|(column, _)| *column);
    terms.dedup_by(|next, sum| {
        let same = next.0 == sum.0;
        sum.1 += if same { next.1 } else { 0.0 };
        same
    });
    terms.retain(|(_, value)| *value != 0.0);
    terms
}

/// Limits of a solve. HiGHS has one thread, so that iterations are reproducible.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    pub(crate) seed: u64,
    /// Simplex iterations, in all.
    pub(crate) iterations: u64,
    pub(crate) seconds: Option<f64>,
}

impl Limits {
    /// Creates limits with the rest of a budget.
    pub(crate) fn new(seed: u64, budget: &Budget) -> Self {
        Self { seed, iterations: budget.iterations, seconds: budget.seconds_left() }
    }

    /// Returns the limits with the time that is left since they were set.
    pub(crate) fn left_since(&self, since: Instant) -> Self {
        let left = |seconds: f64| (seconds - since.elapsed().as_secs_f64()).max(0.0);
        Self { seconds: self.seconds.map(left), ..*self }
    }
}

/// Event while a program is solved.
#[derive(Debug)]
pub(crate) enum Event<'a> {
    /// Improved solution.
    Solution(&'a [f64]),
    /// Lower bound.
    Bound(f64),
    /// Request for a solution of another solver, to be stored in the slot.
    SolutionRequest(&'a mut Option<Vec<f64>>),
}

/// Result of a verification.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Verified {
    /// Lower bound in exact arithmetic; infinite if there is no solution.
    pub(crate) bound: f64,
    /// Simplex iterations that were spent.
    pub(crate) iterations: u64,
}

/// Result of a solve.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Outcome {
    /// Best solution.
    pub(crate) values: Option<Vec<f64>>,
    /// Lower bound that the solver claims; infinite if it claims infeasibility.
    pub(crate) bound: f64,
    /// Lower bound in exact arithmetic, if requested; infinite if there is no solution.
    pub(crate) verified: f64,
    /// Dual values of the rows, of a linear program.
    pub(crate) duals: Vec<f64>,
    /// Farkas ray of a linear program that the solver claims to be infeasible.
    pub(crate) ray: Option<Vec<f64>>,
    /// True if the search tree was exhausted.
    pub(crate) finished: bool,
    /// Iterations that were spent.
    pub(crate) iterations: u64,
    /// Number of explored nodes of the search tree.
    pub(crate) nodes: u64,
}

#[cfg(test)]
mod test {
    use super::*;

    const UNLIMITED: Limits = Limits { seed: 1, iterations: u64::MAX, seconds: None };

    /// Builds a knapsack of (weight, value) items with a capacity; the optimum is computed by enumeration.
    fn knapsack(items: &[(f64, f64)], room: f64) -> (Program, Vec<Column>, f64) {
        let mut program = Program::default();
        let columns: Vec<Column> = items.iter().map(|_| program.binary()).collect();
        for (column, item) in columns.iter().zip(items) {
            program.cost[column.0] = -item.1;
        }
        program.at_most(room, columns.iter().zip(items).map(|(column, item)| (*column, item.0)));
        let best = (0..1_u32 << items.len()).filter_map(|set| {
            let chosen = items.iter().enumerate().filter(|(item, _)| set >> item & 1 == 1).map(|(_, item)| item);
            let (weight, value) = chosen.fold((0.0, 0.0), |sum, item| (sum.0 + item.0, sum.1 + item.1));
            (weight <= room).then_some(value)
        });
        let best = best.fold(0.0, f64::max);
        (program, columns, best)
    }

    fn items() -> Vec<(f64, f64)> {
        let mut random = crate::random::Random::new(1);
        (0..14).map(|_| (1.0 + random.below(50) as f64, 1.0 + random.below(50) as f64)).collect()
    }

    #[test]
    fn knapsacks_are_solved() {
        for room in [0.0, 20.0, 100.0, 180.0] {
            let (program, columns, best) = knapsack(&items(), room);
            let mut seen = Vec::new();
            let mut observer = |event: Event<'_>| {
                if let Event::Solution(values) = event {
                    seen.push(values.to_vec());
                }
                ControlFlow::Continue(())
            };
            let outcome = program.solve(&UNLIMITED, None, &mut observer).unwrap();
            let values = outcome.values.unwrap();
            let value: f64 = columns.iter().zip(items()).map(|(column, item)| column.of(&values) * item.1).sum();
            assert!((value - best).abs() < 1e-6 && (outcome.bound + best).abs() < 1e-6 && outcome.finished);
        }
    }

    #[test]
    fn infeasible_programs() {
        let mut program = Program::default();
        let column = program.binary();
        program.at_least(2.0, [(column, 1.0)]);
        let outcome = program.solve(&UNLIMITED, None, &mut |_| ControlFlow::Continue(())).unwrap();
        assert_eq!((outcome.values, outcome.bound, outcome.finished), (None, f64::INFINITY, true));
    }

    #[test]
    fn a_start_solution_is_kept_and_an_observer_stops_the_solve() {
        let (program, ..) = knapsack(&items(), 100.0);
        let nothing = vec![0.0; program.columns()];
        let limits = Limits { seconds: Some(0.0), ..UNLIMITED };
        let outcome = program.solve(&limits, Some(&nothing), &mut |_| ControlFlow::Continue(())).unwrap();
        assert!(outcome.values.is_some() && !outcome.finished);
        let mut events = 0;
        let mut stop = |_: Event<'_>| {
            events += 1;
            ControlFlow::Break(())
        };
        let outcome = program.solve(&UNLIMITED, None, &mut stop).unwrap();
        assert!(events > 0, "{outcome:?}");
    }

    #[test]
    fn terms_of_one_variable_are_added() {
        let mut program = Program::default();
        let column = program.column(0.0, 10.0, 1.0);
        program.at_least(6.0, [(column, 1.0), (column, 2.0)]);
        let outcome = program.solve(&UNLIMITED, None, &mut |_| ControlFlow::Continue(())).unwrap();
        assert!((column.of(&outcome.values.unwrap()) - 2.0).abs() < 1e-9);
    }
}
