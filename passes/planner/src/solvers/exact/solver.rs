//! The exact search as an algorithm: always an answer where there is one, with what is proven about it.

use super::{Answer, Limits, Timetable};
use crate::model::error::{Error, Finding};
use crate::model::instance::Instance;
use crate::model::options::Options;
use crate::model::plan::{Bound, Objective};
use crate::model::problem::Problem;
use crate::solvers::Solution;
use crate::solvers::baseline;

/// The search over the whole.
pub(crate) fn exact(problem: &Problem, objective: Objective, options: &Options) -> Result<Solution, Error> {
    solve_from_baseline(problem, objective, options, |instance, limits, _| super::solve(instance, limits))
}

/// Starts from a list scheduler's plan: what is not better is not looked for.
pub(crate) fn solve_from_baseline(
    problem: &Problem,
    objective: Objective,
    options: &Options,
    solve: fn(&Instance, &Limits, Option<&Timetable>) -> Answer,
) -> Result<Solution, Error> {
    let instance = Instance::new(problem, objective)?;
    let limits = Limits::new(&instance, options.limit, options.observer.clone());
    let listed = baseline::best(problem, objective);
    let known = listed.as_ref().ok().and_then(|(listed, _)| Timetable::new(listed));
    known.iter().for_each(|known| limits.incumbent.report(known.value));
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
