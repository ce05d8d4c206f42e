//! `auto`: the best plan of a portfolio. Baselines first, then proofs and search, until the plan is proven optimal. Never
//! worse than the best baseline. Each part has its own iterations; seconds are shared.

pub(crate) mod contention;
mod latency;

use std::thread;
use std::time::Instant;

use crate::bounds;
use crate::model::error::Error;
use crate::model::instance::Instance;
use crate::model::observer::Observer;
use crate::model::options::Options;
use crate::model::plan::{Batch, Bound, LaunchRule, Limit, Objective, Schedule};
use crate::model::problem::{Problem, View};
use crate::model::units::Micros;
use crate::solvers::Solution;
use crate::solvers::baseline;
use crate::solvers::exact::Timetable;
use crate::solvers::incumbent::Incumbent;
use crate::solvers::microbatch::{self, Flow};
use crate::solvers::milp;
use crate::solvers::replicated;
use crate::solvers::search;
use crate::solvers::timing::launches;
use crate::solvers::{edge, pipeline};

/// Share of the time for plans with one launch of each task on a device, from which others start.
const ONE_LAUNCH_SHARE: f64 = 0.25;
/// Maximum product of tasks, devices and inputs for them if there is a limit.
const MOST_CELLS: usize = 300_000;

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

/// Plans a queue under the rule for launches.
pub(crate) fn queue(problem: &Problem, _: Objective, options: &Options) -> Result<Solution, Error> {
    let best = match options.launches {
        LaunchRule::One => queue_of_one_launch(problem, options)?,
        LaunchRule::Many => queue_of_many_launches(problem, options)?,
    };
    options.observer.taken(best.value(), best.by());
    let (schedule, bound) = best.into_parts();
    let none = || Error::NotFound("no algorithm has found a plan".to_owned());
    Ok(Solution { schedule: schedule.ok_or_else(none)?, bound: Some(bound) })
}

/// Plans a queue with any number of launches: from a plan with one launch of each task on a device, and from patterns of
/// micro-batches.
fn queue_of_many_launches(problem: &Problem, options: &Options) -> Result<Incumbent<Schedule>, Error> {
    let started = Instant::now();
    let instance = Instance::under(problem, Objective::Batch, LaunchRule::Many)?;
    let mut best = Incumbent::new(bounds::best(&instance));
    let first = Options {
        launches: LaunchRule::One,
        observer: options.observer.of_plans(),
        ..options.share_since(started, ONE_LAUNCH_SHARE)
    };
    let one_launch =
        |best: &mut Incumbent<Schedule>| queue_of_one_launch(problem, &first).map(|one| best.take_over(one)).err();
    // List schedulers of one launch do not follow a time limit.
    let cells = instance.tasks() * instance.devices() * instance.inputs() as usize;
    let is_quick = cells <= MOST_CELLS || options.limit.is_none();
    let mut failure = if is_quick { one_launch(&mut best) } else { None };
    if best.is_closed() {
        return Ok(best);
    }
    match many_launches(problem, &instance, options, started, &mut best) {
        Err(error) if best.solution().is_none() => {
            failure = if is_quick { failure } else { one_launch(&mut best) }.or(Some(error));
        }
        _ => {}
    }
    match failure.filter(|_| best.solution().is_none()) {
        Some(failure) => Err(failure),
        None => Ok(best),
    }
}

/// Plans micro-batches on all devices, and on equal sets of devices that share the inputs: both by patterns alone, then
/// the better one by a search.
fn many_launches(
    problem: &Problem,
    instance: &Instance,
    options: &Options,
    started: Instant,
    best: &mut Incumbent<Schedule>,
) -> Result<(), Error> {
    let others: Vec<Vec<Batch>> = best.solution().map(launches).into_iter().collect();
    let quick = Options { limit: Some(Limit::Iterations(1)), observer: Observer::default(), ..options.clone() };
    let whole = in_microbatches(problem, &others, &quick);
    let value = whole.as_ref().map_or(Micros::INFINITY, Schedule::value);
    if let Ok(whole) = whole {
        best.take(value, whole, "microbatch");
    }
    let divided = replicated::best_copies(problem, instance, &|part| in_microbatches(part, &[], &quick));
    if let Some((copies, divided)) = divided.filter(|(_, divided)| divided.value() < value) {
        best.take(divided.value(), divided, "replicated");
        // Values of parts are not reported.
        let options = Options { observer: Observer::default(), ..options.left_since(started) };
        let solve = |part: &Problem| in_microbatches(part, &[], &options);
        let found = replicated::with_copies(problem, instance, copies, &solve)?;
        best.take(found.value(), found, "replicated");
    } else {
        let found = in_microbatches(problem, &others, &options.named("microbatch").left_since(started))?;
        best.take(found.value(), found, "microbatch");
    }
    Ok(())
}

/// Plans a queue in micro-batches on all devices.
fn in_microbatches(problem: &Problem, others: &[Vec<Batch>], options: &Options) -> Result<Schedule, Error> {
    let instance = Instance::under(problem, Objective::Batch, LaunchRule::Many)?;
    let found = microbatch::solve(&instance, others, bounds::quick(&instance), options);
    let none = || Error::NotFound("no pattern of micro-batches fits memory and links".to_owned());
    let Flow { value, launches } = found.ok_or_else(none)?;
    Ok(Schedule::Batch { batches: launches, makespan: value })
}

/// Plans a queue with at most one launch of each task on a device: the best baseline and, unless that is optimal, a
/// search, with an integer program in parallel for the bound.
fn queue_of_one_launch(problem: &Problem, options: &Options) -> Result<Incumbent<Schedule>, Error> {
    let started = Instant::now();
    let (start, name) = baseline::best(problem, Objective::Batch)?;
    options.observer.of(name).plan(start.value());
    let instance = Instance::new(problem, Objective::Batch)?;
    let mut best = Incumbent::new(bounds::best(&instance));
    best.take(start.value(), start, name);
    if let Some(repeated) = replicated::beside_others(problem, &instance, options, queue)
        && best.take(repeated.value(), repeated.clone(), "replicated")
    {
        options.observer.of("replicated").plan(repeated.value());
    }
    if !best.is_closed() {
        search_queue(problem, &instance, &options.left_since(started), &mut best);
    }
    Ok(best)
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
