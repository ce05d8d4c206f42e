//! `auto`: the best plan of a portfolio. Baselines first, then proofs, then search; it stops when nothing better is possible.

mod latency;

use std::time::Instant;

use crate::baseline;
use crate::error::Error;
use crate::exact::Timetable;
use crate::instance::Instance;
use crate::plan::{Bound, Limit, Objective};
use crate::problem::Problem;
use crate::search;
use crate::solve::{Options, Solution, Solver};

/// A plan that is this close to its bound is the best there is.
const CLOSED: f64 = 1e-9;

/// What takes effort for queues, each with its share of the seconds that are left when its turn comes.
const QUEUES: &[(Solver, f64)] = &[(search::anneal, 1.0)];

const BASELINES: [(&str, Solver); 4] =
    [("heft", baseline::heft), ("greedy", baseline::greedy), ("met", baseline::met), ("single", baseline::single)];

/// Never worse than the best baseline. Iterations are each part's own, seconds are shared.
pub(crate) fn auto(problem: &Problem, objective: Objective, options: &Options) -> Result<Solution, Error> {
    let started = Instant::now();
    if objective == Objective::Latency {
        return one_input(problem, options, started);
    }
    let mut best: Option<Solution> = None;
    let mut failure = None;
    for (_, solver) in BASELINES {
        failure = failure.or(add(&mut best, solver(problem, objective, options)));
        best.iter().for_each(|best| options.watch.plan(best.schedule.value()));
    }
    for &(solver, share) in QUEUES {
        if best.as_ref().is_some_and(is_closed) {
            break;
        }
        let limit = options.limit.map(|limit| match limit {
            Limit::Seconds(seconds) => Limit::Seconds((seconds - started.elapsed().as_secs_f64()).max(0.0) * share),
            Limit::Iterations(count) => Limit::Iterations(count),
        });
        let found = solver(problem, objective, &Options { limit, watch: options.watch.clone(), ..*options });
        // What has looked at everything and found nothing is believed.
        if let Err(error @ Error::Infeasible(_)) = found {
            return Err(error);
        }
        failure = failure.or(add(&mut best, found));
    }
    let none = || Error::NotFound("no algorithm has found a plan".to_owned());
    best.ok_or_else(|| failure.unwrap_or_else(none))
}

/// One input: baselines, then what is described in [`latency`].
fn one_input(problem: &Problem, options: &Options, started: Instant) -> Result<Solution, Error> {
    let mut best = latency::Best::new();
    let mut failure = None;
    for (name, solver) in BASELINES {
        match solver(problem, Objective::Latency, options) {
            Ok(found) => best.take(Timetable::new(&found.schedule), name),
            Err(error) => failure = failure.or(Some(error)),
        }
    }
    best.schedule.iter().for_each(|schedule| options.watch.plan(schedule.value));
    let instance = Instance::new(problem, Objective::Latency)?;
    let none = || Error::NotFound("no algorithm has found a plan".to_owned());
    latency::solve(&instance, options, started, best)?.ok_or_else(|| failure.unwrap_or_else(none))
}

/// Keeps the better schedule and the better bound; an error is handed back.
fn add(best: &mut Option<Solution>, found: Result<Solution, Error>) -> Option<Error> {
    let found = match found {
        Ok(found) => found,
        Err(error) => return Some(error),
    };
    let Some(known) = best else {
        *best = Some(found);
        return None;
    };
    if found.schedule.value() < known.schedule.value() {
        known.schedule = found.schedule;
    }
    let value = |bound: &Option<Bound>| bound.as_ref().map_or(f64::NEG_INFINITY, |bound| bound.value);
    if value(&found.bound) > value(&known.bound) {
        known.bound = found.bound;
    }
    None
}

fn is_closed(solution: &Solution) -> bool {
    let value = solution.schedule.value();
    solution.bound.as_ref().is_some_and(|bound| bound.value >= value * (1.0 - CLOSED))
}
