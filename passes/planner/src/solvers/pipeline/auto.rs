//! Portfolio of pipelines on equal devices: a short search, then a longer one and a proof. With a time limit and more
//! than one core the two run concurrently and share an incumbent.

use std::thread;
use std::time::Instant;

use super::incumbent::PipelineIncumbent;
use super::model::Model;
use super::proof::{is_tried, prove};
use super::shared::SharedSolution;
use crate::model::options::Options;
use crate::model::plan::Limit;
use crate::solvers::chains::cores;

/// Sequential mode: share of the remaining time for a first attempt at a proof, and then for a longer search.
const PROOF_SHARE: f64 = 0.2;
const SEARCH_SHARE: f64 = 0.6;
/// Concurrent mode: the search restarts from the shared incumbent; shares of the remaining time of its parts.
const PARTS: [f64; 2] = [0.3, 1.0];

/// Returns the best pipeline and the best bound. A failure of the solver is reported and leaves both unchanged.
pub(super) fn solve(model: &Model, options: &Options, since: Instant) -> PipelineIncumbent {
    let (mut incumbent, shared) = PipelineIncumbent::short_search(model, options);
    match options.limit {
        Some(Limit::Seconds(_)) if cores() > 1 && is_tried(model, options) => {
            beside(model, options, since, &mut incumbent, &shared)
        }
        _ => in_turn(model, options, since, &mut incumbent, &shared),
    }
    incumbent
}

/// Makes a first attempt at a proof, which suffices for many models; else runs a longer search, and uses the remaining
/// time for a proof or at least a bound. Deterministic with a limit in iterations.
fn in_turn(
    model: &Model,
    options: &Options,
    since: Instant,
    incumbent: &mut PipelineIncumbent,
    shared: &SharedSolution,
) {
    let observer = options.observer.of("milp");
    observer.unless_failed(prove(model, incumbent, &worth(options, incumbent), since, PROOF_SHARE, shared));
    let share = if is_tried(model, options) { SEARCH_SHARE } else { 1.0 };
    incumbent.anneal(model, &worth(options, incumbent).share_since(since, share), shared, 0);
    observer.unless_failed(prove(model, incumbent, &worth(options, incumbent), since, 1.0, shared));
}

/// Returns the options with an effort that depends on the gap.
fn worth(options: &Options, incumbent: &PipelineIncumbent) -> Options {
    options.for_gap(incumbent.best.value(), incumbent.best.bound().value)
}

/// Proves on one core while the others search.
fn beside(
    model: &Model,
    options: &Options,
    since: Instant,
    incumbent: &mut PipelineIncumbent,
    shared: &SharedSolution,
) {
    let (mut proven, mut searched) = (incumbent.clone(), incumbent.clone());
    thread::scope(|scope| {
        let proof = scope.spawn(|| prove(model, &mut proven, options, since, 1.0, shared));
        for share in PARTS {
            searched.anneal(model, &options.share_since(since, share), shared, 1);
        }
        let proof = proof.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        options.observer.of("milp").unless_failed(proof);
    });
    incumbent.best.prove(proven.best.bound().clone());
    incumbent.update_from(shared);
}
