//! The exact search as an algorithm: returns a plan whenever any method finds one, with a proven bound.

use super::{Answer, Limits, Timetable};
use crate::model::error::{Error, Finding};
use crate::model::instance::Instance;
use crate::model::options::Options;
use crate::model::plan::{Bound, Objective};
use crate::model::problem::Problem;
use crate::solvers::Solution;
use crate::solvers::baseline;

/// Exact search over the whole instance.
pub(crate) fn exact(problem: &Problem, objective: Objective, options: &Options) -> Result<Solution, Error> {
    solve_from_baseline(problem, objective, options, |instance, limits, _| super::solve(instance, limits))
}

/// Runs a search whose initial cutoff is a list schedule's makespan.
pub(crate) fn solve_from_baseline(
    problem: &Problem,
    objective: Objective,
    options: &Options,
    solve: fn(&Instance, &Limits, Option<&Timetable>) -> Answer,
) -> Result<Solution, Error> {
    let instance = Instance::new(problem, objective)?;
    let limits = Limits::new(&instance, options.limit, options.observer.clone());
    let listed = baseline::best(problem, objective);
    let initial = listed.as_ref().ok().and_then(|(listed, _)| Timetable::new(listed));
    initial.iter().for_each(|initial| limits.incumbent.report(initial.value));
    let answer = solve(&instance, &limits, initial.as_ref());
    if answer.bound.is_infinite() && answer.schedule.is_none() && initial.is_none() {
        return Err(Error::Infeasible(vec![no_placement()]));
    }
    let bound = Some(Bound::new(answer.bound, answer.bound_by));
    match answer.schedule.into_iter().chain(initial).min_by(|a, b| a.value.total_cmp(&b.value)) {
        Some(found) => Ok(Solution { schedule: found.into_schedule(), bound }),
        None => Ok(Solution { schedule: listed?.0, bound }),
    }
}

pub(crate) fn no_placement() -> Finding {
    let message = "no placement keeps to memory, links, pins and co-location together: the search was exhaustive; \
                   more memory, another link or fewer pins would help";
    Finding::new("devices", message)
}
