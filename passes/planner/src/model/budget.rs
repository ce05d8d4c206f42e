//! Effort of a search or a proof.

use std::time::Instant;

use super::plan::Limit;
use super::units::deadline;

/// Number of iterations, and a deadline if seconds are limited. Each part of a portfolio has its own iterations; time is
/// shared.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Budget {
    pub(crate) iterations: u64,
    /// Results that depend on it are not reproducible.
    pub(crate) deadline: Option<Instant>,
}

impl Budget {
    /// Creates the budget of a limit that starts at `since`; without a limit, a default number of iterations.
    pub(crate) fn new(limit: Option<Limit>, since: Instant, by_default: u64) -> Self {
        match limit {
            None => Self { iterations: by_default, deadline: None },
            Some(Limit::Iterations(iterations)) => Self { iterations, deadline: None },
            Some(Limit::Seconds(seconds)) => Self { iterations: u64::MAX, deadline: deadline(since, seconds) },
        }
    }

    /// Returns a budget with a share of the remaining time, and all iterations.
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
