//! Decomposition into modules (DiviML IV-B) at single-task cuts, or at narrow places of the order.
//!
//! Each module between two cuts is solved exactly for every pair of devices at its ends, and a dynamic program combines
//! them: for one input, that is exact. Memory couples modules, so if it binds, the sum of the modules is a bound, and
//! the plan is the combined one if it fits, else that of the search over the whole. Without cuts, modules have several
//! channels between them and are solved one after the other, then repaired.

mod chain;
#[cfg(test)]
mod channels_test;
mod jobs;
mod module;
mod partition;
mod repair;
mod rolling;
mod surroundings;
#[cfg(test)]
mod test;

use crate::model::error::Error;
use crate::model::instance::Instance;
use crate::model::options::Options;
use crate::model::plan::{Bound, Objective};
use crate::model::problem::Problem;
use crate::model::units::Micros;
use crate::solvers::Solution;
use crate::solvers::cuts::{self, Segment};
use crate::solvers::exact::{self, Answer, Limits, Timetable};
use jobs::Solved;
use module::Module;
use partition::Partition;

/// Shares of the effort for modules with several channels before the search over the whole, and for repairs afterwards.
const BEFORE: f64 = 0.08;
const AFTER: f64 = 0.06;

/// DiviML's MILP-SPLIT for one input, with the exact search instead of the integer program.
pub(crate) fn milp_split(problem: &Problem, objective: Objective, options: &Options) -> Result<Solution, Error> {
    exact::solve_from_baseline(problem, objective, options, solve)
}

/// Minimizes the makespan. Returns `known` if nothing better is found.
pub fn solve(instance: &Instance, limits: &Limits, known: Option<&Timetable>) -> Answer {
    known.iter().for_each(|known| limits.incumbent.report(known.value));
    let segments = cuts::segments(instance);
    let mut answer = if segments.len() > 1 {
        single_channel(instance, &segments, limits, known)
    } else {
        channels(instance, limits, known)
    };
    answer.schedule = better(answer.schedule, known.cloned());
    answer
}

fn better(one: Option<Timetable>, other: Option<Timetable>) -> Option<Timetable> {
    one.into_iter().chain(other).min_by(|a, b| a.value.total_cmp(&b.value))
}

/// Solves modules between single-task cuts exactly.
fn single_channel(instance: &Instance, segments: &[Segment], limits: &Limits, known: Option<&Timetable>) -> Answer {
    let modules: Vec<Module> = segments.iter().map(|segment| Module::new(instance, segment)).collect();
    let solved = Solved::new(&modules, limits);
    let bound = solved.shortest(&solved.tables(|found| found.bound)).map_or(Micros::INFINITY, |(sum, _)| sum);
    let combined = solved
        .shortest(&solved.tables(|found| found.value))
        .map(|(_, path)| assemble(instance, &modules, &solved, &path))
        .filter(|schedule| exact::fits(instance, schedule));
    match combined {
        Some(schedule) => {
            // Sums of bounds and of schedules are rounded differently. A bound that is above by more is wrong, and
            // stays visible.
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

/// Solves modules with several channels between them one after the other, then repairs windows at their boundaries and
/// everywhere; then searches the whole with that cutoff, and repairs again.
fn channels(instance: &Instance, limits: &Limits, known: Option<&Timetable>) -> Answer {
    let partition = Partition::new(instance);
    let starts: Vec<usize> = partition.modules.iter().skip(1).map(|module| module.start).collect();
    let has_whole = instance.tasks() <= exact::MOST_TASKS;
    let before = limits.share(if has_whole { BEFORE } else { 1.0 });
    let (rolled, spent) = rolling::solve(instance, &partition, &before);
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
    // With a deadline, time is left only if the search has terminated.
    let after = Limits { extensions: limits.share(AFTER).extensions, ..limits.clone() };
    Answer { schedule: answer.schedule.map(|best| repair::improve(instance, best, &starts, &after)), ..answer }
}

/// Concatenates the modules' schedules.
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
        // The cut at the beginning belongs to the previous module.
        let own = steps.into_iter().filter(|(task, _)| !(module.entered && *task == 0));
        sequence.extend(own.map(|(task, device)| (module.tasks[task], device)));
    }
    exact::in_sequence(instance, &sequence)
}
