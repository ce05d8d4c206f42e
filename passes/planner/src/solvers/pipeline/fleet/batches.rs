//! Pipelines whose stages take several inputs at once, or have several devices that take turns.
//!
//! A configuration fixes the batch size of each device and the devices that take turns. Under it the pipeline is one on
//! fewer devices that take one input at a time: times and latencies are divided by the batch size, times by the number
//! of devices, and memory is that of a batch. So the algorithms for such devices search tasks and devices, and `search`
//! and `replicas` search configurations around them. `relaxation` is the one for bounds: each task in its best batch size.

mod config;
mod ports;
mod relaxation;
mod replicas;
mod resize;
mod search;
mod turns;

use std::time::Instant;

use super::Plans;
use crate::model::error::Error;
use crate::model::options::Options;
use crate::model::plan::Bound;
use crate::model::problem::Problem;
use crate::solvers::Solution;

use config::Space;
use search::Search;

/// Share of the time for bounds.
const BOUND_SHARE: f64 = 0.2;
/// Share of the remaining time for batches without replicas, if there are some.
const SIZES_SHARE: f64 = 0.5;

/// Returns true if a request needs more than one input or device of a stage.
pub(super) fn is_asked(problem: &Problem, options: &Options) -> bool {
    options.replicas() > 1 || problem.largest_batch(options.max_batch) > 1
}

/// Plans a pipeline of batches: at first one input and one device of each stage, if possible, then batches, then
/// replicas. Each starts from the best plan of those before.
pub(super) fn auto(problem: &Problem, options: &Options) -> Result<Solution, Error> {
    let since = Instant::now();
    let space = Space::new(problem, options);
    let mut search = Search::new(&space, options, since);
    search.prove(&options.share_since(since, BOUND_SHARE))?;
    search.plan_single_inputs();
    let share = if space.replicas > 1 { SIZES_SHARE } else { 1.0 };
    search.plan_batches(share);
    if space.replicas > 1 {
        search.plan_replicas();
    }
    search.solution()
}

/// Returns every bound by name, weakest first.
pub(super) fn all_bounds(problem: &Problem, options: &Options) -> Result<Vec<Bound>, Error> {
    let space = Space::new(problem, options);
    Plans::on(space.relaxed()?, None, options)?.all_bounds()
}

/// Returns true if some pipeline of batches is found quickly.
pub(super) fn has_plan(problem: &Problem, options: &Options) -> bool {
    let space = Space::new(problem, options);
    let fleets = space.uniform().into_iter().filter_map(|config| space.fleet(&config).ok());
    fleets.into_iter().any(|fleet| fleet.start(options.seed).is_some())
}
