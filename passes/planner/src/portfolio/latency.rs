//! One input: search and proof in parallel. They share the value of the incumbent, and both stop when it is proven
//! optimal.

use std::thread;
use std::time::{Duration, Instant};

use crate::bounds;
use crate::model::error::Error;
use crate::model::instance::Instance;
use crate::model::options::Options;
use crate::model::plan::{Bound, Limit, closes};
use crate::model::units::Micros;
use crate::solvers::Solution;
use crate::solvers::exact::{Answer, Limits, Timetable, no_placement};
use crate::solvers::incumbent::{Incumbent, SharedIncumbent};
use crate::solvers::milp;
use crate::solvers::search;
use crate::solvers::split;

/// Share of a proof's default effort (about a minute of one core) that it has before the search: sufficient for most
/// problems. At most the second share of the time.
const PROVE_FIRST: f64 = 0.02;
const PROVE_FIRST_OF_TIME: f64 = 0.1;
/// Share of the first proof's effort that shows whether it makes progress, if the gap is small.
const LEAST_FIRST: f64 = 0.2;
/// Share of the time that the search has alone, so that the proof starts with a good incumbent, and its maximum.
const SEARCH_FIRST: f64 = 0.1;
const MOST_FIRST: Duration = Duration::from_secs(3);
/// Share of a proof's default effort if there is no limit: about ten seconds.
const UNLIMITED_SHARE: f64 = 0.15;
/// Share of the time after which an unfinished proof leaves the rest to an integer program.
const EXACT_SHARE: f64 = 0.6;
/// Share of the remaining time for the integer program: it does not check the clock all the time.
const PROGRAM_SHARE: f64 = 0.95;
/// Share of the trials of a search from the proof's solution.
const SEARCH_AGAIN: f64 = 0.25;
/// Number of tasks from which on the search has all of its default trials.
const SEARCHED_TASKS: f64 = 50.0;

/// Updates the incumbent if there is a better schedule.
pub(super) fn take(best: &mut Incumbent<Timetable>, found: Option<Timetable>, by: &'static str) {
    if let Some(found) = found {
        best.take(found.value, found, by);
    }
}

fn take_answer(best: &mut Incumbent<Timetable>, answer: Answer) {
    take(best, answer.schedule, "milp-split");
    best.prove(Bound::new(answer.bound, answer.bound_by));
}

/// Returns the options with an effort in proportion to the gap; all of it without a schedule.
fn worth(best: &Incumbent<Timetable>, options: &Options) -> Options {
    if best.value().is_finite() { options.for_gap(best.value(), best.bound().value) } else { options.clone() }
}

/// Improves on the baselines and proves a bound. Returns `None` if there is neither a schedule nor a proof of
/// infeasibility.
pub(super) fn solve(
    instance: &Instance,
    options: &Options,
    started: Instant,
    mut best: Incumbent<Timetable>,
) -> Result<Option<Solution>, Error> {
    best.prove(bounds::best(instance));
    options.observer.bound(best.bound().value, "load-in-windows");
    if !best.is_closed() {
        prove_first(instance, options, &mut best);
    }
    if !best.is_closed() {
        match options.limit {
            Some(Limit::Seconds(seconds)) => side_by_side(instance, options, started, seconds, &mut best),
            _ => in_turn(instance, options, &mut best),
        }
    }
    // Beside a schedule, an infinite bound is a contradiction: the bound is dropped, not the schedule.
    if best.solution().is_none() && best.bound().verified_value().is_infinite() {
        return Err(Error::Infeasible(vec![no_placement()]));
    }
    best.solution().iter().for_each(|schedule| options.observer.taken(schedule.value, best.by()));
    let (schedule, bound) = best.into_parts();
    Ok(schedule.map(|schedule| Solution { schedule: schedule.into_schedule(), bound: Some(bound) }))
}

/// Runs the proof with little effort; if the gap is small, first with less, and in full only if that makes progress.
fn prove_first(instance: &Instance, options: &Options, best: &mut Incumbent<Timetable>) {
    let observer = options.observer.of("milp-split");
    for effort in [worth(best, options).effort.max(LEAST_FIRST), 1.0] {
        let allowed = Limits::new(instance, options.limit, observer.clone()).share(PROVE_FIRST_OF_TIME);
        let own = Limits::new(instance, None, observer.clone()).share(PROVE_FIRST * effort);
        let extensions = own.extensions.min(allowed.extensions);
        let limits = Limits { extensions, incumbent: SharedIncumbent::new(best.value()), ..allowed };
        let bound = best.bound().value;
        take_answer(best, split::solve(instance, &limits, best.solution()));
        let makes_progress = best.bound().value > bound;
        if effort == 1.0 || !makes_progress || best.is_closed() {
            break;
        }
    }
}

/// Reproducible: search, then proof, then search from the proof's solution.
fn in_turn(instance: &Instance, options: &Options, best: &mut Incumbent<Timetable>) {
    let incumbent = SharedIncumbent::new(best.value());
    search_from(instance, &worth(best, options), search_share(instance, options), &incumbent, best);
    let limits = Limits {
        incumbent: incumbent.clone(),
        ..Limits::new(instance, options.limit, options.observer.of("milp-split"))
    };
    let share = UNLIMITED_SHARE * worth(best, options).effort;
    let limits = if options.limit.is_none() { limits.share(share) } else { limits };
    let searched = best.value();
    take_answer(best, split::solve(instance, &limits, best.solution()));
    if best.value() < searched && !best.is_closed() {
        let share = SEARCH_AGAIN * search_share(instance, options);
        search_from(instance, &worth(best, options), share, &incumbent, best);
    }
}

/// Returns the share of the default trials for the number of tasks.
fn search_share(instance: &Instance, options: &Options) -> f64 {
    if options.limit.is_some() { 1.0 } else { (instance.tasks() as f64 / SEARCHED_TASKS).min(1.0) }
}

/// Runs the large neighborhood search from the incumbent, with a share of the trials.
fn search_from(
    instance: &Instance,
    options: &Options,
    share: f64,
    incumbent: &SharedIncumbent,
    best: &mut Incumbent<Timetable>,
) {
    let allowance = search::neighbourhoods_allowance(options).share(share).sharing(incumbent);
    let found = best.solution().and_then(|start| search::neighbourhoods_from(instance, start, &allowance));
    take(best, found, "lns");
}

/// Until the time limit: search on all cores, first alone, then with a proof in parallel: by partial schedules, then by
/// an integer program.
fn side_by_side(
    instance: &Instance,
    options: &Options,
    started: Instant,
    seconds: f64,
    best: &mut Incumbent<Timetable>,
) {
    let left = || (seconds - started.elapsed().as_secs_f64()).max(0.0);
    let incumbent = SharedIncumbent::new(best.value());
    let cores = thread::available_parallelism().map_or(1, usize::from);
    let searching = |seconds: f64| search::neighbourhoods_allowance(options).timed(seconds).sharing(&incumbent);
    if let Some(start) = best.solution() {
        let first = searching((seconds * SEARCH_FIRST).min(MOST_FIRST.as_secs_f64()).min(left()));
        take(best, search::neighbourhoods_from(instance, start, &first), "lns");
    }
    if left() == 0.0 {
        return;
    }
    let limit = Some(Limit::Seconds(left()));
    let limits = Limits::new(instance, limit, options.observer.of("milp-split"));
    let limits = Limits { incumbent: incumbent.clone(), threads: cores.div_ceil(2), ..limits };
    let known = best.solution().cloned();
    let (answer, found) = thread::scope(|scope| {
        let proof = scope.spawn(|| {
            let has_room = milp::has_room(instance, left() * (1.0 - EXACT_SHARE));
            let limits = if has_room { limits.share(EXACT_SHARE) } else { limits };
            let answer = split::solve(instance, &limits, known.as_ref());
            let proven = |value: Micros, bound: Micros| {
                incumbent.report(value);
                if closes(bound, incumbent.value()) {
                    incumbent.end();
                }
            };
            let plan = answer.schedule.as_ref().or(known.as_ref());
            proven(plan.map_or(Micros::INFINITY, |plan| plan.value), answer.bound);
            let program = plan.filter(|_| has_room && !incumbent.is_over()).and_then(|plan| {
                let start = plan.clone().into_schedule();
                milp::within(instance, &options.named("milp"), left() * PROGRAM_SHARE, &start)
            });
            program.iter().for_each(|program| proven(program.schedule.value(), program.verified_value()));
            (answer, program)
        });
        let found = known.as_ref().and_then(|start| search::neighbourhoods_from(instance, start, &searching(left())));
        (proof.join(), found)
    });
    take(best, found, "lns");
    match answer {
        Ok((answer, program)) => {
            take_answer(best, answer);
            if let Some(Solution { schedule, bound }) = program {
                take(best, Timetable::new(&schedule), "milp");
                bound.into_iter().for_each(|bound| best.prove(bound));
            }
        }
        Err(panic) => std::panic::resume_unwind(panic),
    }
}
