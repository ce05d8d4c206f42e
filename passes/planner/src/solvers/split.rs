//! Networks in modules (DiviML IV-B). Those that are one task wide in places are cut there.
//!
//! Each module between two cuts is solved exactly for every pair of devices at its ends, and a dynamic program puts them
//! together: for one input, that is exact. Memory couples modules, so where it binds the sum of the modules is a bound,
//! and the plan is the one put together if it fits, else that of the search over the whole. Where there is no cut,
//! modules have several channels between them and are solved one after the other, then repaired.

mod around;
mod borders;
mod chain;
#[cfg(test)]
mod channels_test;
mod jobs;
mod module;
mod repair;
mod rolling;
#[cfg(test)]
mod test;

use crate::model::error::Error;
use crate::model::instance::Instance;
use crate::model::options::Options;
use crate::model::plan::{Bound, Objective};
use crate::model::problem::Problem;
use crate::solvers::Solution;
use crate::solvers::cuts::{self, Stretch};
use crate::solvers::exact::{self, Answer, Limits, Timetable};
use borders::Borders;
use jobs::Solved;
use module::Module;

/// What of the effort goes into modules that follow each other over several channels before the search over the whole,
/// and into what that has found afterwards.
const BEFORE: f64 = 0.08;
const AFTER: f64 = 0.06;

/// DiviML's MILP-SPLIT for one input, with the exact search in the place of the integer program.
pub(crate) fn milp_split(problem: &Problem, objective: Objective, options: &Options) -> Result<Solution, Error> {
    exact::solve_from_baseline(problem, objective, options, solve)
}

/// Looks for the schedule that ends first. One that is known already is made better, or given back.
pub fn solve(instance: &Instance, limits: &Limits, known: Option<&Timetable>) -> Answer {
    known.iter().for_each(|known| limits.incumbent.report(known.value));
    let stretches = cuts::stretches(instance);
    let mut answer = if stretches.len() > 1 {
        single_channel(instance, &stretches, limits, known)
    } else {
        channels(instance, limits, known)
    };
    answer.schedule = better(answer.schedule, known.cloned());
    answer
}

fn better(one: Option<Timetable>, other: Option<Timetable>) -> Option<Timetable> {
    one.into_iter().chain(other).min_by(|a, b| a.value.total_cmp(&b.value))
}

/// Modules between cuts, exactly.
fn single_channel(instance: &Instance, stretches: &[Stretch], limits: &Limits, known: Option<&Timetable>) -> Answer {
    let modules: Vec<Module> = stretches.iter().map(|stretch| Module::new(instance, stretch)).collect();
    let solved = Solved::new(&modules, limits);
    let bound = solved.shortest(&solved.tables(|found| found.bound)).map_or(f64::INFINITY, |(sum, _)| sum);
    let put_together = solved
        .shortest(&solved.tables(|found| found.value))
        .map(|(_, path)| assemble(instance, &modules, &solved, &path))
        .filter(|schedule| exact::fits(instance, schedule));
    match put_together {
        Some(schedule) => {
            // Sums of bounds and of schedules are rounded differently. A bound that is above by more is wrong, and stays visible.
            let bound =
                if Bound::new(bound, "split").contradicts(schedule.value) { bound } else { bound.min(schedule.value) };
            Answer { bound, schedule: Some(schedule), bound_by: "split" }
        }
        None => {
            let whole = channels(instance, limits, known);
            if whole.bound > bound { whole } else { Answer { bound, bound_by: "split", ..whole } }
        }
    }
}

/// Modules with several channels between them, one after the other, then what is better at their borders and everywhere;
/// then the search over the whole, which knows how good it has to be, and again what is better in places.
fn channels(instance: &Instance, limits: &Limits, known: Option<&Timetable>) -> Answer {
    let borders = Borders::new(instance);
    let starts: Vec<usize> = borders.modules.iter().skip(1).map(|module| module.start).collect();
    let has_whole = instance.tasks() <= exact::MOST_TASKS;
    let before = limits.share(if has_whole { BEFORE } else { 1.0 });
    let (rolled, spent) = rolling::solve(instance, &borders, &before);
    let start = better(rolled, known.cloned()).map(|start| {
        let extensions = before.extensions.saturating_sub(spent);
        repair::improve(instance, start, &starts, &Limits { extensions, ..before.clone() })
    });
    if let Some(start) = &start {
        limits.incumbent.report(start.value);
        limits.observer.plan(start.value);
    }
    let whole = exact::solve(instance, limits);
    let schedule = better(whole.schedule, start);
    let answer = Answer { schedule, ..whole };
    if answer.is_optimal() || !has_whole {
        return answer;
    }
    // With a deadline, there is time left only where the search has come to its end.
    let after = Limits { extensions: limits.share(AFTER).extensions, ..limits.clone() };
    Answer { schedule: answer.schedule.map(|best| repair::improve(instance, best, &starts, &after)), ..answer }
}

/// The modules' schedules one after the other.
fn assemble(instance: &Instance, modules: &[Module], solved: &Solved<'_>, path: &[usize]) -> Timetable {
    let mut sequence = Vec::with_capacity(instance.tasks());
    for (number, (module, index)) in modules.iter().zip(path).enumerate() {
        let ends = module.ends()[*index];
        let steps: Vec<(usize, usize)> = match solved.get(number, ends) {
            Some((found, names)) => {
                let device = |name: usize| names.iter().position(|other| *other == name).unwrap_or(name);
                found.sequence.iter().flatten().map(|(task, name)| (*task, device(*name))).collect()
            }
            None => ends.entry.into_iter().chain(ends.exit).enumerate().collect(),
        };
        // The cut at the beginning is the end of the module before.
        let own = steps.into_iter().filter(|(task, _)| !(module.entered && *task == 0));
        sequence.extend(own.map(|(task, device)| (module.tasks[task], device)));
    }
    exact::in_sequence(instance, &sequence)
}
