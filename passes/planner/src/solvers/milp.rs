//! Mixed-integer programs for schedules (DiviML IV-A), solved by HiGHS: a plan, and a bound on all plans.
//!
//! The program determines devices and orders; exact times follow from them. Constraints that it leaves out (peak memory
//! under the liveness model) are checked afterwards: a plan that does not fit is forbidden and the program solved
//! again. A forbidden plan limits the bound, since it might fit if some task were delayed.

mod cuts;
mod latency;
mod queue;
mod rows;
mod search;
mod symmetry;
mod times;

use std::time::Instant;

use crate::bounds;
use crate::mip::{Column, Program};
use crate::model::error::Error;
use crate::model::instance::Instance;
use crate::model::options::{Options, Symmetry};
use crate::model::plan::{Batch, LaunchRule, Limit, Objective, Schedule};
use crate::model::problem::Problem;
use crate::model::units::Micros;
use crate::solvers::Solution;
use crate::solvers::baseline;

use latency::Latency;
use queue::Queue;
pub use rows::{check_orders, limit_memory};
use search::Search;

/// Relative tolerance for times at the horizon.
const ROUNDING: f64 = 1e-9;
/// Limit on order variables.
const MOST_PAIRS: usize = 100_000;
/// Limit on flow variables between pairs of groups.
const MOST_FLOWS: usize = 200_000;
/// Trial schedules per task, and seconds per task, of the search for the warm start.
const START_TRIALS: u64 = 500;
const START_SECONDS: f64 = 0.0025;

/// Minimum time per task: with less, the program is hardly built before the deadline.
const SECONDS_A_TASK: f64 = 0.05;

/// A program whose solutions are schedules.
pub trait Formulation {
    /// Returns the solution that corresponds to a schedule; `None` if it violates a bound of the program.
    fn solution(&self, program: &Program, launches: &[Batch]) -> Option<Vec<f64>>;

    /// Returns the schedule that corresponds to a solution, with rounded times.
    fn launches(&self, values: &[f64]) -> Vec<Batch>;

    /// Returns the binary variables that identify a schedule, with their values: placements, and with `orders` the
    /// orders on each device.
    fn decisions(&self, values: &[f64], orders: bool) -> Vec<(Column, bool)>;
}

/// Solves the tight program with the best plan of a short search as the warm start.
pub(crate) fn milp(problem: &Problem, objective: Objective, options: &Options) -> Result<Solution, Error> {
    let clock = Instant::now();
    let instance = Instance::new(problem, objective)?;
    let start = start(problem, objective, options, instance.tasks());
    if objective == Objective::Batch && options.launches == LaunchRule::Many {
        // The program has one launch of a task on each device: its bound does not hold for more.
        let options = Options { observer: options.observer.without_bounds(), ..options.clone() };
        let Solution { schedule, .. } = solve(&instance, objective, &options, clock, start)?;
        return Ok(Solution { schedule, bound: None });
    }
    solve(&instance, objective, options, clock, start)
}

/// Returns the numbers of variables and constraints of the tight program of a queue, whose horizon is a list schedule's
/// makespan.
pub fn queue_program_size(problem: &Problem, symmetry: Symmetry) -> Result<(usize, usize), Error> {
    let instance = Instance::new(problem, Objective::Batch)?;
    let (start, _) = baseline::best(problem, Objective::Batch)?;
    let mut program = Program::default();
    Queue::new(&instance, start.value(), symmetry, &mut program)?;
    Ok((program.columns(), program.rows()))
}

/// Returns true if the time suffices to build and solve the tight program.
pub(crate) fn has_room(instance: &Instance, seconds: f64) -> bool {
    let size = instance.tasks() as f64 * f64::from(instance.inputs()).sqrt();
    seconds >= SECONDS_A_TASK * size
}

/// Runs the tight program with a time limit; returns its bound and the best plan. `None` if the program is too large or
/// the solver fails.
pub(crate) fn within(instance: &Instance, options: &Options, seconds: f64, start: &Schedule) -> Option<Solution> {
    let options = Options { limit: Some(Limit::Seconds(seconds)), observer: options.observer.clone(), ..*options };
    let solved = solve(instance, start.objective(), &options, Instant::now(), Ok(start.clone()));
    options.observer.unless_failed(solved)
}

/// Improves on the start, if there is one.
fn solve(
    instance: &Instance,
    objective: Objective,
    options: &Options,
    clock: Instant,
    start: Result<Schedule, Error>,
) -> Result<Solution, Error> {
    let mut search = Search::new(instance, objective, options, clock, start.as_ref().ok());
    if search.is_closed(bounds::best(instance).value) {
        return search.answer(Ok(()), start);
    }
    let mut program = Program::default();
    let solved = if objective == Objective::Batch {
        let model = Queue::new(instance, search.horizon, options.symmetry, &mut program)?;
        search.run(program, &model)
    } else {
        let model = Latency::new(instance, search.horizon, options.symmetry, &mut program)?;
        search.relax(&mut program, &model).and_then(|()| search.run(program, &model))
    };
    search.answer(solved, start)
}

/// Solves the program that `build` makes for a horizon, which is the makespan of the start if there is one. Falls back
/// to the start if HiGHS finds no plan.
pub fn solve_formulation<F: Formulation>(
    instance: &Instance,
    objective: Objective,
    options: &Options,
    clock: Instant,
    start: Result<Schedule, Error>,
    build: impl FnOnce(Micros, &mut Program) -> Result<F, Error>,
) -> Result<Solution, Error> {
    let mut search = Search::new(instance, objective, options, clock, start.as_ref().ok());
    let mut program = Program::default();
    let model = build(search.horizon, &mut program)?;
    let solved = search.run(program, &model);
    search.answer(solved, start)
}

/// Returns the best plan of a short search.
fn start(problem: &Problem, objective: Objective, options: &Options, tasks: usize) -> Result<Schedule, Error> {
    let trials = START_TRIALS * tasks as u64;
    let limit = match options.limit {
        None => Limit::Iterations(trials),
        Some(Limit::Iterations(count)) => Limit::Iterations(count.min(trials)),
        Some(Limit::Seconds(seconds)) => Limit::Seconds((seconds / 10.0).min(START_SECONDS * tasks as f64)),
    };
    let options = Options { limit: Some(limit), observer: options.observer.clone(), ..*options };
    crate::solvers::search::neighbourhoods(problem, objective, &options).map(|solution| solution.schedule)
}

fn too_large(what: String) -> Error {
    Error::Unsupported(format!("an integer program would need {what}; milp-split, lns and anneal need none"))
}

#[cfg(test)]
mod test {
    use super::*;
    use crate::model::plan::closes;
    use crate::testing::{Rwnn, rwnn};

    /// Tests that the optimum is found from a bad start and from none.
    #[test]
    fn starts_do_not_matter() {
        for (seed, inputs) in (1..=6).map(|seed| (seed, if seed % 3 == 0 { 2 } else { 1 })) {
            let nodes = if inputs == 1 { 7 } else { 3 };
            let problem = rwnn(&Rwnn { nodes, inputs, seed, ..Rwnn::default() }).unwrap();
            let objective = if inputs == 1 { Objective::Latency } else { Objective::Batch };
            let instance = Instance::new(&problem, objective).unwrap();
            let options = Options::default();
            let single = baseline::single(&problem, objective, &options).map(|solution| solution.schedule);
            let none = Err(Error::NotFound("none".to_owned()));
            let best = milp(&problem, objective, &options).unwrap();
            for start in [single, none] {
                let found = solve(&instance, objective, &options, Instant::now(), start).unwrap();
                assert_eq!(found.schedule.value(), best.schedule.value(), "seed {seed}");
                let bound = found.bound.unwrap();
                assert!(closes(bound.value, best.schedule.value()), "seed {seed}: {bound:?}");
                assert!(bound.value <= best.schedule.value() && bound.proof.is_verified(), "seed {seed}: {bound:?}");
            }
        }
    }
}
