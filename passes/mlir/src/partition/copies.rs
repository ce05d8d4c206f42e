//! Cold starts: location of parameters when an input arrives, and their copies to devices (`divi.copies`).

use crate::{
    cost::ModuleProblem,
    ir::Failure,
    tasks::{Tasks, entry, moves_of},
};
use divi_dialect::{MoveAttribute, Operation, attr};
use divi_planner::{Problem, plan::ParameterCopy, units::Micros};

/// Places all parameters of a module in the host's memory, and removes earlier locations.
pub(super) fn start_cold(module: Operation<'_>) -> Result<(), Failure> {
    module.set(attr::COLD, ());
    Tasks::of(entry(module)?)?.operations.into_iter().for_each(|task| task.remove(attr::RESIDENT));
    Ok(())
}

/// Marks tasks with the device that still has their parameters.
pub(super) fn keep(module_problem: &ModuleProblem<'_>, warm: &Problem) {
    let resident = warm.cold.as_ref().and_then(|cold| cold.resident.as_ref());
    for (&task, node) in module_problem.tasks.iter().zip(module_problem.first_task..) {
        let Some(device) = resident.and_then(|resident| resident[node]) else { continue };
        task.set(attr::RESIDENT, &warm.devices[device].name);
    }
}

/// Writes the copies of parameters onto their tasks, replacing those of an earlier plan.
pub(super) fn write(module_problem: &ModuleProblem<'_>, copies: &[ParameterCopy]) -> Result<(), Failure> {
    let host = module_problem.problem.cold.as_ref().map_or(module_problem.host, |cold| cold.host);
    let name = |device: usize| module_problem.problem.devices[device].name.as_str();
    let mut lists = vec![vec![]; module_problem.tasks.len()];
    for &ParameterCopy { node, to, via, start, end } in copies {
        let Some(task) = node.checked_sub(module_problem.first_task).filter(|task| *task < module_problem.tasks.len())
        else {
            continue;
        };
        let (location, from) = (module_problem.tasks[task].location(), name(via.unwrap_or(host)));
        lists[task].push(MoveAttribute::new(location, 0, [from, name(to)], [start.0, end.0], &[]).ok_or(Failure)?);
    }
    for (&task, list) in module_problem.tasks.iter().zip(lists) {
        if list.is_empty() {
            task.remove(attr::COPIES);
        } else {
            task.set(attr::COPIES, &list);
        }
    }
    Ok(())
}

/// Reads the copies from the tasks, in order of start.
pub(super) fn read(module_problem: &ModuleProblem<'_>) -> Vec<ParameterCopy> {
    let Some(cold) = &module_problem.problem.cold else { return vec![] };
    let mut copies = vec![];
    for (&task, node) in module_problem.tasks.iter().zip(module_problem.first_task..) {
        copies.extend(moves_of(task, attr::COPIES).into_iter().filter_map(|copy| {
            let (from, to) = (module_problem.device(copy.from())?, module_problem.device(copy.to())?);
            let via = (from != cold.host).then_some(from);
            Some(ParameterCopy { node, to, via, start: Micros(copy.start()), end: Micros(copy.end()) })
        }));
    }
    copies.sort_by(|a: &ParameterCopy, b| a.start.total_cmp(&b.start).then((a.node, a.to).cmp(&(b.node, b.to))));
    copies
}
