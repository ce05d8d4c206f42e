//! Launches of one input or of a queue, in the order of the plan on each device and bus.

use super::Builder;
use divi_planner::{
    Plan,
    plan::{Batch, Schedule, Transfer},
    problem::Contention,
    units::Micros,
};
use std::{
    cmp::Reverse,
    collections::{BTreeMap, BTreeSet, BinaryHeap},
};

/// Adds the steps of a plan. Starts are not kept: each step starts when its operands have arrived and the steps before it on
/// the same device or bus have ended.
pub(super) fn build(builder: &mut Builder<'_>, plan: &Plan) {
    let launches = launches(plan);
    let inputs: BTreeSet<u32> = launches.iter().flat_map(|launch| launch.inputs.iter().copied()).collect();
    builder.inputs = (inputs.len() as u64).max(1);
    let mut starts = vec![];
    for launch in &launches {
        let size = launch.inputs.len() as u32;
        let time = builder.problem.nodes[launch.node].time.get(&size).and_then(|times| times[launch.device]);
        builder.add(Some(launch.device), time.unwrap_or_default(), vec![]);
        starts.push(launch.start);
    }
    let listed: Vec<usize> = plan.transfers.iter().map(|transfer| add_listed(builder, transfer, &mut starts)).collect();
    let mut of_node: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
    launches.iter().enumerate().for_each(|(index, launch)| of_node.entry(launch.node).or_default().push(index));
    for (index, tensor) in builder.problem.all_tensors().iter().enumerate() {
        let readers: Vec<usize> =
            tensor.to.iter().flat_map(|to| of_node.get(to).into_iter().flatten().copied()).collect();
        for &producer in of_node.get(&tensor.from).into_iter().flatten() {
            for &reader in &readers {
                let (from, to) = (&launches[producer], &launches[reader]);
                let common: Vec<u32> = from.inputs.iter().filter(|input| to.inputs.contains(input)).copied().collect();
                if common.is_empty() {
                    continue;
                }
                if from.device == to.device {
                    builder.steps[reader].predecessors.push(producer);
                    continue;
                }
                let is_used = |transfer: &Transfer| {
                    let has_inputs =
                        transfer.inputs.as_ref().is_none_or(|all| common.iter().all(|one| all.contains(one)));
                    (transfer.tensor, transfer.from, transfer.to) == (index, from.device, to.device) && has_inputs
                };
                let step = match plan.transfers.iter().position(is_used) {
                    Some(position) => listed[position],
                    None => {
                        let time = builder.duration(from.device, to.device, tensor.bytes * common.len() as f64);
                        starts.push(from.start);
                        let step = builder.add(None, time, vec![]);
                        builder.steps[step].link = Some((from.device, to.device));
                        step
                    }
                };
                builder.steps[step].predecessors.push(producer);
                builder.steps[reader].predecessors.push(step);
            }
        }
    }
    keep_order(builder, &starts);
}

fn launches(plan: &Plan) -> Vec<Batch> {
    match &plan.schedule {
        Schedule::Latency { device, start, .. } => {
            let launch = |(node, (&device, &start))| Batch { node, device, inputs: vec![0], start };
            device.iter().zip(start).enumerate().map(launch).collect()
        }
        Schedule::Batch { batches, .. } => batches.clone(),
        _ => vec![],
    }
}

/// Adds a transfer with a planned time. If bandwidth is shared, it takes the planned time: the transfers that share the bus with it
/// are those of the plan.
fn add_listed(builder: &mut Builder<'_>, transfer: &Transfer, starts: &mut Vec<Micros>) -> usize {
    let (from, to) = (transfer.from, transfer.to);
    let resource = match builder.contention {
        Contention::Exclusive => builder.bus(from, to),
        Contention::Off | Contention::Shared => None,
    };
    starts.push(transfer.start);
    let step = builder.add(resource, transfer.end - transfer.start, vec![]);
    builder.steps[step].link = Some((from, to));
    step
}

/// Adds precedences so that resources run their steps in the order of planned starts. Steps that start at the same time, up to
/// rounding, are in the order of their own precedences.
fn keep_order(builder: &mut Builder<'_>, starts: &[Micros]) {
    let count = builder.steps.len();
    let mut successors = vec![vec![]; count];
    let mut waiting_for = vec![0_usize; count];
    for (step, of) in builder.steps.iter_mut().enumerate() {
        of.predecessors.sort_unstable();
        of.predecessors.dedup();
        waiting_for[step] = of.predecessors.len();
        of.predecessors.iter().for_each(|&before| successors[before].push(step));
    }
    // Planned starts are not negative, so that their bits are in their order.
    let key = |step: usize| Reverse((starts[step].0.max(0.0).to_bits(), step));
    let mut ready: BinaryHeap<_> = (0..count).filter(|step| waiting_for[*step] == 0).map(key).collect();
    let mut last: BTreeMap<usize, usize> = BTreeMap::new();
    while let Some(Reverse((_, step))) = ready.pop() {
        if let Some(resource) = builder.steps[step].resource
            && let Some(before) = last.insert(resource, step)
            && !builder.steps[step].predecessors.contains(&before)
        {
            builder.steps[step].predecessors.push(before);
        }
        for &next in &successors[step] {
            waiting_for[next] -= 1;
            if waiting_for[next] == 0 {
                ready.push(key(next));
            }
        }
    }
}
