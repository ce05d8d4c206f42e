//! Cold starts: parameters come before the task that needs them, from the host or from a device that has got them from there; or
//! they stay in the host's memory and are read from there.

use super::{
    Findings,
    buses::{Buses, too_short},
    exceeds,
    machine::Machine,
    memory::Life,
    micros,
    task::{Copy, Task},
};
use crate::ir::describe;
use divi_planner::units::Micros;

/// A task where and when it runs.
pub(super) struct Placed<'a, 'm> {
    pub(super) task: &'a Task<'m>,
    pub(super) device: usize,
    pub(super) start: Micros,
    pub(super) end: Micros,
}

/// Checks every copy of a task's parameters, and takes the buses that these need. What a device only hands on lies in its memory
/// for a while.
pub(super) fn check<'m>(
    placed: &Placed<'_, 'm>,
    machine: &Machine,
    buses: &mut Buses<'_, 'm>,
    lives: &mut Vec<Life>,
    findings: &mut Findings,
) {
    let Placed { task, device, start, end } = *placed;
    let name = describe(task.operation);
    if !machine.is_cold {
        if !task.copies.is_empty() {
            let message = format!("{name} has divi.copies, but the module has no divi.cold: take them away");
            findings.add(task.operation, &message);
        }
        return;
    }
    for copy in &task.copies {
        // The dialect's own verifier has seen that they are there.
        let (Some(from), Some(to)) = (machine.find(&copy.from), machine.find(&copy.to)) else { continue };
        let what = format!("the copy of {name}'s parameters from {} to {}", machine.label(from), machine.label(to));
        if let Some(wrong) = fault(task, copy, (from, to), device, machine) {
            findings.add(task.operation, &format!("{what} {wrong}"));
        }
        if to == device && exceeds(copy.end, start) {
            let message = format!(
                "{name} starts at {} on {}, but its parameters are there at {}: start it {} later",
                micros(start),
                machine.label(device),
                micros(copy.end),
                micros(copy.end - start)
            );
            findings.add(task.operation, &message);
        }
        let first = task.copies.iter().find(|first| first.to == copy.from && !task.is_there(machine, from));
        lives.extend(first.map(|first| Life { device: from, bytes: task.weight, from: first.start, until: copy.end }));
        buses.take((from, to), task.weight, (copy.start, copy.end), task.operation, what);
    }
    if task.reads_directly(machine, device) {
        let what = format!("{name}, which reads its parameters there,");
        buses.read((machine.host, device), task.weight, (start, end), task.operation, what);
    }
}

/// What is wrong with a copy.
fn fault(task: &Task<'_>, copy: &Copy, (from, to): (usize, usize), device: usize, machine: &Machine) -> Option<String> {
    if task.is_there(machine, to) {
        return Some("brings what is there: take it away".to_owned());
    }
    if to != device && task.copies.iter().all(|next| next.from != copy.to) {
        return Some("is for nobody: take it away".to_owned());
    }
    if !task.is_there(machine, from) {
        let first = task.copies.iter().find(|first| first.to == copy.from);
        let first = first.filter(|first| first.from == machine.devices[machine.host].name);
        let Some(first) = first else {
            return Some(format!(
                "begins where the host does not copy them to: copy them to {} first",
                machine.label(from)
            ));
        };
        if exceeds(first.end, copy.start) {
            return Some(format!(
                "starts at {}, but they are there at {}: start it {} later",
                micros(copy.start),
                micros(first.end),
                micros(first.end - copy.start)
            ));
        }
    }
    let Some(takes) = machine.transfer(from, to, task.weight) else {
        return Some("has no link to go by: copy them another way".to_owned());
    };
    too_short((copy.start, copy.end), takes).map(|problem| format!("goes {problem}"))
}
