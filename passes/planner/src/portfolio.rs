//! `auto`: the best plan of a portfolio. Baselines first, then proofs and search, until the plan is proven optimal. Never
//! worse than the best baseline. Each part has its own iterations; seconds are shared.

pub(crate) mod contention;
mod latency;

use std::thread;
use std::time::Instant;

use crate::bounds;
use crate::mip;
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
use crate::solvers::expected;
use crate::solvers::incumbent::Incumbent;
use crate::solvers::microbatch::{self, Flow, Known};
use crate::solvers::milp;
use crate::solvers::replicated;
use crate::solvers::search;
use crate::solvers::timing::launches;
use crate::solvers::{edge, pipeline};

/// Share of the time for list schedules with one launch of each task on a device.
const LISTED_SHARE: f64 = 0.1;
/// Ratio of values below which patterns are far better than list schedules; share of the remaining time for a search with
/// one launch then, and otherwise.
const FAR_BETTER: f64 = 0.65;
const ONE_LAUNCH_SHARE: (f64, f64) = (0.1, 0.85);
/// Share of the remaining time for a proof, and its horizon relative to the bound if there is no plan.
const PROOF_SHARE: f64 = 0.9;
const FARTHEST: f64 = 2.0;
/// Ratio of values up to which both the whole queue and copies are searched, and the share of the time of the first search.
const NEAR: f64 = 1.1;
const FIRST_SHARE: f64 = 0.6;
/// Share of the time for each comparison of initial patterns, and number of trials without a time limit.
const QUICK_SHARE: f64 = 0.04;
const QUICK_TRIALS: u64 = 100;

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
        LaunchRule::One => queue_of_one_launch(problem, options, false)?,
        LaunchRule::Many => queue_of_many_launches(problem, options)?,
    };
    options.observer.taken(best.value(), best.by());
    let (schedule, bound) = best.into_parts();
    let none = || Error::NotFound("no algorithm has found a plan".to_owned());
    Ok(Solution { schedule: schedule.ok_or_else(none)?, bound: Some(bound) })
}

/// Plans a queue with any number of launches: from list schedules with one launch of each task on a device, and from
/// patterns of micro-batches.
fn queue_of_many_launches(problem: &Problem, options: &Options) -> Result<Incumbent<Schedule>, Error> {
    let started = Instant::now();
    let instance = Instance::under(problem, Objective::Batch, LaunchRule::Many)?;
    let mut best = Incumbent::new(bounds::best(&instance));
    let limit = options.share_since(started, LISTED_SHARE).limit;
    let (listed, failure) = match baseline::best_within(problem, Objective::Batch, limit) {
        Ok((listed, name)) => {
            options.observer.of(name).plan(listed.value());
            best.take(listed.value(), listed, name);
            (best.value(), None)
        }
        Err(error) => (Micros::INFINITY, Some(error)),
    };
    if best.is_closed() {
        return Ok(best);
    }
    let known = best.bound().verified_value();
    let left = match options.left_since(started).limit {
        Some(Limit::Seconds(seconds)) if bounds::has_integer(&instance, known) => Some(seconds * PROOF_SHARE),
        // The progress of a search tree in a given time is not reproducible.
        _ => None,
    };
    let horizon = Micros::min(best.value(), known * FARTHEST);
    let (proven, found) = thread::scope(|scope| {
        let prove = |seconds: f64| {
            let limits = mip::Limits { seed: options.seed, iterations: u64::MAX, seconds: Some(seconds) };
            bounds::integer(&instance, known, horizon, &limits)
        };
        let proof = left.map(|seconds| scope.spawn(move || prove(seconds)));
        let found = many_launches(problem, &instance, options, started, listed, &mut best);
        let proven = proof.map(|proof| proof.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)));
        (proven, found)
    });
    let proven = proven.and_then(|proven| options.observer.of("milp").unless_failed(proven));
    proven.into_iter().for_each(|bound| best.prove(bound));
    match failure.or(found.err()).filter(|_| best.solution().is_none()) {
        Some(failure) => Err(failure),
        None => Ok(best),
    }
}

/// Plans micro-batches on all devices, and on equal sets of devices that share the inputs, both by patterns alone. Then
/// searches for a plan with one launch of each task on a device, unless it would be far worse, and for one with more launches
/// from the best of these. `listed` is the value of the best list schedule.
fn many_launches(
    problem: &Problem,
    instance: &Instance,
    options: &Options,
    started: Instant,
    listed: Micros,
    best: &mut Incumbent<Schedule>,
) -> Result<(), Error> {
    let plans: Vec<Vec<Batch>> = best.solution().map(launches).into_iter().collect();
    let quick = Options { observer: Observer::default(), ..quick(options, started) };
    let placements: Vec<Vec<usize>> = stages(problem, instance, &quick).into_iter().collect();
    let known = Known { plans: &plans, placements: &placements };
    let whole = in_microbatches(problem, known, &quick, microbatch::start);
    let value = whole.as_ref().map_or(Micros::INFINITY, Schedule::value);
    if let Ok(whole) = whole {
        take(instance, options, best, whole, "microbatch");
    }
    let none = Known::default();
    let solve = |part: &Problem| in_microbatches(part, none, &quick, microbatch::start);
    let divided = replicated::best_copies(problem, instance, &solve);
    let copies = divided.map(|(copies, divided)| {
        let value = divided.value();
        take(instance, options, best, divided, "replicated");
        (copies, value)
    });
    let share = if best.value() < listed * FAR_BETTER { ONE_LAUNCH_SHARE.0 } else { ONE_LAUNCH_SHARE.1 };
    let first = Options {
        launches: LaunchRule::One,
        observer: options.observer.of_plans(),
        ..options.share_since(started, share)
    };
    // There may be no plan with one launch.
    if let Ok(one) = queue_of_one_launch(problem, &first, true) {
        let by = one.by();
        one.into_parts().0.into_iter().for_each(|one| take(instance, options, best, one, by));
    }
    let plans: Vec<Vec<Batch>> = best.solution().map(launches).into_iter().collect();
    let known = Known { plans: &plans, placements: &placements };
    // Both are searched if their first plans are about equal; the better one first.
    let is_near = |value: Micros, other: Micros| value <= other * NEAR;
    let of_copies = copies.map_or(Micros::INFINITY, |(_, value)| value);
    let (has_whole, has_copies) = (is_near(value, of_copies), is_near(of_copies, value) && copies.is_some());
    let share = if has_whole && has_copies { FIRST_SHARE } else { 1.0 };
    let mut searches = [("microbatch", has_whole), ("replicated", has_copies)];
    if of_copies < value {
        searches.reverse();
    }
    let mut failure = None;
    for (place, (name, _)) in searches.into_iter().filter(|(_, is_searched)| *is_searched).enumerate() {
        let limited = options.share_since(started, if place == 0 { share } else { 1.0 });
        let found = match copies.filter(|_| name == "replicated") {
            Some((copies, _)) => {
                // Values of parts are not reported.
                let limited = Options { observer: Observer::default(), ..limited };
                let solve = |part: &Problem| in_microbatches(part, none, &limited, microbatch::solve);
                replicated::with_copies(problem, instance, copies, &solve)
            }
            None => in_microbatches(problem, known, &limited.named(name), microbatch::solve),
        };
        match found {
            Ok(found) => take(instance, options, best, found, name),
            Err(error) => failure = failure.or(Some(error)),
        }
    }
    failure.map_or(Ok(()), Err)
}

/// Updates the incumbent if a schedule has a smaller cost.
fn take(instance: &Instance, options: &Options, best: &mut Incumbent<Schedule>, found: Schedule, by: &'static str) {
    let cost = |schedule: &Schedule| expected::cost(instance, options, schedule.value(), &launches(schedule));
    if best.solution().is_none_or(|current| expected::is_better(options, cost(&found), cost(current))) {
        best.replace(found.value(), found, by);
    }
}

/// Returns the options of a comparison of initial patterns.
fn quick(options: &Options, started: Instant) -> Options {
    let limit = match options.limit {
        Some(Limit::Seconds(_)) => options.share_since(started, QUICK_SHARE).limit,
        Some(Limit::Iterations(iterations)) => Some(Limit::Iterations(iterations.min(QUICK_TRIALS))),
        None => Some(Limit::Iterations(QUICK_TRIALS)),
    };
    Options { limit, ..options.clone() }
}

/// Returns the device of each task in a pipeline for the best rates of all batch sizes; `None` if there is none.
fn stages(problem: &Problem, instance: &Instance, options: &Options) -> Option<Vec<usize>> {
    let mut rated = Problem { mtpp: None, edge: None, inputs: 1, ..problem.relaxed() };
    for device in &mut rated.devices {
        device.batch_sizes = vec![1];
    }
    for (task, node) in rated.nodes.iter_mut().enumerate() {
        let rate = |device: usize| {
            let of = |size: &u32| Some(instance.time_at(task, device, *size)? / f64::from(*size));
            let rates = instance.batch_sizes(device).iter().filter_map(of);
            rates.reduce(Micros::min)
        };
        node.time = [(1, (0..instance.devices()).map(rate).collect())].into();
    }
    let options = Options { inputs: None, contention: None, pipeline_cost: None, ..options.clone() };
    let found = pipeline::anneal(&rated, Objective::Pipeline, &options).ok()?;
    let Schedule::Pipeline { block, stages: Some(stages), .. } = found.schedule else { return None };
    let device = stages.block_device?;
    block.iter().map(|block| device.get(*block).copied()).collect()
}

/// Plans a queue in micro-batches on all devices.
fn in_microbatches(
    problem: &Problem,
    known: Known<'_>,
    options: &Options,
    solve: fn(&Instance, Known<'_>, Micros, &Options) -> Option<Flow>,
) -> Result<Schedule, Error> {
    let instance = Instance::under(problem, Objective::Batch, LaunchRule::Many)?;
    let found = solve(&instance, known, bounds::quick(&instance), options);
    let none = || Error::NotFound("no pattern of micro-batches fits memory and links".to_owned());
    let Flow { value, launches } = found.ok_or_else(none)?;
    Ok(Schedule::Batch { batches: launches, makespan: value })
}

/// Plans a queue with at most one launch of each task on a device: the best baseline and, unless that is optimal, a
/// search, with an integer program in parallel for the bound. Baselines may be stopped by a time limit.
fn queue_of_one_launch(problem: &Problem, options: &Options, may_stop: bool) -> Result<Incumbent<Schedule>, Error> {
    let started = Instant::now();
    let limit = options.limit.filter(|_| may_stop);
    let (start, name) = baseline::best_within(problem, Objective::Batch, limit)?;
    options.observer.of(name).plan(start.value());
    let instance = Instance::new(problem, Objective::Batch)?;
    let mut best = Incumbent::new(bounds::best(&instance));
    best.take(start.value(), start, name);
    if let Some(repeated) = replicated::beside_others(problem, &instance, &options.left_since(started), may_stop, queue)
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
    if options.launches == LaunchRule::One {
        return replicated::replicated(problem, objective, options, queue);
    }
    let started = Instant::now();
    let instance = Instance::under(problem, objective, LaunchRule::Many)?;
    let quick = Options { observer: Observer::default(), ..quick(options, started) };
    let start = |part: &Problem| in_microbatches(part, Known::default(), &quick, microbatch::start);
    let copies = replicated::best_copies(problem, &instance, &start).map_or(1, |(copies, _)| copies);
    let options = Options { observer: Observer::default(), ..options.left_since(started) };
    let solve = |part: &Problem| in_microbatches(part, Known::default(), &options, microbatch::solve);
    let schedule = replicated::with_copies(problem, &instance, copies, &solve)?;
    Ok(Solution { schedule, bound: None })
}

/// Plans a queue with a price on memory. With any number of launches, inputs pass in micro-batches through the devices that
/// hold each task's weights.
pub(crate) fn priced(problem: &Problem, objective: Objective, options: &Options) -> Result<Solution, Error> {
    if options.launches == LaunchRule::One {
        return baseline::priced(problem, objective, options);
    }
    let instance = Instance::under(problem, objective, LaunchRule::Many)?;
    // A queue that is too long for one launch on each device, or whose weights fit once only, has the weights of a shorter one.
    let largest: Vec<u32> =
        (0..instance.devices()).filter_map(|device| instance.batch_sizes(device).last().copied()).collect();
    let shorter = [largest.iter().sum(), largest.iter().copied().max().unwrap_or(1)];
    let found = shorter.map(|inputs| {
        let shorter = Problem { inputs: u32::min(inputs, problem.inputs), ..problem.clone() };
        baseline::priced(&shorter, objective, options)
    });
    let [longer, shorter] = found;
    let one = longer.or(shorter)?.schedule;
    let plans = [launches(&one)];
    let known = Known { plans: &plans, ..Known::default() };
    let schedule = in_microbatches(problem, known, options, microbatch::through)?;
    Ok(Solution { schedule, bound: None })
}

/// Returns all plans that repeat one host's plan.
pub fn replicated_ways(problem: &Problem, options: &Options) -> Result<Vec<replicated::Way>, Error> {
    replicated::every_way(problem, options, queue)
}
