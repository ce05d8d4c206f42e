//! Progress of a solver while it works: better plans, and better bounds.

use std::fmt;
use std::sync::Arc;

use crate::model::error::Error;
use crate::model::units::Micros;

/// Something that a solver has found, not necessarily the best known: several parts may be at work.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum SolverEvent {
    /// A plan of this value, found by this algorithm or part of a portfolio.
    Plan(Micros, &'static str),
    /// No plan is better than this, which is proven by what is named.
    Bound(Micros, &'static str),
    /// So many nodes of a search tree have been looked at since the last time.
    Explored(u64, &'static str),
    /// The plan that is given back is that of this part of a portfolio.
    Taken(&'static str),
    /// A part of a portfolio was given up because of an error of its solver; plan and bound are those of the others.
    Failed(&'static str),
}

/// Callback for progress, and the name of the algorithm that reports it. The default reports nothing.
#[derive(Clone, Default)]
pub struct Observer {
    callback: Option<Arc<dyn Fn(SolverEvent) + Send + Sync>>,
    part: &'static str,
}

impl Observer {
    /// Calls back from any thread.
    pub fn new(callback: impl Fn(SolverEvent) + Send + Sync + 'static) -> Self {
        Self { callback: Some(Arc::new(callback)), part: "" }
    }

    /// The same for an algorithm, whose name its plans are reported with.
    pub(crate) fn of(&self, part: &'static str) -> Self {
        Self { part, ..self.clone() }
    }

    /// Reports bounds only.
    pub(crate) fn of_bounds(&self) -> Self {
        self.only(|event| matches!(event, SolverEvent::Bound(..)))
    }

    /// Reports everything but bounds.
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

    /// A portfolio gives back what a part has found.
    pub(crate) fn taken(&self, value: Micros, part: &'static str) {
        self.of(part).plan(value);
        self.notify(SolverEvent::Taken(part));
    }

    /// Returns a part's result; reports a solver's error instead of it.
    pub(crate) fn unless_failed<T>(&self, result: Result<T, Error>) -> Option<T> {
        if matches!(result, Err(Error::Bug(_))) {
            self.notify(SolverEvent::Failed(self.part));
        }
        result.ok()
    }

    /// Calls back.
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
