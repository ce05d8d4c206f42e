//! `auto`: the best plan of a portfolio. Baselines first, then proofs and search, until the plan is proven optimal. Never
//! worse than the best baseline. Each part has its own iterations; seconds are shared.

pub(crate) mod contention;
mod latency;

use std::thread;
use std::time::Instant;

use crate::bounds;
use crate::model::error::Error;
use crate::model::instance::Instance;
use crate::model::options::Options;
use crate::model::plan::{Bound, Limit, Objective, Schedule};
use crate::model::problem::{Problem, View};
use crate::solvers::Solution;
use crate::solvers::baseline;
use crate::solvers::exact::Timetable;
use crate::solvers::incumbent::Incumbent;
use crate::solvers::milp;
use crate::solvers::replicated;
use crate::solvers::search;
use crate::solvers::{edge, pipeline};

/// Plans one input: baselines, then [`mod@latency`].
pub(crate) fn latency(problem: &Problem, _: Objective, options: &Options) -> Result<Solution, Error> {
    let started = Instant::now();
    let mut best = Incumbent::new(Bound::none());
    let listed = baseline::best(problem, Objective::Latency).map(|(found, name)| {
        options.observer.of(name).plan(found.value());
        latency::take(&mut best, Timetable::new(&found), name);
    });
    let instance = Instance::new(problem, Objective::Latency)?;
    let none = || Error::NotFound("no algorithm has found a plan".to_owned());
    latency::solve(&instance, options, started, best)?.ok_or_else(|| listed.err().unwrap_or_else(none))
}

/// Plans a queue: the best baseline and, unless that is optimal, a search, with an integer program in parallel for the
/// bound.
pub(crate) fn queue(problem: &Problem, _: Objective, options: &Options) -> Result<Solution, Error> {
    let started = Instant::now();
    let (start, name) = baseline::best(problem, Objective::Batch)?;
    options.observer.of(name).plan(start.value());
    let instance = Instance::new(problem, Objective::Batch)?;
    let mut best = Incumbent::new(bounds::best(&instance));
    best.take(start.value(), start.clone(), name);
    if let Some(repeated) = replicated::beside_others(problem, &instance, options, queue)
        && best.take(repeated.value(), repeated.clone(), "replicated")
    {
        options.observer.of("replicated").plan(repeated.value());
    }
    if !best.is_closed() {
        search_queue(problem, &instance, &options.left_since(started), &mut best);
    }
    options.observer.taken(best.value(), best.by());
    let (schedule, bound) = best.into_parts();
    Ok(Solution { schedule: schedule.unwrap_or(start), bound: Some(bound) })
}

/// Searches from the best plan of a queue, with an integer program in parallel if there is time for one.
fn search_queue(problem: &Problem, instance: &Instance, options: &Options, best: &mut Incumbent<Schedule>) {
    let Some(start) = best.solution().cloned() else { return };
    // The progress of an integer program in a given time is not reproducible.
    let has_room = matches!(options.limit, Some(Limit::Seconds(seconds)) if milp::has_room(instance, seconds));
    let (program, found) = thread::scope(|scope| {
        let program = has_room.then(|| scope.spawn(|| milp::milp(problem, Objective::Batch, &options.named("milp"))));
        let found = search::split_queue_from(instance, start, &options.named("milp-split"));
        let program = program.map(|program| program.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)));
        (program.and_then(|program| options.observer.of("milp").unless_failed(program)), found)
    });
    for (name, found) in [("milp-split", Some(found)), ("milp", program)] {
        let Some(found) = found else { continue };
        best.take(found.schedule.value(), found.schedule, name);
        found.bound.into_iter().for_each(|bound| best.prove(bound));
    }
}

/// Plans a pipeline on the problem's view.
pub(crate) fn pipeline(problem: &Problem, _: Objective, options: &Options) -> Result<Solution, Error> {
    match problem.view() {
        View::Homogeneous(view) => pipeline::auto(problem, view, options),
        View::Network(_) => edge::auto(problem, options),
        View::Devices => pipeline::auto_on_devices(problem, options),
    }
}

/// Returns the best plan that repeats one host's plan of a queue.
pub(crate) fn replicated(problem: &Problem, objective: Objective, options: &Options) -> Result<Solution, Error> {
    replicated::replicated(problem, objective, options, queue)
}

/// Returns all plans that repeat one host's plan.
pub fn replicated_ways(problem: &Problem, options: &Options) -> Result<Vec<replicated::Way>, Error> {
    replicated::every_way(problem, options, queue)
}
