//! One input: search and proof side by side. Each knows how good the other's best plan is, and both stop when that is
//! proven to be the best.

use std::thread;
use std::time::{Duration, Instant};

use crate::bounds;
use crate::error::Error;
use crate::exact::{Answer, Limits, Timetable, no_placement};
use crate::instance::Instance;
use crate::milp;
use crate::plan::{Bound, Limit, closes};
use crate::race::Race;
use crate::search;
use crate::solve::{Options, Solution};
use crate::split;

/// The share of a proof's own effort, about a minute of one core, that it has before anything is searched: most problems
/// need no more. Never more than this share of the time.
const PROVE_FIRST: f64 = 0.02;
const PROVE_FIRST_OF_TIME: f64 = 0.1;
/// Share of the first proof's effort that shows whether it makes progress, where little can be gained.
const LEAST_FIRST: f64 = 0.2;
/// The share of the time that search has for itself, so that the proof begins with a good plan, and the most of it.
const SEARCH_FIRST: f64 = 0.1;
const MOST_FIRST: Duration = Duration::from_secs(3);
/// With no limit at all, the share of a proof's own effort: about ten seconds.
const UNLIMITED_SHARE: f64 = 0.15;
/// The share of the time after which a proof that is not done leaves the rest to an integer program.
const EXACT_SHARE: f64 = 0.6;
/// The share of what is left that the program may take: it does not look at the clock all the time.
const PROGRAM_SHARE: f64 = 0.95;
/// The share of trials for what the proof has found.
const SEARCH_AGAIN: f64 = 0.25;
/// With fewer tasks than this, there are fewer places to search in.
const SEARCHED_TASKS: f64 = 50.0;

/// The best so far.
pub(super) struct Best {
    pub(super) schedule: Option<Timetable>,
    /// The part that has found it.
    pub(super) by: &'static str,
    bound: Bound,
}

impl Best {
    pub(super) fn new() -> Self {
        Self { schedule: None, by: "nothing", bound: Bound::none() }
    }

    /// Takes a schedule if it is better.
    pub(super) fn take(&mut self, found: Option<Timetable>, by: &'static str) {
        let Some(found) = found else { return };
        if found.value < self.value() {
            (self.schedule, self.by) = (Some(found), by);
        }
    }

    fn prove(&mut self, bound: Bound) {
        self.bound = std::mem::replace(&mut self.bound, Bound::none()).or(bound);
    }

    fn take_answer(&mut self, answer: Answer) {
        self.take(answer.schedule, "milp-split");
        self.prove(Bound::new(answer.bound, answer.bound_by));
    }

    fn value(&self) -> f64 {
        self.schedule.as_ref().map_or(f64::INFINITY, |schedule| schedule.value)
    }

    fn is_closed(&self) -> bool {
        closes(self.bound.verified_value(), self.value())
    }

    /// The options with an effort that is worth what can still be gained; all of it as long as there is no schedule.
    fn worth(&self, options: &Options) -> Options {
        if self.value().is_finite() { options.for_gap(self.value(), self.bound.value) } else { options.clone() }
    }
}

/// Improves on what baselines have found, and proves how good it is. None where there is nothing, not even a proof that
/// there can be nothing.
pub(super) fn solve(
    instance: &Instance,
    options: &Options,
    started: Instant,
    mut best: Best,
) -> Result<Option<Solution>, Error> {
    best.prove(bounds::best(instance));
    options.watch.bound(best.bound.value, "load-in-windows");
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
    if best.schedule.is_none() && best.bound.verified_value().is_infinite() {
        return Err(Error::Infeasible(vec![no_placement()]));
    }
    let Best { schedule, bound, by } = best;
    schedule.iter().for_each(|schedule| options.watch.taken(schedule.value, by));
    Ok(schedule.map(|schedule| Solution { schedule: schedule.into_schedule(), bound: Some(bound) }))
}

/// The proof with little effort; where little can be gained, with less as long as it makes no progress.
fn prove_first(instance: &Instance, options: &Options, best: &mut Best) {
    let watch = options.watch.of("milp-split");
    for effort in [best.worth(options).effort.max(LEAST_FIRST), 1.0] {
        let allowed = Limits::new(instance, options.limit, watch.clone()).share(PROVE_FIRST_OF_TIME);
        let own = Limits::new(instance, None, watch.clone()).share(PROVE_FIRST * effort);
        let extensions = own.extensions.min(allowed.extensions);
        let limits = Limits { extensions, race: Race::new(best.value()), ..allowed };
        let bound = best.bound.value;
        best.take_answer(split::solve(instance, &limits, best.schedule.as_ref()));
        let makes_progress = best.bound.value > bound;
        if effort == 1.0 || !makes_progress || best.is_closed() {
            break;
        }
    }
}

/// The same each time: search, then proof, then search from what the proof has found.
fn in_turn(instance: &Instance, options: &Options, best: &mut Best) {
    let race = Race::new(best.value());
    search_from(instance, &best.worth(options), search_share(instance, options), &race, best);
    let limits = Limits { race: race.clone(), ..Limits::new(instance, options.limit, options.watch.of("milp-split")) };
    let share = UNLIMITED_SHARE * best.worth(options).effort;
    let limits = if options.limit.is_none() { limits.share(share) } else { limits };
    let searched = best.value();
    best.take_answer(split::solve(instance, &limits, best.schedule.as_ref()));
    if best.value() < searched && !best.is_closed() {
        let share = SEARCH_AGAIN * search_share(instance, options);
        search_from(instance, &best.worth(options), share, &race, best);
    }
}

/// The share of the default trials that so many tasks can make use of.
fn search_share(instance: &Instance, options: &Options) -> f64 {
    if options.limit.is_some() { 1.0 } else { (instance.tasks() as f64 / SEARCHED_TASKS).min(1.0) }
}

/// Large neighbourhoods from the best schedule, with a share of the trials.
fn search_from(instance: &Instance, options: &Options, share: f64, race: &Race, best: &mut Best) {
    let allowance = search::Allowance::of_neighbourhoods(options).share(share).in_race(race);
    let found = best.schedule.as_ref().and_then(|start| search::neighbourhoods_from(instance, start, &allowance));
    best.take(found, "lns");
}

/// Until the time is over: search on all cores, first alone, then with a proof beside it: by partial schedules, then by an
/// integer program.
fn side_by_side(instance: &Instance, options: &Options, started: Instant, seconds: f64, best: &mut Best) {
    let left = || (seconds - started.elapsed().as_secs_f64()).max(0.0);
    let race = Race::new(best.value());
    let cores = thread::available_parallelism().map_or(1, usize::from);
    let searching = |seconds: f64| search::Allowance::timed(options, seconds).in_race(&race);
    if let Some(start) = &best.schedule {
        let first = searching((seconds * SEARCH_FIRST).min(MOST_FIRST.as_secs_f64()).min(left()));
        best.take(search::neighbourhoods_from(instance, start, &first), "lns");
    }
    if left() == 0.0 {
        return;
    }
    let limit = Some(Limit::Seconds(left()));
    let limits = Limits::new(instance, limit, options.watch.of("milp-split"));
    let limits = Limits { race: race.clone(), threads: cores.div_ceil(2), ..limits };
    let known = best.schedule.clone();
    let (answer, found) = thread::scope(|scope| {
        let proof = scope.spawn(|| {
            let has_room = milp::has_room(instance, left() * (1.0 - EXACT_SHARE));
            let limits = if has_room { limits.share(EXACT_SHARE) } else { limits };
            let answer = split::solve(instance, &limits, known.as_ref());
            let proven = |value: f64, bound: f64| {
                race.report(value);
                if closes(bound, race.best()) {
                    race.end();
                }
            };
            let plan = answer.schedule.as_ref().or(known.as_ref());
            proven(plan.map_or(f64::INFINITY, |plan| plan.value), answer.bound);
            let program = plan.filter(|_| has_room && !race.is_over()).and_then(|plan| {
                let start = plan.clone().into_schedule();
                milp::within(instance, &options.named("milp"), left() * PROGRAM_SHARE, &start)
            });
            program.iter().for_each(|program| proven(program.schedule.value(), program.verified_value()));
            (answer, program)
        });
        let found = known.as_ref().and_then(|start| search::neighbourhoods_from(instance, start, &searching(left())));
        (proof.join(), found)
    });
    best.take(found, "lns");
    match answer {
        Ok((answer, program)) => {
            best.take_answer(answer);
            if let Some(Solution { schedule, bound }) = program {
                best.take(Timetable::new(&schedule), "milp");
                bound.into_iter().for_each(|bound| best.prove(bound));
            }
        }
        Err(panic) => std::panic::resume_unwind(panic),
    }
}
