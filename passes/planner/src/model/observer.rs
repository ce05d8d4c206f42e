//! Progress of a solver while it runs: better plans, and better bounds.

use std::fmt;
use std::sync::Arc;

use crate::model::error::Error;
use crate::model::units::Micros;

/// Progress of a solver, not necessarily an improvement: several parts of a portfolio may run at the same time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum SolverEvent {
    /// Value of a plan, and the algorithm or part of a portfolio that found it.
    Plan(Micros, &'static str),
    /// Lower bound, and the method that proved it.
    Bound(Micros, &'static str),
    /// Number of nodes of a search tree explored since the last event.
    Explored(u64, &'static str),
    /// Part of a portfolio whose plan is returned.
    Taken(&'static str),
    /// Part of a portfolio that was aborted by an error of its solver; plan and bound are those of the others.
    Failed(&'static str),
}

/// Progress callback, and the name of the algorithm that reports to it. The default reports nothing.
#[derive(Clone, Default)]
pub struct Observer {
    callback: Option<Arc<dyn Fn(SolverEvent) + Send + Sync>>,
    part: &'static str,
}

impl Observer {
    /// Creates an observer; `callback` is called from any thread.
    pub fn new(callback: impl Fn(SolverEvent) + Send + Sync + 'static) -> Self {
        Self { callback: Some(Arc::new(callback)), part: "" }
    }

    /// Returns the observer of an algorithm, which reports plans under that name.
    pub(crate) fn of(&self, part: &'static str) -> Self {
        Self { part, ..self.clone() }
    }

    /// Returns an observer that only reports bounds.
    pub(crate) fn of_bounds(&self) -> Self {
        self.only(|event| matches!(event, SolverEvent::Bound(..)))
    }

    /// Returns an observer that only reports plans.
    pub(crate) fn of_plans(&self) -> Self {
        self.only(|event| matches!(event, SolverEvent::Plan(..)))
    }

    /// Returns an observer that reports everything but bounds.
    pub(crate) fn without_bounds(&self) -> Self {
        self.only(|event| !matches!(event, SolverEvent::Bound(..)))
    }

    fn only(&self, some: fn(&SolverEvent) -> bool) -> Self {
        let observer = self.clone();
        let callback = move |event| {
            if some(&event) {
                observer.notify(event);
            }
        };
        Self { callback: Some(Arc::new(callback)), part: self.part }
    }

    pub(crate) fn plan(&self, value: Micros) {
        if value.is_finite() {
            self.notify(SolverEvent::Plan(value, self.part));
        }
    }

    pub(crate) fn bound(&self, value: Micros, by: &'static str) {
        if value.is_finite() {
            self.notify(SolverEvent::Bound(value, by));
        }
    }

    pub(crate) fn explored(&self, nodes: u64) {
        if nodes > 0 {
            self.notify(SolverEvent::Explored(nodes, self.part));
        }
    }

    /// Reports that a portfolio returns the plan of a part.
    pub(crate) fn taken(&self, value: Micros, part: &'static str) {
        self.of(part).plan(value);
        self.notify(SolverEvent::Taken(part));
    }

    /// Returns the result of a part of a portfolio; reports an internal error of its solver as [`SolverEvent::Failed`].
    pub(crate) fn unless_failed<T>(&self, result: Result<T, Error>) -> Option<T> {
        if matches!(result, Err(Error::Bug(_))) {
            self.notify(SolverEvent::Failed(self.part));
        }
        result.ok()
    }

    /// Reports an event.
    pub fn notify(&self, event: SolverEvent) {
        if let Some(callback) = &self.callback {
            callback(event);
        }
    }
}

impl fmt::Debug for Observer {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(if self.callback.is_some() { "Observer" } else { "None" })
    }
}
