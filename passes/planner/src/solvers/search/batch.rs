//! Search for a queue of inputs: how each task's queue is cut, and in which order tasks run.
//!
//! Inputs are dealt in units, the largest number that all batch sizes are multiples of; a cut says for each device which
//! units it takes, as a mask. All devices run their parts in one order of the tasks.

mod anneal;
mod cut;
mod evolve;
mod groups;
mod links;
mod model;
mod roll;
mod schedule;
mod settle;
mod shake;
mod state;
mod window;

use super::method::Method;
use crate::model::instance::Instance;
use crate::model::plan::{self, Batch};
use crate::solvers::chains::Allowance;

use model::Model;
use schedule::Schedule;

/// Improves a schedule of a queue. None where it cannot be searched.
pub(super) fn anneal(
    instance: &Instance,
    start: &[Batch],
    allowance: &Allowance,
    method: Method,
) -> Option<plan::Schedule> {
    let model = Model::new(instance)?;
    let start = Schedule::of_plan(instance, &model, start)?;
    let best = allowance.best_of(|random, budget| anneal::run(instance, &model, &start, random, budget, method))?;
    Some(Schedule::new(&model, best).into_plan(&model))
}

/// The same, but first stretch after stretch of the network, each cut between one task and the next; see [`roll`].
pub(super) fn split(
    instance: &Instance,
    start: &[Batch],
    stretches: &[Vec<usize>],
    allowance: &Allowance,
) -> Option<plan::Schedule> {
    let model = Model::new(instance)?;
    let start = Schedule::of_plan(instance, &model, start)?;
    let best = allowance.best_of(|random, budget| roll::run(instance, &model, &start, stretches, random, budget))?;
    Some(Schedule::new(&model, best).into_plan(&model))
}

/// The same by evolution.
pub(super) fn evolve(instance: &Instance, start: &[Batch], allowance: &Allowance) -> Option<plan::Schedule> {
    let model = Model::new(instance)?;
    let start = Schedule::of_plan(instance, &model, start)?;
    let best = allowance.best_of(|random, budget| evolve::run(instance, &model, &start, random, budget))?;
    Some(Schedule::new(&model, best).into_plan(&model))
}
