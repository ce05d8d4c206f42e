//! Checks cold starts: parameters are copied before the task that needs them starts, from the host or from a device
//! that has received them; or the task reads them from the host's memory.

use super::{
    Findings,
    buses::{Buses, too_short},
    exceeds,
    machine::Machine,
    memory::LiveRange,
    micros,
    task::{Copy, Task},
};
use crate::ir::describe;
use divi_planner::units::Micros;

/// Device and time of a task.
pub(super) struct Placed<'a, 'm> {
    pub(super) task: &'a Task<'m>,
    pub(super) device: usize,
    pub(super) start: Micros,
    pub(super) end: Micros,
}

/// Checks every copy of a task's parameters, and adds it to its bus. Parameters that a device only forwards are in its
/// memory for a while.
pub(super) fn check<'m>(
    placed: &Placed<'_, 'm>,
    machine: &Machine,
    buses: &mut Buses<'_, 'm>,
    live_ranges: &mut Vec<LiveRange>,
    findings: &mut Findings,
) {
    let Placed { task, device, start, end } = *placed;
    let name = describe(task.operation);
    if !machine.is_cold {
        if !task.copies.is_empty() {
            let message = format!("{name} has divi.copies, but the module has no divi.cold: remove them");
            findings.add(task.operation, &message);
        }
        return;
    }
    for copy in &task.copies {
        // The dialect's verifier has checked that they are declared.
        let (Some(from), Some(to)) = (machine.find(&copy.from), machine.find(&copy.to)) else { continue };
        let what = format!("the copy of {name}'s parameters from {} to {}", machine.label(from), machine.label(to));
        if let Some(wrong) = fault(task, copy, (from, to), device, machine) {
            findings.add(task.operation, &format!("{what} {wrong}"));
        }
        if to == device && exceeds(copy.end, start) {
            let message = format!(
                "{name} starts at {} on {}, but its parameters arrive at {}: start it {} later",
                micros(start),
                machine.label(device),
                micros(copy.end),
                micros(copy.end - start)
            );
            findings.add(task.operation, &message);
        }
        let first = task.copies.iter().find(|first| first.to == copy.from && !task.is_there(machine, from));
        live_ranges.extend(first.map(|first| LiveRange {
            device: from,
            bytes: task.weight,
            from: first.start,
            until: copy.end,
        }));
        buses.take((from, to), task.weight, (copy.start, copy.end), task.operation, what);
    }
    if task.reads_directly(machine, device) {
        let what = format!("{name}, which reads its parameters there,");
        buses.read((machine.host, device), task.weight, (start, end), task.operation, what);
    }
}

/// Returns the error of a copy, if there is one.
fn fault(task: &Task<'_>, copy: &Copy, (from, to): (usize, usize), device: usize, machine: &Machine) -> Option<String> {
    if task.is_there(machine, to) {
        return Some("is redundant, as they are already there: remove it".to_owned());
    }
    if to != device && task.copies.iter().all(|next| next.from != copy.to) {
        return Some("is not used: remove it".to_owned());
    }
    if !task.is_there(machine, from) {
        let first = task.copies.iter().find(|first| first.to == copy.from);
        let first = first.filter(|first| first.from == machine.devices[machine.host].name);
        let Some(first) = first else {
            return Some(format!(
                "starts on a device that does not have them: copy them to {} first",
                machine.label(from)
            ));
        };
        if exceeds(first.end, copy.start) {
            return Some(format!(
                "starts at {}, but they arrive at {}: start it {} later",
                micros(copy.start),
                micros(first.end),
                micros(first.end - copy.start)
            ));
        }
    }
    let Some(takes) = machine.transfer(from, to, task.weight) else {
        return Some("has no link: copy them on another path".to_owned());
    };
    too_short((copy.start, copy.end), takes).map(|problem| format!("goes {problem}"))
}
