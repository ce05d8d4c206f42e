//! `auto`: the best plan of a portfolio. Baselines first, then proofs and search; it stops when nothing better is possible.

mod latency;

use std::time::Instant;

use crate::baseline;
use crate::bounds;
use crate::error::Error;
use crate::exact::Timetable;
use crate::instance::Instance;
use crate::pipeline;
use crate::plan::{Limit, Objective};
use crate::problem::Problem;
use crate::search;
use crate::solve::{Options, Solution};

/// A plan that is this close to its bound is the best there is.
const CLOSED: f64 = 1e-9;

/// Never worse than the best baseline. Iterations are each part's own, seconds are shared.
pub(crate) fn auto(problem: &Problem, objective: Objective, options: &Options) -> Result<Solution, Error> {
    match objective {
        Objective::Latency => one_input(problem, options),
        Objective::Batch => queue(problem, options),
        Objective::Pipeline => pipeline::auto(problem, options),
    }
}

/// One input: baselines, then what is described in [`latency`].
fn one_input(problem: &Problem, options: &Options) -> Result<Solution, Error> {
    let started = Instant::now();
    let mut best = latency::Best::new();
    let listed = baseline::best(problem, Objective::Latency).map(|(found, name)| {
        options.watch.plan(found.value());
        best.take(Timetable::new(&found), name);
    });
    let instance = Instance::new(problem, Objective::Latency)?;
    let none = || Error::NotFound("no algorithm has found a plan".to_owned());
    latency::solve(&instance, options, started, best)?.ok_or_else(|| listed.err().unwrap_or_else(none))
}

/// A queue: the best baseline, and unless that cannot be better, a search.
fn queue(problem: &Problem, options: &Options) -> Result<Solution, Error> {
    let started = Instant::now();
    let (start, name) = baseline::best(problem, Objective::Batch)?;
    options.watch.plan(start.value());
    let bound = bounds::best(&Instance::new(problem, Objective::Batch)?);
    if bound.value >= start.value() * (1.0 - CLOSED) {
        options.watch.taken(name);
        return Ok(Solution { schedule: start, bound: Some(bound) });
    }
    let limit = options.limit.map(|limit| match limit {
        Limit::Seconds(seconds) => Limit::Seconds((seconds - started.elapsed().as_secs_f64()).max(0.0)),
        Limit::Iterations(count) => Limit::Iterations(count),
    });
    let options = Options { limit, watch: options.watch.clone(), ..*options };
    let found = search::split_queue(problem, &options)?;
    let improved = found.schedule.value() < start.value();
    options.watch.taken(if improved { "milp-split" } else { name });
    Ok(Solution { schedule: if improved { found.schedule } else { start }, bound: Some(bound) })
}
