//! Transfers between devices.

use std::collections::BTreeMap;

use divi_planner::Error;
use divi_planner::plan::Plan;
use divi_planner::problem::Problem;
use divi_planner::units::Micros;

use super::{Launch, Transfer, moving, no_link, wrong};

/// Returns the transfers: one from each launch of the producer to each device that consumes the tensor, for the inputs
/// consumed there. A transfer starts when the launch ends, unless the plan states its times.
pub(super) fn of(problem: &Problem, plan: &Plan, launches: &[Launch]) -> Result<Vec<Transfer>, Error> {
    let mut of_task: Vec<Vec<&Launch>> = vec![Vec::new(); problem.nodes.len()];
    for launch in launches {
        of_task[launch.task].push(launch);
    }
    let stated: BTreeMap<(usize, usize, usize), (Micros, Micros)> =
        plan.transfers.iter().map(|moved| ((moved.tensor, moved.from, moved.to), (moved.start, moved.end))).collect();
    let mut transfers = Vec::new();
    for (index, tensor) in problem.all_tensors().iter().enumerate() {
        for producer in &of_task[tensor.from] {
            // For each destination, the inputs of the producer that are consumed there.
            let mut read: BTreeMap<usize, Vec<bool>> = BTreeMap::new();
            let readers = tensor.to.iter().flat_map(|to| &of_task[*to]).filter(|to| to.device != producer.device);
            for reader in readers {
                let here = read.entry(reader.device).or_insert_with(|| vec![false; producer.inputs.len()]);
                for (read, input) in here.iter_mut().zip(&producer.inputs) {
                    *read |= reader.inputs.binary_search(input).is_ok();
                }
            }
            for (to, read) in read {
                let inputs = read.iter().filter(|read| **read).count();
                if inputs == 0 {
                    continue;
                }
                let from = producer.device;
                let bytes = tensor.bytes * inputs as f64;
                let (start, end) = match stated.get(&(index, from, to)) {
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
                let (tensor, link, row) = (Some(index), None, 0);
                transfers.push(Transfer { tensor, task, from, to, link, row, inputs, bytes, start, end });
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
            from,
            to: copy.to,
            link: None,
            row: 0,
            inputs: 1,
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
