//! The exact algorithms as users call them: always an answer where there is one, with what is proven about it.

use super::{Answer, Limits, Timetable};
use crate::baseline;
use crate::error::{Error, Finding};
use crate::instance::Instance;
use crate::plan::{Bound, Objective};
use crate::problem::Problem;
use crate::search;
use crate::solve::{Options, Solution};

/// The search over the whole.
pub(crate) fn exact(problem: &Problem, objective: Objective, options: &Options) -> Result<Solution, Error> {
    run(problem, objective, options, |instance, limits, _| super::solve(instance, limits))
}

/// DiviML's MILP-SPLIT, with the search in the place of the integer program. For a queue nothing is exact: stretches are
/// searched one after the other, then together.
pub(crate) fn milp_split(problem: &Problem, objective: Objective, options: &Options) -> Result<Solution, Error> {
    if objective == Objective::Batch {
        return search::split_queue(problem, options);
    }
    run(problem, objective, options, crate::split::solve)
}

/// Starts from a list scheduler's plan: what is not better is not looked for.
fn run(
    problem: &Problem,
    objective: Objective,
    options: &Options,
    solve: fn(&Instance, &Limits, Option<&Timetable>) -> Answer,
) -> Result<Solution, Error> {
    let instance = Instance::new(problem, objective)?;
    let limits = Limits::new(&instance, options.limit, options.watch.clone());
    let listed = baseline::best(problem, objective);
    let known = listed.as_ref().ok().and_then(|(listed, _)| Timetable::new(listed));
    known.iter().for_each(|known| limits.race.report(known.value));
    let answer = solve(&instance, &limits, known.as_ref());
    if answer.bound.is_infinite() && answer.schedule.is_none() && known.is_none() {
        return Err(Error::Infeasible(vec![no_placement()]));
    }
    let bound = Some(Bound::new(answer.bound, answer.bound_by));
    match answer.schedule.into_iter().chain(known).min_by(|a, b| a.value.total_cmp(&b.value)) {
        Some(found) => Ok(Solution { schedule: found.into_schedule(), bound }),
        None => Ok(Solution { schedule: listed?.0, bound }),
    }
}

pub(crate) fn no_placement() -> Finding {
    let message = "no placement keeps to memory, links, pins and co-location together: every one was looked at; \
                   more memory, another link or fewer pins would help";
    Finding::new("devices", message)
}
