//! Several searches at the same problem: each may know the best value so far, and when it is over.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use crate::units::Micros;

/// What searches share. Clones are the same race.
#[derive(Clone, Debug)]
pub struct Race(Arc<State>);

#[derive(Debug)]
struct State {
    /// The bits of a value that is not negative: they are ordered as the values are.
    best: AtomicU64,
    over: AtomicBool,
}

impl Default for Race {
    fn default() -> Self {
        Self::new(f64::INFINITY)
    }
}

impl Race {
    /// A race in which someone has a schedule of this value.
    pub(crate) fn new(best: Micros) -> Self {
        Self(Arc::new(State { best: AtomicU64::new(best.max(0.0).to_bits()), over: AtomicBool::new(false) }))
    }

    /// The least value of a schedule that someone has; infinite as long as nobody has any.
    pub(crate) fn best(&self) -> Micros {
        f64::from_bits(self.0.best.load(Ordering::Relaxed))
    }

    /// Someone has a schedule of this value.
    pub(crate) fn report(&self, value: Micros) {
        self.0.best.fetch_min(value.max(0.0).to_bits(), Ordering::Relaxed);
    }

    /// Nothing better is to be found.
    pub(crate) fn end(&self) {
        self.0.over.store(true, Ordering::Relaxed);
    }

    pub(crate) fn is_over(&self) -> bool {
        self.0.over.load(Ordering::Relaxed)
    }
}
