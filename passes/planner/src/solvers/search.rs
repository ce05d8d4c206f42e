//! Local search over schedules: simulated annealing and large neighborhood search (LNS); for one input and for a queue.
//!
//! Each starts from the baselines and never returns a worse schedule. Effort is counted in trial schedules and shared
//! by a fixed number of independent chains, so that the result does not depend on the number of cores.

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
use crate::solvers::cuts::{Segment, segments};
use crate::solvers::exact::Timetable;

use crate::solvers::chains::Allowance;
use method::Method;

/// Default number of trial schedules: about two seconds on two cores.
const ANNEAL_TRIALS: u64 = 8_000_000;
/// The same for queues, where a trial is the best placement of one task.
const QUEUE_TRIALS: u64 = 500_000;

/// Simulated annealing over devices and order.
pub(crate) fn anneal(problem: &Problem, objective: Objective, options: &Options) -> Result<Solution, Error> {
    improve(problem, objective, options, Method::Anneal)
}

/// Large neighborhood search: removes a few adjacent tasks from the schedule and reinserts them optimally.
pub(crate) fn neighbourhoods(problem: &Problem, objective: Objective, options: &Options) -> Result<Solution, Error> {
    improve(problem, objective, options, Method::Neighbourhoods)
}

/// LNS from a given schedule of one input. `None` if nothing better is found.
pub(crate) fn neighbourhoods_from(instance: &Instance, start: &Timetable, allowance: &Allowance) -> Option<Timetable> {
    let found = improve_from(instance, &start.clone().into_schedule(), allowance, Method::Neighbourhoods)?;
    Timetable::new(&found).filter(|found| found.value < start.value)
}

/// Returns the budget of LNS as part of a portfolio.
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

/// Improves a schedule; `None` if it cannot be searched.
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
        Schedule::Pipeline { .. } | Schedule::BatchedPipeline { .. } | Schedule::Edge { .. } => None,
    }
}

/// Searches a queue segment by segment between cuts of the network, then as a whole.
pub(crate) fn split_queue(problem: &Problem, _: Objective, options: &Options) -> Result<Solution, Error> {
    let instance = Instance::new(problem, Objective::Batch)?;
    let (start, _) = baseline::best(problem, Objective::Batch)?;
    Ok(split_queue_from(&instance, start, options))
}

/// The same from a given schedule.
pub(crate) fn split_queue_from(instance: &Instance, start: Schedule, options: &Options) -> Solution {
    // The cut that a segment begins with belongs to the previous one.
    let own = |segment: &Segment| segment.places.start + usize::from(segment.entered)..segment.places.end;
    let tasks = |segment: &Segment| instance.order()[own(segment)].to_vec();
    let segments: Vec<Vec<usize>> = segments(instance).iter().map(tasks).collect();
    let Schedule::Batch { batches, .. } = &start else { return Solution { schedule: start, bound: None } };
    let found = batch::split(instance, batches, &segments, &Allowance::new(options, QUEUE_TRIALS));
    better(start, found)
}

fn better(start: Schedule, found: Option<Schedule>) -> Solution {
    let schedule = found.filter(|found| found.value() < start.value()).unwrap_or(start);
    Solution { schedule, bound: None }
}
