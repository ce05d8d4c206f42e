//! Search for a queue of inputs: how each task's queue is cut, and in which order tasks run.
//!
//! Inputs are dealt in units, the largest number that all batch sizes are multiples of; a cut says for each device which
//! units it takes, as a mask. All devices run their parts in one order of the tasks.

pub mod cut;
mod links;
mod model;
mod plan;
mod roll;
mod settle;
mod shake;
mod state;
mod window;

use super::schedule::Schedule;
use crate::model::instance::Instance;
use crate::model::plan::{self as plans, Batch};
use crate::solvers::chains::Allowance;

pub use model::Model;

/// Improves a schedule of a queue: first stretch after stretch of the network, each cut between one task and the next, then the
/// whole; see [`roll`]. None where it cannot be searched.
pub(super) fn split(
    instance: &Instance,
    start: &[Batch],
    stretches: &[Vec<usize>],
    allowance: &Allowance,
) -> Option<plans::Schedule> {
    let model = Model::new(instance)?;
    let start = model.choice(instance, start)?;
    let best = allowance.best_of(|random| roll::run(instance, &model, &start, stretches, random, allowance))?;
    Some(Schedule::new(&model, best).into_plan(&model))
}
