//! Transfers between devices.

use std::collections::{BTreeMap, BTreeSet};

use divi_planner::Error;
use divi_planner::plan::{LaunchRule, Plan};
use divi_planner::problem::Problem;
use divi_planner::units::Micros;

use super::launches::ByInput;
use super::{Launch, Transfer, moving, no_link, wrong};

/// Returns the transfers: one from each launch of the producer to each device that consumes the tensor, for the inputs
/// consumed there. A transfer starts when the launch ends, unless the plan states its times.
pub(super) fn of(problem: &Problem, plan: &Plan, launches: &[Launch]) -> Result<Vec<Transfer>, Error> {
    let mut of_task: Vec<Vec<usize>> = vec![Vec::new(); problem.nodes.len()];
    launches.iter().enumerate().for_each(|(index, launch)| of_task[launch.task].push(index));
    let by_input = ByInput::new(problem, launches);
    // By tensor, sender, receiver and first input, which is zero for a transfer of the only launch on its sender.
    let mut stated: BTreeMap<(usize, usize, usize, u32), (Micros, Micros)> = BTreeMap::new();
    for moved in &plan.transfers {
        let first = moved.inputs.as_ref().and_then(|inputs| inputs.iter().min()).copied().unwrap_or(0);
        stated.insert((moved.tensor, moved.from, moved.to, first), (moved.start, moved.end));
    }
    let is_of_launches = plan.launches == LaunchRule::Many;
    let mut transfers = Vec::new();
    for (index, tensor) in problem.all_tensors().iter().enumerate() {
        for &launch in &of_task[tensor.from] {
            let producer = &launches[launch];
            // For each destination, the inputs of the producer that are consumed there.
            let mut read: BTreeMap<usize, BTreeSet<u32>> = BTreeMap::new();
            for (input, reader) in tensor.to.iter().flat_map(|to| by_input.of(*to, &producer.inputs)) {
                if reader.device != producer.device {
                    read.entry(reader.device).or_default().insert(input);
                }
            }
            for (to, inputs) in read {
                let inputs: Vec<u32> = inputs.into_iter().collect();
                let from = producer.device;
                let bytes = tensor.bytes * inputs.len() as f64;
                let first = if is_of_launches { inputs[0] } else { 0 };
                let (start, end) = match stated.get(&(index, from, to, first)) {
                    Some(&(start, end))
                        if start.is_finite() && end.is_finite() && Micros::ZERO <= start && start <= end =>
                    {
                        (start, end)
                    }
                    Some((start, end)) => {
                        return Err(wrong(
                            "transfers",
                            format!("invalid transfer of tensor {index}: {start} to {end} µs"),
                        ));
                    }
                    None => {
                        let takes = moving(problem, from, to, bytes);
                        let takes = takes.ok_or_else(|| no_link(problem, tensor.from, from, to))?;
                        (producer.end, producer.end + takes)
                    }
                };
                let task = tensor.from;
                let (tensor, launch, link, row) = (Some(index), Some(launch), None, 0);
                transfers.push(Transfer { tensor, task, launch, from, to, link, row, inputs, bytes, start, end });
            }
        }
    }
    copies(problem, plan, &mut transfers)?;
    sort(&mut transfers);
    Ok(transfers)
}

/// Adds the copies of weights during the plan.
fn copies(problem: &Problem, plan: &Plan, transfers: &mut Vec<Transfer>) -> Result<(), Error> {
    for copy in &plan.copies {
        let Some(node) = problem.nodes.get(copy.node) else {
            let message = format!("unknown node {}; the problem has {} nodes", copy.node, problem.nodes.len());
            return Err(wrong("copies", message));
        };
        let devices = problem.devices.len();
        let times =
            copy.start.is_finite() && copy.end.is_finite() && Micros::ZERO <= copy.start && copy.start <= copy.end;
        let from = copy.via.or_else(|| problem.cold.as_ref().map(|cold| cold.host)).unwrap_or(0);
        if copy.to >= devices || from >= devices || !times {
            let (to, start, end) = (copy.to, copy.start, copy.end);
            let message = format!("invalid copy of its weights from device {from} to device {to}: {start} to {end} µs");
            return Err(wrong(problem.node_label(copy.node), message));
        }
        transfers.push(Transfer {
            tensor: None,
            task: copy.node,
            launch: None,
            from,
            to: copy.to,
            link: None,
            row: 0,
            inputs: Vec::new(),
            bytes: node.weight,
            start: copy.start,
            end: copy.end,
        });
    }
    Ok(())
}

pub(super) fn sort(transfers: &mut [Transfer]) {
    let place = |transfer: &Transfer| (transfer.from, transfer.to, transfer.tensor, transfer.task);
    transfers.sort_by(|a, b| a.start.total_cmp(&b.start).then(place(a).cmp(&place(b))));
}
