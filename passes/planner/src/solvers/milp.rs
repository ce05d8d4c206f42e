//! Integer programs for schedules (DiviML IV-A), solved by HiGHS: a plan, and a bound that holds for all.
//!
//! The program says which device runs what and in which order; exact times follow from that. What the program leaves
//! out (under the liveness model, what is alive at once) is checked afterwards: a plan that does not fit is forbidden
//! and the program solved again, and what was forbidden counts for the bound, since it might fit if some task waited.

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
use crate::model::plan::{Batch, Limit, Objective, Schedule};
use crate::model::problem::Problem;
use crate::model::units::Micros;
use crate::solvers::Solution;
use crate::solvers::baseline;

use latency::Latency;
use queue::Queue;
pub use rows::{check_orders, limit_memory};
use search::Search;

/// Share of the horizon that a time may be above it by rounding.
const ROUNDING: f64 = 1e-9;
/// More order variables than this take more memory than they are worth.
const MOST_PAIRS: usize = 100_000;
/// The same for variables that say where two groups of tasks are, together.
const MOST_FLOWS: usize = 200_000;
/// Trial schedules a task, and seconds a task, for the plan to start from.
const START_TRIALS: u64 = 500;
const START_SECONDS: f64 = 0.0025;

/// With less time than this for a task, the program is hardly built before it is over.
const SECONDS_A_TASK: f64 = 0.05;

/// A program whose solutions are schedules.
pub trait Formulation {
    /// The solution that a schedule is; none where the program has no room for it.
    fn solution(&self, program: &Program, launches: &[Batch]) -> Option<Vec<f64>>;

    /// The schedule that a solution is, with rounded times.
    fn launches(&self, values: &[f64]) -> Vec<Batch>;

    /// Decisions that make a solution the schedule that it is, with their values: places, and orders on each device if they
    /// are wanted.
    fn decisions(&self, values: &[f64], orders: bool) -> Vec<(Column, bool)>;
}

/// The tight program, from the best plan of a short search.
pub(crate) fn milp(problem: &Problem, objective: Objective, options: &Options) -> Result<Solution, Error> {
    let clock = Instant::now();
    let instance = Instance::new(problem, objective)?;
    let start = start(problem, objective, options, instance.tasks());
    solve(&instance, objective, options, clock, start)
}

/// Returns the numbers of variables and constraints of the tight program of a queue, whose horizon is a list scheduler's plan.
pub fn queue_program_size(problem: &Problem, symmetry: Symmetry) -> Result<(usize, usize), Error> {
    let instance = Instance::new(problem, Objective::Batch)?;
    let (start, _) = baseline::best(problem, Objective::Batch)?;
    let mut program = Program::default();
    Queue::new(&instance, start.value(), symmetry, &mut program)?;
    Ok((program.columns(), program.rows()))
}

/// True if so many seconds are enough for the tight program to be worth building.
pub(crate) fn has_room(instance: &Instance, seconds: f64) -> bool {
    let size = instance.tasks() as f64 * f64::from(instance.inputs()).sqrt();
    seconds >= SECONDS_A_TASK * size
}

/// Returns what the tight program proves in so many seconds about all plans, and a better one if it has any. None where the
/// program is too large, or its solver fails.
pub(crate) fn within(instance: &Instance, options: &Options, seconds: f64, start: &Schedule) -> Option<Solution> {
    let options = Options { limit: Some(Limit::Seconds(seconds)), observer: options.observer.clone(), ..*options };
    let solved = solve(instance, start.objective(), &options, Instant::now(), Ok(start.clone()));
    options.observer.unless_failed(solved)
}

/// Looks for what is better than the start, if there is one.
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

/// Solves the program that `build` makes for a horizon, which is the makespan of the start if there is one. The start is the
/// answer where HiGHS has none.
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

/// The best plan that a short search finds; within no time, the best baseline.
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

    /// Tests that the program finds the optimum by itself: from a bad start, and from none.
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
