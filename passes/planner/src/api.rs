//! Public interface of the planner: algorithms by name, a problem to a verified plan, bounds, checks.

mod algorithms;
mod options;

use crate::bounds;
use crate::infeasible;
use crate::model::error::Error;
use crate::model::instance::Instance;
use crate::model::options::Options;
use crate::model::plan::{Bound, LaunchRule, Objective, Plan, Schedule, Stages, Turns};
use crate::model::problem::{Problem, Start, View};
use crate::model::units::Micros;
use crate::portfolio;
use crate::solvers::contention::{self, TimedSolution};
use crate::solvers::{Algorithm, Effort, Solution, Solver, edge, pipeline};
use crate::verify::{Terms, verify_under};

pub use algorithms::{DEFAULT_ALGORITHM, algorithm, algorithms, register};

/// Checks that a problem is well-formed and, as far as can be determined without solving, feasible: for its queued inputs
/// if there are several, else for one. An error names changes that make the problem feasible.
pub fn check(problem: &Problem) -> Result<(), Error> {
    let objective = problem.default_objective();
    problem.check().map_err(|error| infeasible::explain(problem, objective, &Options::default(), error))
}

/// Returns all lower bounds on a problem's plans, each with its name.
pub fn bounds(problem: &Problem, objective: Objective, options: &Options) -> Result<Vec<Bound>, Error> {
    problem.check_form()?;
    options::check_batches(problem, objective, None, options)?;
    if problem.nodes.is_empty() {
        return Ok(vec![Bound::new(Micros::ZERO, "no tasks")]);
    }
    if objective != Objective::Pipeline {
        return contention::all_bounds(problem, objective, options.launches);
    }
    match problem.view() {
        View::Homogeneous(view) => pipeline::all_bounds(problem, view, options),
        View::Network(view) => edge::all_bounds(problem, view, options),
        View::Devices => pipeline::bounds_on_devices(problem, options),
    }
}

/// Solves a problem. Returns the algorithm's schedule with the best known bound, verified.
pub fn solve(problem: &Problem, objective: Objective, name: &str, options: &Options) -> Result<Plan, Error> {
    let (algorithm, solver) = algorithm(name, objective)?;
    let planned = if objective == Objective::Batch { problem.inputs } else { 1 };
    let inputs = options.inputs.filter(|inputs| *inputs != planned);
    let contention = options.contention.filter(|contention| *contention != problem.contention);
    if inputs.is_none() && contention.is_none() {
        return solve_as_is(problem, objective, algorithm, solver, options);
    }
    if let Some(inputs) = inputs.filter(|_| objective != Objective::Batch) {
        let message = format!("objective {objective} takes one input, not {inputs}; batch queues them");
        return Err(Error::Unsupported(message));
    }
    let mut asked = problem.clone();
    asked.inputs = inputs.unwrap_or(asked.inputs);
    asked.contention = contention.unwrap_or(asked.contention);
    let mut plan = solve_as_is(&asked, objective, algorithm, solver, options)?;
    if let Some(contention) = contention.filter(|_| !plan.schedule.uses_links()) {
        let message = format!(
            "contention {contention} is for links between devices: neither an edge network nor a pipeline of equal devices \
             has any"
        );
        return Err(Error::Unsupported(message));
    }
    plan.problem = problem.hash();
    (plan.inputs, plan.contention) = (inputs, contention.or(plan.contention));
    check_plan(problem, &plan, options)?;
    Ok(plan)
}

/// Returns the maximum number of inputs of a launch.
fn largest_launch(problem: &Problem, objective: Objective, options: &Options) -> u32 {
    match objective {
        Objective::Latency => 1,
        Objective::Batch => problem.inputs,
        Objective::Pipeline => problem.largest_batch(options.max_batch),
    }
}

/// Verifies a plan before it is returned; an invalid one is a bug of the algorithm.
fn check_plan(problem: &Problem, plan: &Plan, options: &Options) -> Result<(), Error> {
    let wrong = |error: Error| Error::Bug(format!("algorithm '{}' returned an invalid plan: {error}", plan.algorithm));
    verify_under(problem, plan, &Terms::from(options)).map(drop).map_err(wrong)
}

fn solve_as_is(
    problem: &Problem,
    objective: Objective,
    algorithm: &Algorithm,
    solver: Solver,
    options: &Options,
) -> Result<Plan, Error> {
    problem.check_form()?;
    options::check(problem, objective, algorithm, options)?;
    if matches!(problem.start(), Start::Cold(_)) && objective != Objective::Latency {
        let message = format!("a cold start is for one input, objective latency, not {objective}");
        return Err(Error::Unsupported(message));
    }
    if problem.nodes.is_empty() {
        return Ok(empty_plan(problem, objective, algorithm, options));
    }
    let options = &options.named(algorithm.name);
    let (solution, moves) = if problem.lists_transfers(objective) {
        let TimedSolution { timed, bound } = match algorithm.timed {
            Some(solver) => solver(problem, objective, options)?,
            None => portfolio::contention::retime(problem, objective, solver, algorithm.effort, options)?,
        };
        (Solution { schedule: timed.schedule, bound: Some(bound) }, Some((timed.transfers, timed.copies)))
    } else {
        let most = largest_launch(problem, objective, options);
        let solved = problem.check_up_to(objective, options.launches, most).and_then(|()| {
            solver(problem, objective, options).map_err(|error| unproven(objective, algorithm, options, error))
        });
        let mut solution = solved.map_err(|error| infeasible::explain(problem, objective, options, error))?;
        // A portfolio has these bounds already.
        let has_bound = algorithm.is_portfolio && solution.bound.is_some();
        let known = if has_bound { None } else { known_bound(problem, objective, options.launches)? };
        let proven = solution.bound.into_iter().chain(known);
        solution.bound = proven.reduce(Bound::or);
        (solution, None)
    };
    if !algorithm.is_portfolio {
        options.observer.plan(solution.schedule.value());
    }
    let bound = solution.bound.unwrap_or_else(Bound::none);
    let mut plan = Plan::new(problem, algorithm.name, solution.schedule, bound);
    (plan.transfers, plan.copies) = moves.unwrap_or_default();
    if objective == Objective::Batch {
        plan.launches = options.launches;
    }
    record_pipeline(&mut plan, options);
    if algorithm.effort == Effort::Limited {
        plan.seed = options.seed;
        plan.limit = options.limit;
    }
    check_plan(problem, &plan, options)?;
    Ok(plan)
}

/// Converts a proof that no plan has one launch of each task on a device: with more launches there may be one.
fn unproven(objective: Objective, algorithm: &Algorithm, options: &Options, error: Error) -> Error {
    if objective != Objective::Batch || options.launches == LaunchRule::One {
        return error;
    }
    let name = algorithm.name;
    error.unproven(&format!("algorithm '{name}' found no plan; with one launch of a task on each device,"))
}

/// Returns the plan of a problem without tasks, such as a model that folds to constants: takes no time, which is optimal.
fn empty_plan(problem: &Problem, objective: Objective, algorithm: &Algorithm, options: &Options) -> Plan {
    let schedule = match objective {
        Objective::Latency => Schedule::Latency { device: vec![], start: vec![], makespan: Micros::ZERO },
        Objective::Batch => Schedule::Batch { batches: vec![], makespan: Micros::ZERO },
        Objective::Pipeline if matches!(problem.view(), View::Network(_)) => {
            Schedule::Edge { place: vec![], period: Micros::ZERO }
        }
        Objective::Pipeline if batch_terms(options) != (None, None) => {
            let equal = Turns::Equal { replicas: vec![] };
            let on_devices = matches!(problem.view(), View::Devices);
            let turns = if on_devices { Turns::Devices { batch: vec![], devices: vec![] } } else { equal };
            Schedule::BatchedPipeline { block: vec![], k: 0, bottleneck: Micros::ZERO, turns, order: Some(vec![]) }
        }
        Objective::Pipeline => {
            let block_device = matches!(problem.view(), View::Devices).then(Vec::new);
            let stages = Some(Stages { block_device, order: Some(vec![]) });
            Schedule::Pipeline { block: vec![], k: 0, bottleneck: Micros::ZERO, stages }
        }
    };
    let mut plan = Plan::new(problem, algorithm.name, schedule, Bound::new(Micros::ZERO, "no tasks"));
    record_pipeline(&mut plan, options);
    plan
}

/// Records the options that a pipeline was planned with.
fn record_pipeline(plan: &mut Plan, options: &Options) {
    if plan.objective == Objective::Pipeline {
        plan.pipeline_cost = options.pipeline_cost.map(|cost| cost.name().to_owned());
        (plan.shared_devices, plan.splits) = (options.shared_devices, options.splits);
        (plan.max_batch, plan.max_replicas) = batch_terms(options);
    }
}

/// Returns the maximum batch size and number of replicas of the options, unless they are one.
fn batch_terms(options: &Options) -> (Option<u32>, Option<u32>) {
    (options.max_batch.filter(|most| *most > 1), options.max_replicas.filter(|most| *most > 1))
}

/// Returns the best bound that is independent of the algorithm.
fn known_bound(problem: &Problem, objective: Objective, launches: LaunchRule) -> Result<Option<Bound>, Error> {
    if objective == Objective::Pipeline {
        return Ok(None);
    }
    Ok(Some(bounds::best(&Instance::under(problem, objective, launches)?)))
}
