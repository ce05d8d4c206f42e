//! Cold starts: where parameters are when an input comes, and when they go to where they are needed (`divi.copies`).

use crate::{
    cost::Posed,
    ir::{Failure, array, set_attribute, symbol_reference},
    tasks::{Tasks, entry, moves_of},
};
use divi_dialect::MoveAttribute;
use divi_planner::{Problem, plan::Copy};
use melior::{
    Context, ContextRef, StringRef,
    ir::{AttributeLike, Location},
};
use mlir_sys::*;

/// All parameters of a module are in the host's memory, whatever was said before.
pub(super) fn start_cold(module: MlirOperation) -> Result<(), Failure> {
    // SAFETY: the context of a live operation is alive.
    set_attribute(module, "divi.cold", unsafe { mlirUnitAttrGet(mlirOperationGetContext(module)) });
    Tasks::of(entry(module)?)?.operations.into_iter().for_each(|task| remove(task, "divi.resident"));
    Ok(())
}

/// Says on tasks which device still has their parameters.
pub(super) fn keep(posed: &Posed, warm: &Problem) {
    let resident = warm.cold.as_ref().and_then(|cold| cold.resident.as_ref());
    for (&task, node) in posed.tasks.iter().zip(posed.first_task..) {
        let Some(device) = resident.and_then(|resident| resident[node]) else { continue };
        // SAFETY: the context of a live operation is alive, and outlives the pass.
        let context = unsafe { ContextRef::from_raw(mlirOperationGetContext(task)) };
        // SAFETY: see above.
        let symbol = symbol_reference(unsafe { context.to_ref() }, &warm.devices[device].name);
        set_attribute(task, "divi.resident", symbol);
    }
}

fn remove(task: MlirOperation, name: &str) {
    // SAFETY: the operation is alive.
    unsafe { mlirOperationRemoveAttributeByName(task, StringRef::new(name).to_raw()) };
}

/// Says on tasks when their parameters move, instead of what an earlier plan said.
pub(super) fn write(context: &Context, posed: &Posed, copies: &[Copy]) -> Result<(), Failure> {
    let host = posed.problem.cold.as_ref().map_or(posed.host, |cold| cold.host);
    let name = |device: usize| posed.problem.devices[device].name.as_str();
    let mut lists = vec![vec![]; posed.tasks.len()];
    for &Copy { node, to, via, start, end } in copies {
        let Some(task) = node.checked_sub(posed.first_task).filter(|task| *task < posed.tasks.len()) else { continue };
        // SAFETY: the operation is alive.
        let location = unsafe { Location::from_raw(mlirOperationGetLocation(posed.tasks[task])) };
        let from = name(via.unwrap_or(host));
        let copy = MoveAttribute::new(location, 0, from, name(to), start, end).ok_or(Failure)?;
        lists[task].push(copy.as_attribute().to_raw());
    }
    for (&task, list) in posed.tasks.iter().zip(lists) {
        if list.is_empty() {
            remove(task, "divi.copies");
            continue;
        }
        set_attribute(task, "divi.copies", array(context, &list));
    }
    Ok(())
}

/// The copies that tasks say, by start.
pub(super) fn read(posed: &Posed) -> Vec<Copy> {
    let Some(cold) = &posed.problem.cold else { return vec![] };
    let mut copies = vec![];
    for (&task, node) in posed.tasks.iter().zip(posed.first_task..) {
        copies.extend(moves_of(task, "divi.copies").into_iter().filter_map(|copy| {
            let (from, to) = (posed.device(copy.from())?, posed.device(copy.to())?);
            let via = (from != cold.host).then_some(from);
            Some(Copy { node, to, via, start: copy.start(), end: copy.end() })
        }));
    }
    copies.sort_by(|a: &Copy, b| a.start.total_cmp(&b.start).then((a.node, a.to).cmp(&(b.node, b.to))));
    copies
}
