//! Proofs for pipelines: prices of tasks for many stages, the integer program for few.

use std::time::Instant;

use super::incumbent::PipelineIncumbent;
use super::milp;
use super::model::Model;
use super::pack::Effort;
use super::priced::{is_priced, priced};
use super::shared::SharedSolution;
use crate::model::budget::Budget;
use crate::model::error::Error;
use crate::model::options::Options;
use crate::model::plan::{Bound, Limit};

/// Number of stages from which on prices prove more than the program in the same time, and from which on the program is
/// useless unless it finishes at once.
const PRICED_FROM: usize = 4;
const PRICED_ONLY: usize = 8;
/// Share of the time of the program before prices, if it is small enough to respect the deadline: larger for narrow
/// models, with few tensors per task, on which it is fast. And the share of the rest for prices if the program follows.
const FIRST_SHARE: f64 = 0.15;
const NARROW_SHARE: f64 = 0.6;
const NARROW: f64 = 1.5;
const FIRST_PLACES: usize = 20_000;
const PRICED_SHARE: f64 = 0.4;
/// Margin for the program's infrequent checks of the deadline.
const PROGRAM_SHARE: f64 = 0.97;
/// Limit on the program's size, in edges times blocks.
const MOST_PLACES: usize = 400_000;
/// Programs up to this size get all default iterations, larger ones fewer: each iteration takes longer.
const EASY_PLACES: usize = 100;
/// Default limit of search nodes.
const NODES: u64 = 100_000;

/// Improves the bound, and the blocks if better ones are found on the way, in a share of the remaining time.
pub(super) fn prove(
    model: &Model,
    incumbent: &mut PipelineIncumbent,
    options: &Options,
    since: Instant,
    share: f64,
    shared: &SharedSolution,
) -> Result<(), Error> {
    incumbent.update_from(shared);
    if incumbent.is_closed() {
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
            milp::exact(model, incumbent, &program_limits(first), options, shared)?;
        }
        if incumbent.is_closed() {
            return Ok(());
        }
        let mut effort = effort(options, since, if has_program { share * PRICED_SHARE } else { share }, shared);
        let mut report = |bound: &Bound| {
            options.observer.bound(bound.value, "priced");
            shared.report_bound(bound);
        };
        let bound =
            priced(model, incumbent.best.bound().verified_value(), incumbent.best.value(), &mut effort, &mut report)?;
        bound.into_iter().for_each(|bound| incumbent.best.prove(bound));
    }
    if has_program && !shared.incumbent.is_over() {
        milp::exact(model, incumbent, &program_limits(share * PROGRAM_SHARE), options, shared)?;
    }
    Ok(())
}

/// Returns true if any proof method applies.
pub(super) fn is_tried(model: &Model, options: &Options) -> bool {
    has_program(model, options) || (model.k >= PRICED_FROM && is_priced(model))
}

fn has_program(model: &Model, options: &Options) -> bool {
    let is_timed = matches!(options.limit, Some(Limit::Seconds(_)));
    places(model) <= MOST_PLACES && !(is_timed && model.k >= PRICED_ONLY && is_priced(model))
}

/// Returns the size of the program.
fn places(model: &Model) -> usize {
    edges(model) * model.k
}

fn edges(model: &Model) -> usize {
    model.tensors.iter().map(|tensor| tensor.readers.len()).sum()
}

/// Returns the budget of the search for prices: as many nodes as iterations, a share of the remaining time, or a share
/// of the default.
pub(super) fn effort(options: &Options, since: Instant, share: f64, shared: &SharedSolution) -> Effort {
    let budget = Budget::new(options.limit, since, options.worth((NODES as f64 * share) as u64));
    Effort { budget: budget.share_of_time(share), incumbent: shared.incumbent.clone() }
}
