//! Plans with contention and from cold starts by algorithms that support neither: plans the relaxed problem, then retimes
//! and improves its schedule.

use std::time::Instant;

use crate::infeasible;
use crate::model::error::Error;
use crate::model::options::Options;
use crate::model::plan::{Batch, Limit, Objective, Plan};
use crate::model::problem::Problem;
use crate::solvers::contention::{TimedSolution, best_bound, time};
use crate::solvers::timing::launches;
use crate::solvers::{Effort, Solution, Solver, sortinghat};
use crate::verify::verify;

/// Share of the time for the relaxed problem and, without a limit, its number of trials times tasks.
const FIRST_SHARE: f64 = 0.4;
const FIRST_EFFORT: u64 = 20_000_000;
/// Number of tasks above which problems are planned in pieces.
const MANY: usize = 100;

/// Plans with `sortinghat`, which supports contention and cold starts itself.
pub(crate) fn sortinghat(problem: &Problem, objective: Objective, options: &Options) -> Result<TimedSolution, Error> {
    sortinghat::solve(problem, options, None)
        .map_err(|error| infeasible::explain(&problem.relaxed(), objective, options, error))
}

/// Plans with `auto`: `sortinghat` for large problems, from the relaxed problem's plan.
pub(crate) fn auto(problem: &Problem, objective: Objective, options: &Options) -> Result<TimedSolution, Error> {
    let since = Instant::now();
    let solver = if objective == Objective::Batch { super::queue } else { super::latency };
    let relaxed = solve_relaxed(problem, objective, solver, options)?;
    let options = options.left_since(since);
    if objective == Objective::Latency && problem.nodes.len() > MANY {
        let solution = sortinghat::solve(problem, &options, Some(relaxed))?;
        options.observer.taken(solution.timed.schedule.value(), "sortinghat");
        return Ok(solution);
    }
    let solution = retimed(problem, objective, relaxed, Effort::Limited, &options)?;
    options.observer.taken(solution.timed.schedule.value(), "buses");
    Ok(solution)
}

/// Plans the relaxed problem with any other algorithm, then retimes the plan, and improves it if the algorithm searches.
pub(crate) fn retime(
    problem: &Problem,
    objective: Objective,
    solver: Solver,
    effort: Effort,
    options: &Options,
) -> Result<TimedSolution, Error> {
    let since = Instant::now();
    let relaxed = solve_relaxed(problem, objective, solver, options)?;
    retimed(problem, objective, relaxed, effort, &options.left_since(since))
}

fn solve_relaxed(
    problem: &Problem,
    objective: Objective,
    solver: Solver,
    options: &Options,
) -> Result<Solution, Error> {
    let relaxed = problem.relaxed();
    let tasks = problem.nodes.len();
    let limit = match options.limit.map(|limit| limit.with_seconds(|seconds| seconds * FIRST_SHARE)) {
        // The effort of an optimum of the relaxed problem is better spent on the problem itself.
        None if tasks > MANY => Some(Limit::Iterations(FIRST_EFFORT / tasks as u64)),
        limit => limit,
    };
    // Lower bounds of the relaxation remain valid; its makespans do not.
    let first = Options { limit, observer: options.observer.of_bounds(), ..options.clone() };
    let solved = relaxed.check_under(objective, options.launches).and_then(|()| solver(&relaxed, objective, &first));
    solved.map_err(|error| infeasible::explain(&relaxed, objective, &first, error))
}

fn retimed(
    problem: &Problem,
    objective: Objective,
    relaxed: Solution,
    effort: Effort,
    options: &Options,
) -> Result<TimedSolution, Error> {
    let bound = best_bound(problem, objective, options.launches, relaxed.bound)?;
    let search = (effort == Effort::Limited).then_some(bound.value);
    let timed = time(problem, &relaxed.schedule, search, options)?;
    Ok(TimedSolution { timed, bound })
}

/// Retimes another plan's devices and order with a problem's buses and copies: the difference is the gain from planning
/// with them. Parameters are copied directly from the host, in the order of their use.
pub fn timed_anew(problem: &Problem, plan: &Plan) -> Result<Plan, Error> {
    problem.check_form()?;
    let objective = plan.objective;
    if !problem.lists_transfers(objective) {
        let message = "only plans with contention or a cold start are retimed".to_owned();
        return Err(Error::Unsupported(message));
    }
    let is_known = |batch: &Batch| {
        let inputs = if objective == Objective::Batch { problem.inputs } else { 1 };
        let inside = batch.inputs.iter().all(|input| *input < inputs);
        batch.node < problem.nodes.len() && batch.device < problem.devices.len() && inside
    };
    let launches = launches(&plan.schedule);
    let counted = objective == Objective::Batch || launches.len() == problem.nodes.len();
    if !counted || !launches.iter().all(is_known) {
        return Err(Error::Unsupported(
            "the plan is for another problem: it has other nodes, devices or inputs".to_owned(),
        ));
    }
    let timed = time(problem, &plan.schedule, None, &Options::default())?;
    let bound = best_bound(problem, objective, plan.launches, None)?;
    let mut anew = Plan::new(problem, &plan.algorithm, timed.schedule, bound);
    (anew.seed, anew.limit) = (plan.seed, plan.limit);
    (anew.transfers, anew.copies) = (timed.transfers, timed.copies);
    verify(problem, &anew).map(|_| anew)
}
