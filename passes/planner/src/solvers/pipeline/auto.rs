//! Portfolio of pipelines on equal devices: a short search, then a longer one and a proof. With a limit in
//! seconds and more than one core the two run beside each other, and each knows what the other has found.

use std::thread;
use std::time::Instant;

use super::known::Known;
use super::meeting::Meeting;
use super::model::Model;
use super::proof::{is_tried, prove};
use crate::model::options::Options;
use crate::model::plan::Limit;
use crate::solvers::chains::cores;

/// In turn: what of the time that is left a first attempt at a proof may take, and then a longer search.
const PROOF_SHARE: f64 = 0.2;
const SEARCH_SHARE: f64 = 0.6;
/// Beside a proof, the search begins anew with the best of both: what of the time that is left each part takes.
const PARTS: [f64; 2] = [0.3, 1.0];

/// Returns the best pipeline that is found, and the best bound. A proof that the solver fails at is reported and leaves both
/// as they are.
pub(super) fn solve(model: &Model, options: &Options, since: Instant) -> Known {
    let (mut known, meeting) = Known::briefly(model, options);
    match options.limit {
        Some(Limit::Seconds(_)) if cores() > 1 && is_tried(model, options) => {
            beside(model, options, since, &mut known, &meeting)
        }
        _ => in_turn(model, options, since, &mut known, &meeting),
    }
    known
}

/// A first attempt at a proof, which is enough for many models; else a longer search, and what time is left for a proof or
/// at least a bound. With a limit in iterations it is the same every time.
fn in_turn(model: &Model, options: &Options, since: Instant, known: &mut Known, meeting: &Meeting) {
    let observer = options.observer.of("milp");
    observer.unless_failed(prove(model, known, &worth(options, known), since, PROOF_SHARE, meeting));
    let share = if is_tried(model, options) { SEARCH_SHARE } else { 1.0 };
    known.anneal(model, &worth(options, known).share_since(since, share), meeting, 0);
    observer.unless_failed(prove(model, known, &worth(options, known), since, 1.0, meeting));
}

/// The options with an effort that is worth what can still be gained.
fn worth(options: &Options, known: &Known) -> Options {
    options.for_gap(known.best.value(), known.best.bound().value)
}

/// One core proves while the others search.
fn beside(model: &Model, options: &Options, since: Instant, known: &mut Known, meeting: &Meeting) {
    let (mut proven, mut searched) = (known.clone(), known.clone());
    thread::scope(|scope| {
        let proof = scope.spawn(|| prove(model, &mut proven, options, since, 1.0, meeting));
        for share in PARTS {
            searched.anneal(model, &options.share_since(since, share), meeting, 1);
        }
        let proof = proof.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        options.observer.of("milp").unless_failed(proof);
    });
    known.best.prove(proven.best.bound().clone());
    known.learn(meeting);
}
