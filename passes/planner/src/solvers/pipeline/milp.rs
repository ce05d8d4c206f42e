//! Integer programs for pipelines: an optimal pipeline with a proof, or a lower bound.

use std::ops::ControlFlow;
use std::thread;
use std::time::Instant;

use super::anneal::Stages;
use super::bounds;
use super::incumbent::PipelineIncumbent;
use super::model::Model;
use super::program::{Formulation, Shape};
use super::shared::SharedSolution;
use super::state::State;
use crate::mip::{self, Event, Limits, Outcome};
use crate::model::budget::Budget;
use crate::model::error::Error;
use crate::model::options::Options;
use crate::model::plan::{Bound, Proof};
use crate::model::units::Micros;
use crate::solvers::chains::cores;

/// Relative tolerance of the solver's bounds.
pub(super) const SLACK: f64 = 1e-7;
/// Default limit of simplex iterations.
const ITERATIONS: u64 = 200_000;

/// Returns true if the bound proves the value optimal up to the solver's tolerances.
pub(super) fn closes(bound: Micros, value: Micros) -> bool {
    bound >= value * (1.0 - 2.0 * SLACK)
}

/// Returns the limits of an integer program: its own iterations, or a share of the remaining time.
pub(super) fn limits(options: &Options, since: Instant, share: f64) -> Limits {
    let budget = Budget::new(options.limit, since, options.worth(ITERATIONS));
    Limits::new(options.seed, &budget.share_of_time(share))
}

/// Exact program: improves the blocks or the bound. It models the live bytes of a block only partially, so its bounds
/// are valid and solutions are evaluated exactly. Only a verified bound ends search and proof early.
pub(super) fn exact(
    model: &Model,
    incumbent: &mut PipelineIncumbent,
    limits: &Limits,
    options: &Options,
    shared: &SharedSolution,
) -> Result<(), Error> {
    incumbent.update_from(shared);
    if incumbent.is_closed() || model.k < 2 || incumbent.best.value() <= Micros::ZERO {
        return Ok(());
    }
    let began = Instant::now();
    let scale = incumbent.best.value();
    let step = step(model, scale);
    // Only improvements are feasible: infeasibility proves the incumbent optimal. If costs are multiples of a step, the
    // cutoff is half a step below, which is robust to rounded coefficients.
    let has_grain = grain(model, scale).is_some();
    let most = if has_grain { scale - step / 2.0 } else { scale - step };
    let least = incumbent.best.bound().verified_value().min(most);
    let formulation = Formulation::new(model, &Shape::exact(model.k), scale, least, most);
    let see = |values: &[f64]| {
        let blocks = formulation.blocks(values);
        let value = State::new(model, blocks.clone(), incumbent.order.clone()).value();
        options.observer.of("milp").plan(value);
        shared.report_solution(value, blocks, "milp");
        value
    };
    let mut best = scale;
    let mut observer = |event: Event<'_>| {
        match event {
            Event::Solution(values) => best = best.min(see(values)),
            Event::Bound(bound) => {
                options.observer.bound(claimed(model, bound, scale).min(scale), "exact");
            }
            Event::SolutionRequest(place) => {
                let better = shared.better_than(best).filter(|better| better.value() <= most);
                if let Some((value, blocks)) =
                    better.as_ref().and_then(|better| Some((better.value(), better.solution()?)))
                {
                    best = value;
                    *place = Some(formulation.values(blocks, value));
                }
            }
        }
        if shared.incumbent.is_over() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    };
    let outcome = formulation.program.prove(&limits.left_since(began), None, &mut observer)?;
    if let Some(values) = &outcome.values {
        see(values);
    }
    incumbent.update_from(shared);
    // Plans that are not solutions cost more than `most`; if costs are multiples of a step, at least the incumbent's
    // value.
    incumbent.best.prove(bound_of(model, &outcome, scale, if has_grain { scale } else { most }, "exact"));
    shared.report_bound(incumbent.best.bound());
    Ok(())
}

/// Returns the bound of a program in units of `scale`, where everything that is not a solution costs at least `most`.
fn bound_of(model: &Model, outcome: &Outcome, scale: Micros, most: Micros, by: &str) -> Bound {
    let verified = up(model, mip::rounded(outcome.verified.clamp(0.0, most / scale)) * scale, scale).min(most);
    let claimed = claimed(model, outcome.bound, scale).min(most);
    Bound::by(verified, by, Proof::SafeDual).or(Bound::by(claimed, by, Proof::Solver))
}

/// Section 3.2: some stage has at least its share of the work; bounds the cost of the cheapest such stage.
pub(super) fn bottleneck(model: &Model, incumbent: &PipelineIncumbent, limits: &Limits) -> Result<Bound, Error> {
    let shape = Shape::bottleneck(bounds::simple(model).value);
    relaxed(model, &shape, incumbent, limits, "bottleneck")
}

/// Section 3.3: the same for each number of stages before it; the minimum is the bound. The programs are distributed
/// over the cores and share the limit.
pub(super) fn bottleneck_guess(model: &Model, incumbent: &PipelineIncumbent, limits: &Limits) -> Result<Bound, Error> {
    let work = bounds::simple(model).value;
    let workers = cores().min(model.k);
    let rounds = model.k.div_ceil(workers);
    let iterations = limits.iterations.div_ceil(model.k as u64);
    let each = Limits { seconds: limits.seconds.map(|seconds| seconds / rounds as f64), iterations, ..*limits };
    let some = |worker: usize| -> Result<Vec<Bound>, Error> {
        let guess =
            |before: usize| relaxed(model, &Shape::guess(work, before, model.k), incumbent, &each, "bottleneck-guess");
        (worker..model.k).step_by(workers).map(guess).collect()
    };
    let all: Vec<Result<Vec<Bound>, Error>> = thread::scope(|scope| {
        let some = &some;
        let threads: Vec<_> = (0..workers).map(|worker| scope.spawn(move || some(worker))).collect();
        let panicked = || Error::Bug("a bound's thread panicked".to_owned());
        threads.into_iter().map(|thread| thread.join().unwrap_or_else(|_| Err(panicked()))).collect()
    });
    // Minimum of the verified bounds, and minimum of the claimed bounds.
    let (mut verified, mut claimed) = (Micros::INFINITY, Micros::INFINITY);
    for bounds in all {
        for bound in bounds? {
            verified = verified.min(bound.verified_value());
            claimed = claimed.min(bound.value);
        }
    }
    let by = |value: Micros, proof: Proof| Bound::by(value, "bottleneck-guess", proof);
    Ok(by(verified, Proof::SafeDual).or(by(claimed, Proof::Solver)))
}

/// Returns a relaxation's bound. If nothing is feasible below the incumbent, that is the bound.
fn relaxed(
    model: &Model,
    shape: &Shape,
    incumbent: &PipelineIncumbent,
    limits: &Limits,
    by: &str,
) -> Result<Bound, Error> {
    let scale = incumbent.best.value();
    if scale <= Micros::ZERO {
        return Ok(Bound::new(Micros::ZERO, by));
    }
    let began = Instant::now();
    let formulation = Formulation::new(model, shape, scale, Micros::ZERO, scale);
    let outcome = formulation.program.prove(&limits.left_since(began), None, &mut |_| ControlFlow::Continue(()))?;
    Ok(bound_of(model, &outcome, scale, scale, by))
}

/// Converts a bound of HiGHS to microseconds, less its tolerances.
fn claimed(model: &Model, bound: f64, scale: Micros) -> Micros {
    up(model, (bound - SLACK) * scale, scale).max(Micros::ZERO)
}

/// Rounds a bound up, if all costs are multiples of a grain.
pub(super) fn up(model: &Model, bound: Micros, scale: Micros) -> Micros {
    match grain(model, scale) {
        Some(grain) if bound.is_finite() && bound > Micros::ZERO => (bound / grain - 1e-6).ceil() * grain,
        _ => bound,
    }
}

/// Returns the minimum improvement, or the improvement that is not worth a search.
fn step(model: &Model, scale: Micros) -> Micros {
    grain(model, scale).unwrap_or(scale * SLACK)
}

/// Returns the greatest common divisor of all costs, if they are integers and the solver's tolerance resolves it.
fn grain(model: &Model, scale: Micros) -> Option<Micros> {
    const MOST: f64 = 1e12;
    let numbers = model.work.iter().copied().chain(model.tensors.iter().map(|tensor| tensor.time));
    let numbers = numbers.map(f64::from);
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
    Some(Micros(common as f64)).filter(|grain| *grain > scale * SLACK && model.memory.is_none())
}
