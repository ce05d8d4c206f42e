//! Search among schedules: simulated annealing and large neighbourhoods; for one input and for a queue.
//!
//! Each starts from the baselines and gives back nothing worse. Effort is counted in trial schedules and shared by a fixed
//! number of chains that know nothing of each other, so that the result is the same on any number of cores.

mod anneal;
pub mod batch;
pub mod latency;
pub mod memory;
pub mod method;
pub mod model;
pub mod schedule;

use crate::model::error::Error;
use crate::model::instance::Instance;
use crate::model::options::Options;
use crate::model::plan::{Objective, Schedule};
use crate::model::problem::Problem;
use crate::solvers::Solution;
use crate::solvers::baseline;
use crate::solvers::cuts::{Stretch, stretches};
use crate::solvers::exact::Timetable;

use crate::solvers::chains::Allowance;
use method::Method;

/// Trial schedules that annealing makes when nothing else is said: about two seconds on two cores.
const ANNEAL_TRIALS: u64 = 8_000_000;
/// The same for queues, where a trial is a task put to where it is best.
const QUEUE_TRIALS: u64 = 500_000;

/// Simulated annealing on devices and order.
pub(crate) fn anneal(problem: &Problem, objective: Objective, options: &Options) -> Result<Solution, Error> {
    improve(problem, objective, options, Method::Anneal)
}

/// Large neighbourhoods: a few neighbouring tasks are taken out of the schedule and put back where it is best.
pub(crate) fn neighbourhoods(problem: &Problem, objective: Objective, options: &Options) -> Result<Solution, Error> {
    improve(problem, objective, options, Method::Neighbourhoods)
}

/// The same from a schedule of one input that is known. None where nothing better was found.
pub(crate) fn neighbourhoods_from(instance: &Instance, start: &Timetable, allowance: &Allowance) -> Option<Timetable> {
    let found = improve_from(instance, &start.clone().into_schedule(), allowance, Method::Neighbourhoods)?;
    Timetable::new(&found).filter(|found| found.value < start.value)
}

/// Effort of large neighbourhoods as part of a portfolio.
pub(crate) fn neighbourhoods_allowance(options: &Options) -> Allowance {
    Allowance::new(&options.named("lns"), ANNEAL_TRIALS)
}

fn improve(problem: &Problem, objective: Objective, options: &Options, method: Method) -> Result<Solution, Error> {
    let instance = Instance::new(problem, objective)?;
    let (start, _) = baseline::best(problem, objective)?;
    let allowance = Allowance::new(options, if objective == Objective::Batch { QUEUE_TRIALS } else { ANNEAL_TRIALS });
    let found = improve_from(&instance, &start, &allowance, method);
    Ok(better(start, found))
}

/// Improves a schedule. None where it cannot be searched.
fn improve_from(instance: &Instance, start: &Schedule, allowance: &Allowance, method: Method) -> Option<Schedule> {
    match start {
        Schedule::Latency { device, start, .. } => {
            let (model, choice) = (latency::Model::new(instance)?, latency::Model::choice(instance, device, start));
            anneal::improve(instance, &model, &choice, allowance, method)
        }
        Schedule::Batch { batches, .. } => {
            let model = batch::Model::new(instance)?;
            anneal::improve(instance, &model, &model.choice(instance, batches)?, allowance, method)
        }
        Schedule::Pipeline { .. } | Schedule::Edge { .. } => None,
    }
}

/// Searches a queue stretch by stretch between cuts of the network, then the whole.
pub(crate) fn split_queue(problem: &Problem, _: Objective, options: &Options) -> Result<Solution, Error> {
    let instance = Instance::new(problem, Objective::Batch)?;
    let (start, _) = baseline::best(problem, Objective::Batch)?;
    Ok(split_queue_from(&instance, start, options))
}

/// The same from a schedule that is known.
pub(crate) fn split_queue_from(instance: &Instance, start: Schedule, options: &Options) -> Solution {
    // The cut that a stretch begins with is the end of the one before.
    let own = |stretch: &Stretch| stretch.places.start + usize::from(stretch.entered)..stretch.places.end;
    let tasks = |stretch: &Stretch| instance.order()[own(stretch)].to_vec();
    let stretches: Vec<Vec<usize>> = stretches(instance).iter().map(tasks).collect();
    let Schedule::Batch { batches, .. } = &start else { return Solution { schedule: start, bound: None } };
    let found = batch::split(instance, batches, &stretches, &Allowance::new(options, QUEUE_TRIALS));
    better(start, found)
}

fn better(start: Schedule, found: Option<Schedule>) -> Solution {
    let schedule = found.filter(|found| found.value() < start.value()).unwrap_or(start);
    Solution { schedule, bound: None }
}
