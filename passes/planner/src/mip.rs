//! Mixed integer programs: costs, columns and rows; `Program::solve` gives them to HiGHS, and `Program::prove` checks what
//! HiGHS says of them.
//!
//! Nothing here knows what a program is about. Who builds one for a proof makes every plan a solution of it but for the rounding
//! of coefficients, which is why bounds are used less a share (`rounded`): a plan that costs by that share less than the
//! bound would be a solution in exact arithmetic, too.

mod deadline;
mod ffi;
mod propagate;
mod safe;
mod tree;

use crate::model::budget::Budget;
use crate::model::error::Error;
pub use deadline::exit_past_solvers;
pub(crate) use ffi::Relaxation;
pub use ffi::version as highs_version;
use propagate::Propagator;
use std::ops::ControlFlow;
use std::time::Instant;

/// More than what rounding of coefficients makes of a bound, in parts of it, and less than what makes two times differ.
const ROUNDED: f64 = 4e-10;
/// The share of the limits that is left to check what HiGHS says.
const VERIFIED_SHARE: f64 = 0.25;
/// Without a limit in seconds, checking takes at most so many iterations for each that HiGHS took, and some more.
const VERIFIED_FACTOR: u64 = 2;
const VERIFIED_ITERATIONS: u64 = 5000;

/// A verified bound less what the rounding of coefficients may have made of it.
pub(crate) fn rounded(bound: f64) -> f64 {
    if bound > 0.0 { bound * (1.0 - ROUNDED) } else { bound * (1.0 + ROUNDED) }
}

/// A variable of a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Column(usize);

impl Column {
    /// Its value in a solution.
    pub fn of(self, values: &[f64]) -> f64 {
        values[self.0]
    }

    /// Gives it a value in a solution.
    pub fn set(self, values: &mut [f64], value: f64) {
        values[self.0] = value;
    }
}

/// `minimise cost · x, lower ≤ x ≤ upper, row.lower ≤ row · x ≤ row.upper`, some of x whole.
#[derive(Clone, Debug, Default)]
pub struct Program {
    cost: Vec<f64>,
    lower: Vec<f64>,
    upper: Vec<f64>,
    whole: Vec<bool>,
    row_lower: Vec<f64>,
    row_upper: Vec<f64>,
    /// Where each row begins among the entries.
    row_start: Vec<usize>,
    entry_column: Vec<usize>,
    entry_value: Vec<f64>,
}

impl Program {
    /// Number of variables: a solution has a value for each.
    pub fn columns(&self) -> usize {
        self.cost.len()
    }

    /// Number of rows.
    pub fn rows(&self) -> usize {
        self.row_lower.len()
    }

    /// A variable between two values that costs so much a unit.
    pub fn column(&mut self, lower: f64, upper: f64, cost: f64) -> Column {
        self.cost.push(cost);
        self.lower.push(lower);
        self.upper.push(upper);
        self.whole.push(false);
        Column(self.cost.len() - 1)
    }

    /// Zero or one.
    pub fn choice(&mut self) -> Column {
        let column = self.column(0.0, 1.0, 0.0);
        self.whole[column.0] = true;
        column
    }

    /// Fixes a variable to a value.
    pub fn fix(&mut self, column: Column, value: f64) {
        (self.lower[column.0], self.upper[column.0]) = (value, value);
    }

    /// A sum that is at least so much. A variable may stand in it several times.
    pub fn at_least(&mut self, lower: f64, terms: impl IntoIterator<Item = (Column, f64)>) {
        self.row(lower, f64::INFINITY, terms);
    }

    /// A sum that is at most so much.
    pub fn at_most(&mut self, upper: f64, terms: impl IntoIterator<Item = (Column, f64)>) {
        self.row(f64::NEG_INFINITY, upper, terms);
    }

    /// A sum that is this.
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

    /// The same program with nothing whole, to be solved several times. The limits are for all of them together.
    pub(crate) fn relaxation(&self, limits: &Limits) -> Result<Relaxation, Error> {
        Relaxation::new(&Self { whole: vec![false; self.columns()], ..self.clone() }, limits)
    }

    /// The entries of a row: columns and coefficients.
    fn entries(&self, row: usize) -> impl Iterator<Item = (usize, f64)> + '_ {
        let end = self.row_start.get(row + 1).copied().unwrap_or(self.entry_column.len());
        let range = self.row_start[row]..end;
        self.entry_column[range.clone()].iter().copied().zip(self.entry_value[range].iter().copied())
    }

    /// A lower bound on all solutions' costs from the dual values of a linear program with these rows, with directed rounding;
    /// infinite where a ray shows that there is no solution.
    pub(crate) fn safe_bound(&self, outcome: &Outcome) -> f64 {
        let mut bounds = safe::Bounds::of(self);
        // Reduced costs of variables without bounds would have to be exactly right.
        let is_unlimited = self.lower.iter().chain(&self.upper).any(|limit| limit.is_infinite());
        if is_unlimited && !Propagator::new(self).all(&mut bounds) {
            return f64::INFINITY;
        }
        if outcome.ray.as_ref().is_some_and(|ray| safe::is_infeasible(self, &bounds, ray)) {
            return f64::INFINITY;
        }
        safe::bound(self, &bounds, &outcome.duals)
    }

    /// Solves, and checks the bound with what is left of the limits: [`Outcome::verified`].
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
        // In proportion to what it took to find, where iterations are what is limited.
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
        // Solvers stop within a tolerance of the optimum.
        // A linear program that the solver fails at leaves the bound unverified; the solution stands.
        if let Ok(verified) = tree::verify(self, rounded(outcome.bound), outcome.finished, &left) {
            outcome.verified = verified.bound;
            outcome.iterations += verified.iterations;
        }
        Ok(outcome)
    }

    /// Solves within limits, from a solution if one is given, and reports what is found on the way.
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

/// Each variable once.
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

/// Effort that is allowed. One thread works, so that iterations are reproducible.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    pub(crate) seed: u64,
    /// Of the simplex method, in all.
    pub(crate) iterations: u64,
    pub(crate) seconds: Option<f64>,
}

impl Limits {
    /// Limits with the rest of a budget.
    pub(crate) fn new(seed: u64, budget: &Budget) -> Self {
        Self { seed, iterations: budget.iterations, seconds: budget.seconds_left() }
    }

    /// Time left since the limits were set.
    pub(crate) fn left_since(&self, since: Instant) -> Self {
        let left = |seconds: f64| (seconds - since.elapsed().as_secs_f64()).max(0.0);
        Self { seconds: self.seconds.map(left), ..*self }
    }
}

/// Event while a program is solved.
#[derive(Debug)]
pub(crate) enum Event<'a> {
    /// A solution that is better than those before it.
    Solution(&'a [f64]),
    /// No solution costs less.
    Bound(f64),
    /// Whoever has a solution from elsewhere may put it here.
    Wanted(&'a mut Option<Vec<f64>>),
}

/// Result of a verification.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Verified {
    /// No solution costs less, in exact arithmetic; infinite where there is none.
    pub(crate) bound: f64,
    /// Simplex iterations that were spent.
    pub(crate) iterations: u64,
}

/// Result of a solve.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Outcome {
    /// The best solution.
    pub(crate) values: Option<Vec<f64>>,
    /// The solver's word that no solution costs less; infinite where it says that there is none.
    pub(crate) bound: f64,
    /// Lower bound that holds in exact arithmetic, where it was asked for; infinite where there is no solution.
    pub(crate) verified: f64,
    /// Dual values of the rows, of a linear program.
    pub(crate) duals: Vec<f64>,
    /// A Farkas ray of a linear program that the solver says has no solution.
    pub(crate) ray: Option<Vec<f64>>,
    /// True if the search tree was exhausted.
    pub(crate) finished: bool,
    /// Iterations that were spent.
    pub(crate) iterations: u64,
    /// Nodes of the search tree that were looked at.
    pub(crate) nodes: u64,
}

#[cfg(test)]
mod test {
    use super::*;

    const FREELY: Limits = Limits { seed: 1, iterations: u64::MAX, seconds: None };

    /// Weights, values, and what fits: the largest value by trying everything.
    fn knapsack(items: &[(f64, f64)], room: f64) -> (Program, Vec<Column>, f64) {
        let mut program = Program::default();
        let columns: Vec<Column> = items.iter().map(|_| program.choice()).collect();
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
    fn knapsacks_are_filled() {
        for room in [0.0, 20.0, 100.0, 180.0] {
            let (program, columns, best) = knapsack(&items(), room);
            let mut seen = Vec::new();
            let mut observer = |event: Event<'_>| {
                if let Event::Solution(values) = event {
                    seen.push(values.to_vec());
                }
                ControlFlow::Continue(())
            };
            let outcome = program.solve(&FREELY, None, &mut observer).unwrap();
            let values = outcome.values.unwrap();
            let value: f64 = columns.iter().zip(items()).map(|(column, item)| column.of(&values) * item.1).sum();
            assert!((value - best).abs() < 1e-6 && (outcome.bound + best).abs() < 1e-6 && outcome.finished);
        }
    }

    #[test]
    fn without_solutions() {
        let mut program = Program::default();
        let column = program.choice();
        program.at_least(2.0, [(column, 1.0)]);
        let outcome = program.solve(&FREELY, None, &mut |_| ControlFlow::Continue(())).unwrap();
        assert_eq!((outcome.values, outcome.bound, outcome.finished), (None, f64::INFINITY, true));
    }

    #[test]
    fn a_start_is_kept_and_a_watcher_obeyed() {
        let (program, ..) = knapsack(&items(), 100.0);
        let nothing = vec![0.0; program.columns()];
        let limits = Limits { seconds: Some(0.0), ..FREELY };
        let outcome = program.solve(&limits, Some(&nothing), &mut |_| ControlFlow::Continue(())).unwrap();
        assert!(outcome.values.is_some() && !outcome.finished);
        let mut events = 0;
        let mut stop = |_: Event<'_>| {
            events += 1;
            ControlFlow::Break(())
        };
        let outcome = program.solve(&FREELY, None, &mut stop).unwrap();
        assert!(events > 0, "{outcome:?}");
    }

    #[test]
    fn terms_of_one_variable_are_added() {
        let mut program = Program::default();
        let column = program.column(0.0, 10.0, 1.0);
        program.at_least(6.0, [(column, 1.0), (column, 2.0)]);
        let outcome = program.solve(&FREELY, None, &mut |_| ControlFlow::Continue(())).unwrap();
        assert!((column.of(&outcome.values.unwrap()) - 2.0).abs() < 1e-9);
    }
}
