//! Enumeration of all schedules of a small problem with contention. Only the problem's data is used, no code of the
//! planner.

use std::collections::BTreeMap;

use divi_planner::Problem;
use divi_planner::units::{Bytes, BytesPerMicro, Micros};

use crate::flows::{On, Step, least_shared};

/// Launch or transfer of the enumeration.
#[derive(Clone, Debug)]
enum Op {
    Launch { node: usize, device: usize, inputs: Vec<u32>, time: Micros },
    Transfer { tensor: usize, from: usize, to: usize, flow: Micros, latency: Micros },
}

pub(crate) fn tensors(problem: &Problem) -> Vec<(usize, Bytes, Vec<usize>)> {
    problem.all_tensors().into_iter().map(|tensor| (tensor.from, tensor.bytes, tensor.to)).collect()
}

/// Returns the transfers that launches need; `None` if a link is missing.
fn transfers(problem: &Problem, launches: &[Op]) -> Option<Vec<Op>> {
    let mut found = Vec::new();
    for (tensor, (maker, bytes, readers)) in tensors(problem).into_iter().enumerate() {
        let mut wanted: BTreeMap<(usize, usize), Vec<u32>> = BTreeMap::new();
        for op in launches {
            let Op::Launch { node, device, inputs, .. } = op else { continue };
            for other in launches {
                let Op::Launch { node: reader, device: to, inputs: read, .. } = other else { continue };
                if *node == maker && readers.contains(reader) && device != to {
                    let inputs = inputs.iter().copied().filter(|input| read.contains(input));
                    wanted.entry((*device, *to)).or_default().extend(inputs);
                }
            }
        }
        for ((from, to), mut inputs) in wanted.into_iter().filter(|(_, inputs)| !inputs.is_empty()) {
            inputs.sort_unstable();
            inputs.dedup();
            let bandwidth = problem.bandwidth[from][to].unwrap_or(BytesPerMicro::INFINITY);
            if bandwidth == BytesPerMicro::ZERO {
                return None;
            }
            let latency = problem.link_latency.as_ref().and_then(|rows| rows[from][to]).unwrap_or_default();
            found.push(Op::Transfer { tensor, from, to, flow: inputs.len() as f64 * bytes / bandwidth, latency });
        }
    }
    Some(found)
}

/// Returns true if one operation depends on another.
fn waits(tensors: &[(usize, Bytes, Vec<usize>)], op: &Op, other: &Op) -> bool {
    match (op, other) {
        (Op::Launch { node, device, inputs, .. }, Op::Launch { node: maker, device: on, inputs: made, .. }) => {
            let reads = tensors.iter().any(|(from, _, to)| from == maker && to.contains(node));
            reads && device == on && inputs.iter().any(|input| made.contains(input))
        }
        (Op::Launch { node, device, .. }, Op::Transfer { tensor, to, .. }) => {
            tensors[*tensor].2.contains(node) && to == device
        }
        (Op::Transfer { tensor, from, .. }, Op::Launch { node, device, .. }) => {
            tensors[*tensor].0 == *node && from == device
        }
        (Op::Transfer { .. }, Op::Transfer { .. }) => false,
    }
}

/// Returns all assignments of inputs to devices.
fn spreads(problem: &Problem) -> Vec<Vec<Op>> {
    let (devices, inputs) = (problem.devices.len(), problem.inputs);
    let mut all: Vec<Vec<Op>> = vec![Vec::new()];
    for node in &problem.nodes {
        let mut longer = Vec::new();
        for before in &all {
            for choice in 0..devices.pow(inputs) {
                let on = |input: u32| choice / devices.pow(input) % devices;
                let mut launches = before.clone();
                let fits = (0..devices).all(|device| {
                    let own: Vec<u32> = (0..inputs).filter(|input| on(*input) == device).collect();
                    let size = own.len() as u32;
                    if own.is_empty() {
                        return true;
                    }
                    let time = node.time.get(&size).and_then(|times| times[device]);
                    let allowed =
                        problem.devices[device].batch_sizes.contains(&size) && node.pin.is_none_or(|pin| pin == device);
                    let Some(time) = time.filter(|_| allowed) else { return false };
                    launches.push(Op::Launch { node: node.id, device, inputs: own, time });
                    true
                });
                if fits {
                    longer.push(launches);
                }
            }
        }
        all = longer;
    }
    let placed = |launches: &[Op], node: usize| -> Vec<(usize, Vec<u32>)> {
        let of = |op: &Op| match op {
            Op::Launch { node: other, device, inputs, .. } if *other == node => Some((*device, inputs.clone())),
            _ => None,
        };
        launches.iter().filter_map(of).collect()
    };
    all.retain(|launches| {
        let mut groups = problem.colocate.iter().flatten();
        groups.all(|group| group.iter().all(|node| placed(launches, *node) == placed(launches, group[0])))
    });
    all
}

/// Returns the least makespan with exclusive buses: each operation as early as possible, in every order.
pub(crate) fn exclusive(problem: &Problem) -> Option<Micros> {
    let tensors = tensors(problem);
    let mut best = Micros::INFINITY;
    for launches in spreads(problem) {
        let Some(moves) = transfers(problem, &launches) else { continue };
        let ops: Vec<Op> = launches.into_iter().chain(moves).collect();
        let waiting: Vec<Vec<usize>> =
            ops.iter().map(|op| (0..ops.len()).filter(|other| waits(&tensors, op, &ops[*other])).collect()).collect();
        in_every_order(problem, &ops, &waiting, &mut vec![None; ops.len()], &mut BTreeMap::new(), &mut best);
    }
    best.is_finite().then_some(best)
}

fn resource(problem: &Problem, op: &Op) -> Option<String> {
    match op {
        Op::Launch { device, .. } => Some(format!("device {device}")),
        Op::Transfer { from, to, .. } => problem.bus.as_ref().and_then(|rows| rows[*from][*to].clone()),
    }
}

fn in_every_order(
    problem: &Problem,
    ops: &[Op],
    waiting: &[Vec<usize>],
    ends: &mut Vec<Option<Micros>>,
    free: &mut BTreeMap<String, Micros>,
    best: &mut Micros,
) {
    let so_far = ends.iter().flatten().copied().fold(Micros::ZERO, Micros::max);
    if so_far >= *best {
        return;
    }
    if ends.iter().all(Option::is_some) {
        // The last operation is a launch: every transfer has a reader.
        *best = so_far;
        return;
    }
    for next in 0..ops.len() {
        if ends[next].is_some() || waiting[next].iter().any(|other| ends[*other].is_none()) {
            continue;
        }
        let ready = waiting[next].iter().filter_map(|other| ends[*other]).fold(Micros::ZERO, Micros::max);
        let time = match &ops[next] {
            Op::Launch { time, .. } => *time,
            Op::Transfer { flow, latency, .. } => *flow + *latency,
        };
        let resource = resource(problem, &ops[next]);
        let before = resource.as_ref().and_then(|name| free.get(name).copied());
        // Operations without duration do not occupy a bus.
        let is_free = time == Micros::ZERO && matches!(ops[next], Op::Transfer { .. });
        let start = if is_free { ready } else { ready.max(before.unwrap_or_default()) };
        ends[next] = Some(start + time);
        if let (Some(name), false) = (&resource, is_free) {
            free.insert(name.clone(), start + time);
        }
        in_every_order(problem, ops, waiting, ends, free, best);
        ends[next] = None;
        if let (Some(name), false) = (resource, is_free) {
            match before {
                Some(before) => free.insert(name, before),
                None => free.remove(&name),
            };
        }
    }
}

/// Returns the least makespan with shared buses.
pub(crate) fn shared(problem: &Problem) -> Option<Micros> {
    let tensors = tensors(problem);
    let mut best = Micros::INFINITY;
    for launches in spreads(problem) {
        let Some(moves) = transfers(problem, &launches) else { continue };
        let ops: Vec<Op> = launches.into_iter().chain(moves).collect();
        let step = |op: &Op| {
            let after = (0..ops.len()).filter(|other| waits(&tensors, op, &ops[*other])).collect();
            match op {
                Op::Launch { device, time, .. } => {
                    Step { on: On::Device(*device), latency: Micros::ZERO, time: *time, after }
                }
                Op::Transfer { flow, latency, .. } => {
                    Step { on: On::Bus(resource(problem, op)), latency: *latency, time: *flow, after }
                }
            }
        };
        let steps: Vec<Step> = ops.iter().map(step).collect();
        best = best.min(least_shared(&steps));
    }
    best.is_finite().then_some(best)
}
