//! What no pipeline can be better than.

use super::model::Model;
use crate::plan::Bound;
use crate::units::Micros;

/// Lemma 3.3: the longest task has to be somewhere, and the average block has its share of all work.
pub(super) fn simple(model: &Model) -> Bound {
    let longest = model.work.iter().copied().fold(0.0, f64::max);
    let share = model.work.iter().sum::<Micros>() / model.k as f64;
    Bound::new(longest.max(share), "simple")
}
