//! Pipelines by integer programs: the best one with proof, or at least a bound that holds for all.

use std::ops::ControlFlow;
use std::thread;
use std::time::Instant;

use super::anneal::Stages;
use super::bounds;
use super::known::Known;
use super::meeting::Meeting;
use super::model::Model;
use super::program::{Formulation, Shape};
use super::state::State;
use crate::mip::{self, Event, Limits, Outcome};
use crate::model::budget::Budget;
use crate::model::error::Error;
use crate::model::options::Options;
use crate::model::plan::{Bound, Proof};
use crate::model::units::Micros;
use crate::solvers::chains::cores;

/// Error of bounds, in parts of the best value: tolerances of the solver.
pub(super) const SLACK: f64 = 1e-7;
/// Simplex iterations when nothing is said.
const ITERATIONS: u64 = 200_000;

/// True if nothing is better than a value but by what solvers do not tell apart.
pub(super) fn closes(bound: Micros, value: Micros) -> bool {
    bound >= value * (1.0 - 2.0 * SLACK)
}

/// Limits of an integer program: its own iterations, or a share of the time that is left.
pub(super) fn limits(options: &Options, since: Instant, share: f64) -> Limits {
    let budget = Budget::new(options.limit, since, options.worth(ITERATIONS));
    Limits::new(options.seed, &budget.share_of_time(share))
}

/// The exact program: better blocks or a better bound than is known. Of what is alive in a block it knows a part only, which
/// leaves bounds valid; what solutions really cost is counted. Only a verified bound ends search and proof early.
pub(super) fn exact(
    model: &Model,
    known: &mut Known,
    limits: &Limits,
    options: &Options,
    meeting: &Meeting,
) -> Result<(), Error> {
    known.learn(meeting);
    if known.is_closed() || model.k < 2 || known.best.value() <= 0.0 {
        return Ok(());
    }
    let began = Instant::now();
    let scale = known.best.value();
    let step = step(model, scale);
    // Only what is better is looked for: where nothing is found, what is known is the best. Costs that are multiples of a step
    // are told apart by half of one, however coefficients are rounded.
    let has_grain = grain(model, scale).is_some();
    let most = if has_grain { scale - step / 2.0 } else { scale - step };
    let least = known.best.bound().verified_value().min(most);
    let formulation = Formulation::new(model, &Shape::exact(model.k), scale, least, most);
    let see = |values: &[f64]| {
        let blocks = formulation.blocks(values);
        let value = State::new(model, blocks.clone(), known.order.clone()).value();
        options.observer.of("milp").plan(value);
        meeting.found(value, blocks, "milp");
        value
    };
    let mut best = scale;
    let mut observer = |event: Event<'_>| {
        match event {
            Event::Solution(values) => best = best.min(see(values)),
            Event::Bound(bound) => {
                options.observer.bound(claimed(model, bound, scale).min(scale), "exact");
            }
            Event::Wanted(place) => {
                let better = meeting.better_than(best).filter(|better| better.value() <= most);
                if let Some((value, blocks)) =
                    better.as_ref().and_then(|better| Some((better.value(), better.solution()?)))
                {
                    best = value;
                    *place = Some(formulation.values(blocks, value));
                }
            }
        }
        if meeting.incumbent.is_over() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    };
    let outcome = formulation.program.prove(&limits.left_since(began), None, &mut observer)?;
    if let Some(values) = &outcome.values {
        see(values);
    }
    known.learn(meeting);
    // Plans that are no solution cost more than the program allows; where costs are multiples of a step, as much as is known.
    known.best.prove(bound_of(model, &outcome, scale, if has_grain { scale } else { most }, "exact"));
    meeting.proven(known.best.bound());
    Ok(())
}

/// Bound that a program shows in parts of `scale`, where all that is no solution costs `most` at least.
fn bound_of(model: &Model, outcome: &Outcome, scale: Micros, most: Micros, by: &str) -> Bound {
    let verified = up(model, mip::rounded(outcome.verified.clamp(0.0, most / scale)) * scale, scale).min(most);
    let claimed = claimed(model, outcome.bound, scale).min(most);
    Bound::by(verified, by, Proof::SafeDual).or(Bound::by(claimed, by, Proof::Solver))
}

/// Section 3.2: some stage has at least its share of the work; what the cheapest such one costs.
pub(super) fn bottleneck(model: &Model, known: &Known, limits: &Limits) -> Result<Bound, Error> {
    let shape = Shape::bottleneck(bounds::simple(model).value);
    relaxed(model, &shape, known, limits, "bottleneck")
}

/// Section 3.3: the same for each number of stages before it; the least holds. Cores take turns, each program has its share.
pub(super) fn bottleneck_guess(model: &Model, known: &Known, limits: &Limits) -> Result<Bound, Error> {
    let work = bounds::simple(model).value;
    let workers = cores().min(model.k);
    let rounds = model.k.div_ceil(workers);
    let iterations = limits.iterations.div_ceil(model.k as u64);
    let each = Limits { seconds: limits.seconds.map(|seconds| seconds / rounds as f64), iterations, ..*limits };
    let some = |worker: usize| -> Result<Vec<Bound>, Error> {
        let guess =
            |before: usize| relaxed(model, &Shape::guess(work, before, model.k), known, &each, "bottleneck-guess");
        (worker..model.k).step_by(workers).map(guess).collect()
    };
    let all: Vec<Result<Vec<Bound>, Error>> = thread::scope(|scope| {
        let some = &some;
        let threads: Vec<_> = (0..workers).map(|worker| scope.spawn(move || some(worker))).collect();
        let panicked = || Error::Bug("a bound's thread panicked".to_owned());
        threads.into_iter().map(|thread| thread.join().unwrap_or_else(|_| Err(panicked()))).collect()
    });
    // The least of what is verified of each, and the least of what is said of each.
    let (mut verified, mut claimed) = (f64::INFINITY, f64::INFINITY);
    for bounds in all {
        for bound in bounds? {
            verified = verified.min(bound.verified_value());
            claimed = claimed.min(bound.value);
        }
    }
    let by = |value: Micros, proof: Proof| Bound::by(value, "bottleneck-guess", proof);
    Ok(by(verified, Proof::SafeDual).or(by(claimed, Proof::Solver)))
}

/// A relaxation's bound. Where nothing fits below what is known, that is the bound.
fn relaxed(model: &Model, shape: &Shape, known: &Known, limits: &Limits, by: &str) -> Result<Bound, Error> {
    let scale = known.best.value();
    if scale <= 0.0 {
        return Ok(Bound::new(0.0, by));
    }
    let began = Instant::now();
    let formulation = Formulation::new(model, shape, scale, 0.0, scale);
    let outcome = formulation.program.prove(&limits.left_since(began), None, &mut |_| ControlFlow::Continue(()))?;
    Ok(bound_of(model, &outcome, scale, scale, by))
}

/// A bound that HiGHS gives in microseconds, less what tolerances may have made of it.
fn claimed(model: &Model, bound: f64, scale: Micros) -> Micros {
    up(model, (bound - SLACK) * scale, scale).max(0.0)
}

/// Where all costs are multiples of something, a bound goes up to the next.
pub(super) fn up(model: &Model, bound: Micros, scale: Micros) -> Micros {
    match grain(model, scale) {
        Some(grain) if bound.is_finite() && bound > 0.0 => (bound / grain - 1e-6).ceil() * grain,
        _ => bound,
    }
}

/// By how much a better value is better at least, or what is not worth looking for.
fn step(model: &Model, scale: Micros) -> Micros {
    grain(model, scale).unwrap_or(scale * SLACK)
}

/// Number that all costs are multiples of: found where all numbers are whole, and told apart by the solver.
fn grain(model: &Model, scale: Micros) -> Option<Micros> {
    const MOST: f64 = 1e12;
    let numbers = model.work.iter().copied().chain(model.tensors.iter().map(|tensor| tensor.time));
    let mut common = 0_u64;
    for number in numbers {
        if number.fract() != 0.0 || number > MOST {
            return None;
        }
        let (mut a, mut b) = (common, number as u64);
        while b != 0 {
            (a, b) = (b, a % b);
        }
        common = a;
    }
    Some(common as f64).filter(|grain| *grain > scale * SLACK && model.memory.is_none())
}
