//! Local search for a queue of inputs: the split of each task's queue, and the order of tasks.
//!
//! Inputs are grouped into units of equal size, the greatest common divisor of all batch sizes; a cut has for each
//! device the units that it runs, as a bit mask. All devices run their parts in one order of the tasks.

pub mod cut;
mod links;
mod model;
mod neighborhood;
mod plan;
mod reinsert;
mod rolling;
mod state;
mod window;

use super::schedule::Schedule;
use crate::model::instance::Instance;
use crate::model::plan::{self as plans, Batch};
use crate::solvers::chains::Allowance;

pub use model::Model;
pub(crate) use model::greatest_common_divisor;

/// Improves a schedule of a queue: first segment by segment of the network, separated by single-task cuts, then as a
/// whole; see [`rolling`]. `None` if it cannot be searched.
pub(super) fn split(
    instance: &Instance,
    start: &[Batch],
    segments: &[Vec<usize>],
    allowance: &Allowance,
) -> Option<plans::Schedule> {
    let model = Model::new(instance)?;
    let start = model.choice(instance, start)?;
    let best = allowance.best_of(|random| rolling::run(instance, &model, &start, segments, random, allowance))?;
    Some(Schedule::new(&model, best).into_plan(&model))
}
