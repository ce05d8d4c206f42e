//! The exact algorithms as users call them: always an answer where there is one, with what is proven about it.

use super::{Answer, Limits};
use crate::baseline;
use crate::error::{Error, Finding};
use crate::instance::Instance;
use crate::plan::{Bound, Objective, Schedule};
use crate::problem::Problem;
use crate::solve::{Options, Solution};

/// The search over the whole.
pub(crate) fn exact(problem: &Problem, objective: Objective, options: &Options) -> Result<Solution, Error> {
    run(problem, objective, options, super::solve)
}

/// DiviML's MILP-SPLIT, with the search in the place of the integer program.
pub(crate) fn milp_split(problem: &Problem, objective: Objective, options: &Options) -> Result<Solution, Error> {
    run(problem, objective, options, crate::split::solve)
}

fn run(
    problem: &Problem,
    objective: Objective,
    options: &Options,
    solve: fn(&Instance, &Limits) -> Answer,
) -> Result<Solution, Error> {
    let instance = Instance::new(problem, objective)?;
    let answer = solve(&instance, &Limits::new(&instance, options.limit, options.watch.clone()));
    if answer.bound.is_infinite() {
        return Err(Error::Infeasible(vec![no_placement()]));
    }
    let optimal = answer.is_optimal();
    let bound = Some(Bound::new(answer.bound, answer.bound_by));
    let found = answer.schedule.map(|found| Schedule::Latency {
        device: found.device,
        start: found.start,
        makespan: found.value,
    });
    if let (Some(schedule), true) = (&found, optimal) {
        return Ok(Solution { schedule: schedule.clone(), bound });
    }
    // Under tight limits a list scheduler may be ahead of the search.
    match (found, baseline::heft(problem, objective, options)) {
        (Some(found), Ok(listed)) if listed.schedule.value() < found.value() => {
            Ok(Solution { schedule: listed.schedule, bound })
        }
        (Some(schedule), _) => Ok(Solution { schedule, bound }),
        (None, listed) => Ok(Solution { schedule: listed?.schedule, bound }),
    }
}

fn no_placement() -> Finding {
    let message = "no placement keeps to memory, links, pins and co-location together: every one was looked at; \
                   more memory, another link or fewer pins would help";
    Finding::new("devices", message)
}
