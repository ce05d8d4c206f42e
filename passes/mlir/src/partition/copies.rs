//! Cold starts: where parameters are when an input comes, and when they go to where they are needed (`divi.copies`).

use crate::{
    cost::Posed,
    ir::Failure,
    tasks::{Tasks, entry, moves_of},
};
use divi_dialect::{MoveAttribute, Operation, attr};
use divi_planner::{Problem, plan::Copy};

/// All parameters of a module are in the host's memory, whatever was said before.
pub(super) fn start_cold(module: Operation<'_>) -> Result<(), Failure> {
    module.set(attr::COLD, ());
    Tasks::of(entry(module)?)?.operations.into_iter().for_each(|task| task.remove(attr::RESIDENT));
    Ok(())
}

/// Says on tasks which device still has their parameters.
pub(super) fn keep(posed: &Posed<'_>, warm: &Problem) {
    let resident = warm.cold.as_ref().and_then(|cold| cold.resident.as_ref());
    for (&task, node) in posed.tasks.iter().zip(posed.first_task..) {
        let Some(device) = resident.and_then(|resident| resident[node]) else { continue };
        task.set(attr::RESIDENT, &warm.devices[device].name);
    }
}

/// Says on tasks when their parameters move, instead of what an earlier plan said.
pub(super) fn write(posed: &Posed<'_>, copies: &[Copy]) -> Result<(), Failure> {
    let host = posed.problem.cold.as_ref().map_or(posed.host, |cold| cold.host);
    let name = |device: usize| posed.problem.devices[device].name.as_str();
    let mut lists = vec![vec![]; posed.tasks.len()];
    for &Copy { node, to, via, start, end } in copies {
        let Some(task) = node.checked_sub(posed.first_task).filter(|task| *task < posed.tasks.len()) else { continue };
        let (location, from) = (posed.tasks[task].location(), name(via.unwrap_or(host)));
        lists[task].push(MoveAttribute::new(location, 0, from, name(to), start, end).ok_or(Failure)?);
    }
    for (&task, list) in posed.tasks.iter().zip(lists) {
        if list.is_empty() {
            task.remove(attr::COPIES);
        } else {
            task.set(attr::COPIES, &list);
        }
    }
    Ok(())
}

/// The copies that tasks say, by start.
pub(super) fn read(posed: &Posed<'_>) -> Vec<Copy> {
    let Some(cold) = &posed.problem.cold else { return vec![] };
    let mut copies = vec![];
    for (&task, node) in posed.tasks.iter().zip(posed.first_task..) {
        copies.extend(moves_of(task, attr::COPIES).into_iter().filter_map(|copy| {
            let (from, to) = (posed.device(copy.from())?, posed.device(copy.to())?);
            let via = (from != cold.host).then_some(from);
            Some(Copy { node, to, via, start: copy.start(), end: copy.end() })
        }));
    }
    copies.sort_by(|a: &Copy, b| a.start.total_cmp(&b.start).then((a.node, a.to).cmp(&(b.node, b.to))));
    copies
}
