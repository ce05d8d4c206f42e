//! Effort of a search or a proof.

use std::time::Instant;

use super::plan::Limit;
use super::units::deadline;

/// Iterations, and a deadline where seconds are limited. Iterations are each part's own; time is shared.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Budget {
    pub(crate) iterations: u64,
    /// Results that depend on it are not reproducible.
    pub(crate) deadline: Option<Instant>,
}

impl Budget {
    /// Effort that a limit allows from a time on; without a limit, a default of iterations.
    pub(crate) fn new(limit: Option<Limit>, since: Instant, by_default: u64) -> Self {
        match limit {
            None => Self { iterations: by_default, deadline: None },
            Some(Limit::Iterations(iterations)) => Self { iterations, deadline: None },
            Some(Limit::Seconds(seconds)) => Self { iterations: u64::MAX, deadline: deadline(since, seconds) },
        }
    }

    /// A share of the time that is left, and all iterations.
    pub(crate) fn share_of_time(self, share: f64) -> Self {
        let now = Instant::now();
        let deadline = self.deadline.map(|end| now + end.saturating_duration_since(now).mul_f64(share));
        Self { deadline, ..self }
    }

    pub(crate) fn seconds_left(&self) -> Option<f64> {
        self.deadline.map(|end| end.saturating_duration_since(Instant::now()).as_secs_f64())
    }

    pub(crate) fn is_late(&self) -> bool {
        self.deadline.is_some_and(|end| Instant::now() >= end)
    }
}
