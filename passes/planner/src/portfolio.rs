//! `auto`: the best plan of a portfolio. Baselines first, then proofs and search; it stops when nothing better is possible.

mod latency;

use std::thread;
use std::time::Instant;

use crate::baseline;
use crate::bounds;
use crate::error::Error;
use crate::exact::Timetable;
use crate::instance::Instance;
use crate::milp;
use crate::pipeline;
use crate::plan::{Bound, Limit, Objective, closes};
use crate::problem::Problem;
use crate::replicated;
use crate::search;
use crate::solve::{Options, Solution};

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
        options.watch.of(name).plan(found.value());
        best.take(Timetable::new(&found), name);
    });
    let instance = Instance::new(problem, Objective::Latency)?;
    let none = || Error::NotFound("no algorithm has found a plan".to_owned());
    latency::solve(&instance, options, started, best)?.ok_or_else(|| listed.err().unwrap_or_else(none))
}

/// A queue: the best baseline, and unless that cannot be better, a search, and an integer program that proves beside it.
fn queue(problem: &Problem, options: &Options) -> Result<Solution, Error> {
    let started = Instant::now();
    let (mut start, mut name) = baseline::best(problem, Objective::Batch)?;
    options.watch.of(name).plan(start.value());
    let instance = Instance::new(problem, Objective::Batch)?;
    let repeated = replicated::beside_others(problem, &instance, options);
    if let Some(repeated) = repeated.filter(|found| found.value() < start.value()) {
        (start, name) = (repeated, "replicated");
        options.watch.of(name).plan(start.value());
    }
    let bound = bounds::best(&instance);
    if closes(bound.value, start.value()) {
        options.watch.taken(start.value(), name);
        return Ok(Solution { schedule: start, bound: Some(bound) });
    }
    let left = |seconds: f64| (seconds - started.elapsed().as_secs_f64()).max(0.0);
    // What an integer program gets done in a time is not the same every time.
    let (limit, has_room) = match options.limit {
        Some(Limit::Seconds(seconds)) => {
            (Some(Limit::Seconds(left(seconds))), milp::has_room(&instance, left(seconds)))
        }
        limit => (limit, false),
    };
    let options = Options { limit, watch: options.watch.clone(), ..*options };
    let (program, found) = thread::scope(|scope| {
        let program = has_room.then(|| scope.spawn(|| milp::milp(problem, Objective::Batch, &options.named("milp"))));
        let found = search::split_queue_from(&instance, start.clone(), &options.named("milp-split"));
        let program = program.map(|program| program.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)));
        (program.and_then(Result::ok), found)
    });
    let mut best = Solution { schedule: start, bound: Some(bound) };
    let mut taken = name;
    for (name, found) in [("milp-split", Some(found)), ("milp", program)] {
        let Some(found) = found else { continue };
        if found.schedule.value() < best.schedule.value() {
            best.schedule = found.schedule.clone();
            taken = name;
        }
        best.bound = best.bound.into_iter().chain(found.bound).reduce(Bound::or);
    }
    options.watch.taken(best.schedule.value(), taken);
    Ok(best)
}
