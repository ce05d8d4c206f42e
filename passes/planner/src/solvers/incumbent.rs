//! Incumbents: the best solution of one search, and the value shared by concurrent searches.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use crate::model::plan::{Bound, closes};
use crate::model::units::Micros;

/// Best solution of a search, the algorithm that found it, and the best lower bound.
#[derive(Clone, Debug)]
pub(crate) struct Incumbent<T> {
    solution: Option<T>,
    value: Micros,
    by: &'static str,
    bound: Bound,
}

impl<T> Incumbent<T> {
    /// Returns an incumbent without a solution, with a lower bound.
    pub(crate) fn new(bound: Bound) -> Self {
        Self { solution: None, value: Micros::INFINITY, by: "nothing", bound }
    }

    /// Updates the solution if `value` is better; returns true if so.
    pub(crate) fn take(&mut self, value: Micros, solution: T, by: &'static str) -> bool {
        let is_better = value < self.value;
        if is_better {
            self.replace(value, solution, by);
        }
        is_better
    }

    /// Updates the solution, whatever its value.
    pub(crate) fn replace(&mut self, value: Micros, solution: T, by: &'static str) {
        (self.solution, self.value, self.by) = (Some(solution), value, by);
    }

    /// Updates the solution from another incumbent if that is better; the bound is unchanged.
    pub(crate) fn take_over(&mut self, other: Self) {
        if let Some(solution) = other.solution {
            self.take(other.value, solution, other.by);
        }
    }

    /// Updates the bound if it is better.
    pub(crate) fn prove(&mut self, bound: Bound) {
        self.bound = std::mem::replace(&mut self.bound, Bound::none()).or(bound);
    }

    pub(crate) fn solution(&self) -> Option<&T> {
        self.solution.as_ref()
    }

    /// Returns the value of the solution; infinite without one.
    pub(crate) fn value(&self) -> Micros {
        self.value
    }

    /// Returns the algorithm that found the solution.
    pub(crate) fn by(&self) -> &'static str {
        self.by
    }

    pub(crate) fn bound(&self) -> &Bound {
        &self.bound
    }

    /// Returns true if a verified bound proves the solution optimal.
    pub(crate) fn is_closed(&self) -> bool {
        closes(self.bound.verified_value(), self.value)
    }

    /// Converts the solution.
    pub(crate) fn map(self, form: impl FnOnce(T) -> T) -> Self {
        Self { solution: self.solution.map(form), ..self }
    }

    pub(crate) fn into_parts(self) -> (Option<T>, Bound) {
        (self.solution, self.bound)
    }
}

/// Value of the best solution of several searches, and whether it is proven optimal. Clones share it.
#[derive(Clone, Debug)]
pub struct SharedIncumbent(Arc<State>);

#[derive(Debug)]
struct State {
    /// Bits of a non-negative value; they have the same order as the values.
    value: AtomicU64,
    is_optimal: AtomicBool,
}

impl Default for SharedIncumbent {
    fn default() -> Self {
        Self::new(Micros::INFINITY)
    }
}

impl SharedIncumbent {
    /// Returns an incumbent with this value; infinite without a solution.
    pub(crate) fn new(value: Micros) -> Self {
        let state = State { value: AtomicU64::new(value.0.max(0.0).to_bits()), is_optimal: AtomicBool::new(false) };
        Self(Arc::new(state))
    }

    /// Returns the least reported value; infinite if none was reported.
    pub(crate) fn value(&self) -> Micros {
        Micros(f64::from_bits(self.0.value.load(Ordering::Relaxed)))
    }

    /// Reports a solution of this value.
    pub(crate) fn report(&self, value: Micros) {
        self.0.value.fetch_min(value.0.max(0.0).to_bits(), Ordering::Relaxed);
    }

    /// Reports that the incumbent is optimal, so that all searches end.
    pub(crate) fn end(&self) {
        self.0.is_optimal.store(true, Ordering::Relaxed);
    }

    /// Returns true if the incumbent is proven optimal.
    pub(crate) fn is_over(&self) -> bool {
        self.0.is_optimal.load(Ordering::Relaxed)
    }
}
