//! Proofs for pipelines: prices of tasks where there are many stages, the integer program where there are few.

use std::time::Instant;

use super::known::Known;
use super::meeting::Meeting;
use super::milp;
use super::model::Model;
use super::pack::Effort;
use super::priced::{is_priced, priced};
use crate::model::budget::Budget;
use crate::model::error::Error;
use crate::model::options::Options;
use crate::model::plan::{Bound, Limit};

/// From so many stages on prices prove more than the program in the same time, and from so many on it proves nothing of what
/// it does not prove at once.
const PRICED_FROM: usize = 4;
const PRICED_ONLY: usize = 8;
/// Share of the time that the program has before prices, if it is small enough to see the clock in time: more where models are
/// narrow, with few tensors for their tasks, which it is quick at. And what of the rest prices have where it follows.
const FIRST_SHARE: f64 = 0.15;
const NARROW_SHARE: f64 = 0.6;
const NARROW: f64 = 1.5;
const FIRST_PLACES: usize = 20_000;
const PRICED_SHARE: f64 = 0.4;
/// The program does not look at the clock all the time.
const PROGRAM_SHARE: f64 = 0.97;
/// Programs with more places of edges than this are not worth the time it takes to write them down.
const MOST_PLACES: usize = 400_000;
/// Programs of this size have all of the default iterations, larger ones fewer: each iteration takes longer.
const EASY_PLACES: usize = 100;
/// Nodes when nothing is said.
const NODES: u64 = 100_000;

/// A better bound than is known, and better blocks where they are found on the way, in a share of the time that is left.
pub(super) fn prove(
    model: &Model,
    known: &mut Known,
    options: &Options,
    since: Instant,
    share: f64,
    meeting: &Meeting,
) -> Result<(), Error> {
    known.learn(meeting);
    if known.is_closed() {
        return Ok(());
    }
    let has_program = has_program(model, options);
    let ease = (EASY_PLACES as f64 / places(model).max(1) as f64).min(1.0);
    let program_limits =
        |share: f64| milp::limits(&Options { effort: options.effort * ease * share, ..options.clone() }, since, share);
    if model.k >= PRICED_FROM && is_priced(model) {
        if places(model) <= FIRST_PLACES {
            let is_narrow = edges(model) as f64 <= NARROW * model.tasks() as f64;
            let first = share * if is_narrow { NARROW_SHARE } else { FIRST_SHARE };
            milp::exact(model, known, &program_limits(first), options, meeting)?;
        }
        if known.is_closed() {
            return Ok(());
        }
        let mut effort = effort(options, since, if has_program { share * PRICED_SHARE } else { share }, meeting);
        let mut tell = |bound: &Bound| {
            options.observer.bound(bound.value, "priced");
            meeting.proven(bound);
        };
        let bound = priced(model, known.best.bound().verified_value(), known.best.value(), &mut effort, &mut tell)?;
        bound.into_iter().for_each(|bound| known.best.prove(bound));
    }
    if has_program && !meeting.incumbent.is_over() {
        milp::exact(model, known, &program_limits(share * PROGRAM_SHARE), options, meeting)?;
    }
    Ok(())
}

/// True if there is anything to try at all.
pub(super) fn is_tried(model: &Model, options: &Options) -> bool {
    has_program(model, options) || (model.k >= PRICED_FROM && is_priced(model))
}

fn has_program(model: &Model, options: &Options) -> bool {
    let is_timed = matches!(options.limit, Some(Limit::Seconds(_)));
    places(model) <= MOST_PLACES && !(is_timed && model.k >= PRICED_ONLY && is_priced(model))
}

/// Size of the program.
fn places(model: &Model) -> usize {
    edges(model) * model.k
}

fn edges(model: &Model) -> usize {
    model.tensors.iter().map(|tensor| tensor.readers.len()).sum()
}

/// Effort of the search for prices: as many nodes as iterations, a share of the remaining time, or a share of the default.
pub(super) fn effort(options: &Options, since: Instant, share: f64, meeting: &Meeting) -> Effort {
    let budget = Budget::new(options.limit, since, options.worth((NODES as f64 * share) as u64));
    Effort { budget: budget.share_of_time(share), incumbent: meeting.incumbent.clone() }
}
