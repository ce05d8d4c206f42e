//! The best solution so far: of one search, and of several that run beside each other.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use crate::model::plan::{Bound, closes};
use crate::model::units::Micros;

/// The best solution of a search, the algorithm that has found it, and the best lower bound.
#[derive(Clone, Debug)]
pub(crate) struct Incumbent<T> {
    solution: Option<T>,
    value: Micros,
    by: &'static str,
    bound: Bound,
}

impl<T> Incumbent<T> {
    /// No solution yet, and a lower bound.
    pub(crate) fn new(bound: Bound) -> Self {
        Self { solution: None, value: f64::INFINITY, by: "nothing", bound }
    }

    /// Takes a solution if it is better than the one that is there; returns true if so.
    pub(crate) fn take(&mut self, value: Micros, solution: T, by: &'static str) -> bool {
        let is_better = value < self.value;
        if is_better {
            (self.solution, self.value, self.by) = (Some(solution), value, by);
        }
        is_better
    }

    /// Takes another's solution if it is better than the one that is there; the bound stays.
    pub(crate) fn take_over(&mut self, other: Self) {
        if let Some(solution) = other.solution {
            self.take(other.value, solution, other.by);
        }
    }

    /// Takes a bound if it is better than the one that is there.
    pub(crate) fn prove(&mut self, bound: Bound) {
        self.bound = std::mem::replace(&mut self.bound, Bound::none()).or(bound);
    }

    pub(crate) fn solution(&self) -> Option<&T> {
        self.solution.as_ref()
    }

    /// The value of the solution; infinite where there is none.
    pub(crate) fn value(&self) -> Micros {
        self.value
    }

    /// The algorithm that has found the solution.
    pub(crate) fn by(&self) -> &'static str {
        self.by
    }

    pub(crate) fn bound(&self) -> &Bound {
        &self.bound
    }

    /// True if a verified bound proves the solution optimal.
    pub(crate) fn is_closed(&self) -> bool {
        closes(self.bound.verified_value(), self.value)
    }

    /// The same with its solution in another form.
    pub(crate) fn map(self, form: impl FnOnce(T) -> T) -> Self {
        Self { solution: self.solution.map(form), ..self }
    }

    pub(crate) fn into_parts(self) -> (Option<T>, Bound) {
        (self.solution, self.bound)
    }
}

/// The value of the best solution of several searches, and whether it is proven optimal. Clones share it.
#[derive(Clone, Debug)]
pub struct SharedIncumbent(Arc<State>);

#[derive(Debug)]
struct State {
    /// The bits of a value that is not negative: they are ordered as the values are.
    value: AtomicU64,
    is_optimal: AtomicBool,
}

impl Default for SharedIncumbent {
    fn default() -> Self {
        Self::new(f64::INFINITY)
    }
}

impl SharedIncumbent {
    /// An incumbent of this value; infinite without a solution.
    pub(crate) fn new(value: Micros) -> Self {
        let state = State { value: AtomicU64::new(value.max(0.0).to_bits()), is_optimal: AtomicBool::new(false) };
        Self(Arc::new(state))
    }

    /// The least value that was reported; infinite as long as none was.
    pub(crate) fn value(&self) -> Micros {
        f64::from_bits(self.0.value.load(Ordering::Relaxed))
    }

    /// Reports a solution of this value.
    pub(crate) fn report(&self, value: Micros) {
        self.0.value.fetch_min(value.max(0.0).to_bits(), Ordering::Relaxed);
    }

    /// Reports that no solution is better than the incumbent, so that all searches end.
    pub(crate) fn end(&self) {
        self.0.is_optimal.store(true, Ordering::Relaxed);
    }

    pub(crate) fn is_over(&self) -> bool {
        self.0.is_optimal.load(Ordering::Relaxed)
    }
}
