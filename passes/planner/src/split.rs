//! Networks that are one task wide in places, cut there (DiviML IV-B, single channel).
//!
//! Each module between two cuts is solved exactly for every pair of devices at its ends, and a dynamic program puts them
//! together: for one input, that is exact. Memory couples modules, so where it binds the sum of the modules is a bound,
//! and the plan is the one put together if it fits, else that of the search over the whole. Where there is no cut, there
//! is one module.

mod chain;
mod cuts;
mod jobs;
mod module;
#[cfg(test)]
mod test;

use crate::exact::graph::{Footprint, Graph};
use crate::exact::{self, Answer, Limits, Timetable};
use crate::instance::Instance;
use jobs::Solved;
use module::Module;

/// Looks for the schedule that ends first.
pub fn solve(instance: &Instance, limits: &Limits) -> Answer {
    let stretches = cuts::stretches(instance);
    if stretches.len() == 1 {
        return exact::solve(instance, limits);
    }
    let modules: Vec<Module> = stretches.iter().map(|stretch| Module::new(instance, stretch)).collect();
    let solved = Solved::new(&modules, limits);
    let bound = solved.shortest(&solved.tables(|found| found.bound)).map_or(f64::INFINITY, |(sum, _)| sum);
    let put_together = solved
        .shortest(&solved.tables(|found| found.value))
        .map(|(_, path)| assemble(instance, &modules, &solved, &path))
        .filter(|schedule| exact::fits(instance, schedule));
    match put_together {
        Some(schedule) => {
            // Sums of bounds and of schedules are rounded differently.
            Answer { bound: bound.min(schedule.value), schedule: Some(schedule), bound_by: "split" }
        }
        None => {
            let whole = exact::solve(instance, limits);
            if whole.bound > bound { whole } else { Answer { bound, bound_by: "split", ..whole } }
        }
    }
}

/// The modules' schedules one after the other.
fn assemble(instance: &Instance, modules: &[Module], solved: &Solved<'_>, path: &[usize]) -> Timetable {
    let graph = Graph::new(instance, instance.order(), Footprint::Least);
    let mut place_of = vec![0; instance.tasks()];
    for (place, &task) in instance.order().iter().enumerate() {
        place_of[task] = place;
    }
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
        sequence.extend(own.map(|(task, device)| (place_of[module.tasks[task]], device)));
    }
    exact::schedule(instance, &graph, &sequence)
}
