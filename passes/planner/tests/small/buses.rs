//! Every schedule of a small problem whose transfers are in each other's way. Nothing of the planner is used but the problem's
//! own words.

use std::collections::BTreeMap;

use divi_planner::Problem;

/// A launch or a transfer, as trying everything sees it.
#[derive(Clone, Debug)]
enum Op {
    Launch { node: usize, device: usize, inputs: Vec<u32>, time: f64 },
    Transfer { tensor: usize, from: usize, to: usize, flow: f64, latency: f64 },
}

pub(crate) fn tensors(problem: &Problem) -> Vec<(usize, f64, Vec<usize>)> {
    problem.all_tensors().into_iter().map(|tensor| (tensor.from, tensor.bytes, tensor.to)).collect()
}

/// The transfers that launches need; none where a link is missing.
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
            let bandwidth = problem.bandwidth[from][to].unwrap_or(f64::INFINITY);
            if bandwidth == 0.0 {
                return None;
            }
            let latency = problem.link_latency.as_ref().and_then(|rows| rows[from][to]).unwrap_or(0.0);
            found.push(Op::Transfer { tensor, from, to, flow: inputs.len() as f64 * bytes / bandwidth, latency });
        }
    }
    Some(found)
}

/// Whether one operation waits for another.
fn waits(tensors: &[(usize, f64, Vec<usize>)], op: &Op, other: &Op) -> bool {
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

/// Every way to spread inputs over devices.
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

/// The least makespan when transfers on a bus exclude each other: each operation in turn as early as it can, in every order.
pub(crate) fn exclusive(problem: &Problem) -> Option<f64> {
    let tensors = tensors(problem);
    let mut best = f64::INFINITY;
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
    ends: &mut Vec<Option<f64>>,
    free: &mut BTreeMap<String, f64>,
    best: &mut f64,
) {
    let so_far = ends.iter().flatten().copied().fold(0.0, f64::max);
    if so_far >= *best {
        return;
    }
    if ends.iter().all(Option::is_some) {
        // What ends is a launch: every transfer has a reader.
        *best = so_far;
        return;
    }
    for next in 0..ops.len() {
        if ends[next].is_some() || waiting[next].iter().any(|other| ends[*other].is_none()) {
            continue;
        }
        let ready = waiting[next].iter().filter_map(|other| ends[*other]).fold(0.0, f64::max);
        let time = match &ops[next] {
            Op::Launch { time, .. } => *time,
            Op::Transfer { flow, latency, .. } => flow + latency,
        };
        let resource = resource(problem, &ops[next]);
        let before = resource.as_ref().and_then(|name| free.get(name).copied());
        // What takes no time needs no turn on a bus.
        let is_free = time == 0.0 && matches!(ops[next], Op::Transfer { .. });
        let start = if is_free { ready } else { ready.max(before.unwrap_or(0.0)) };
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

/// The least makespan when transfers share: every order of launches, and for the buses every order of who goes first, which may
/// be interrupted by what goes before it.
pub(crate) fn shared(problem: &Problem) -> Option<f64> {
    let tensors = tensors(problem);
    let mut best = f64::INFINITY;
    for launches in spreads(problem) {
        let Some(moves) = transfers(problem, &launches) else { continue };
        for order in permutations(launches.len()) {
            for priority in permutations(moves.len()) {
                let value = interrupted(problem, &tensors, &launches, &moves, &order, &priority);
                best = best.min(value.unwrap_or(f64::INFINITY));
            }
        }
    }
    best.is_finite().then_some(best)
}

pub(crate) fn permutations(count: usize) -> Vec<Vec<usize>> {
    let mut all = vec![Vec::new()];
    for item in 0..count {
        let insert = |row: &Vec<usize>| -> Vec<Vec<usize>> {
            let at = |place: usize| [&row[..place], &[item], &row[place..]].concat();
            (0..=row.len()).map(at).collect()
        };
        all = all.iter().flat_map(insert).collect();
    }
    all
}

/// From event to event: of what can flow on a bus, the first by priority has it. None where the order is none.
fn interrupted(
    problem: &Problem,
    tensors: &[(usize, f64, Vec<usize>)],
    launches: &[Op],
    moves: &[Op],
    order: &[usize],
    priority: &[usize],
) -> Option<f64> {
    let ops: Vec<Op> = launches.iter().chain(moves).cloned().collect();
    let waits_for = |op: &Op| (0..ops.len()).filter(|other| waits(tensors, op, &ops[*other])).collect();
    let waiting: Vec<Vec<usize>> = ops.iter().map(waits_for).collect();
    let mut ends: Vec<Option<f64>> = vec![None; ops.len()];
    let mut left: Vec<f64> =
        moves.iter().map(|op| if let Op::Transfer { flow, .. } = op { *flow } else { 0.0 }).collect();
    let mut flows_from: Vec<Option<f64>> = vec![None; moves.len()];
    let mut next = vec![0; problem.devices.len()];
    let mut free = vec![0.0_f64; problem.devices.len()];
    let on = |launch: usize| if let Op::Launch { device, .. } = &launches[launch] { *device } else { 0 };
    let queue: Vec<Vec<usize>> = (0..problem.devices.len())
        .map(|device| order.iter().copied().filter(|at| on(*at) == device).collect())
        .collect();
    let mut now = 0.0;
    loop {
        // All that starts or is ready now.
        let mut changed = true;
        while changed {
            changed = false;
            for device in 0..queue.len() {
                let Some(&launch) = queue[device].get(next[device]) else { continue };
                let is_ready = waiting[launch].iter().all(|other| ends[*other].is_some_and(|end| end <= now));
                if is_ready && free[device] <= now {
                    let Op::Launch { time, .. } = &launches[launch] else { continue };
                    ends[launch] = Some(now + time);
                    free[device] = now + time;
                    next[device] += 1;
                    changed = true;
                }
            }
            for index in 0..moves.len() {
                let op = launches.len() + index;
                if flows_from[index].is_none()
                    && waiting[op].iter().all(|other| ends[*other].is_some_and(|end| end <= now))
                {
                    let Op::Transfer { latency, .. } = &moves[index] else { continue };
                    flows_from[index] = Some(now + latency);
                    changed = true;
                }
                if ends[op].is_none() && left[index] <= 1e-12 && flows_from[index].is_some_and(|from| from <= now) {
                    ends[op] = Some(now);
                    changed = true;
                }
            }
        }
        let is_over = ends.iter().all(|end| end.is_some_and(|end| end <= now));
        if is_over {
            return Some(now);
        }
        // Who has which bus now.
        let mut has: BTreeMap<String, usize> = BTreeMap::new();
        let mut flowing = Vec::new();
        for &index in priority {
            if left[index] > 1e-12 && flows_from[index].is_some_and(|from| from <= now) {
                match resource(problem, &moves[index]) {
                    Some(name) if has.contains_key(&name) => {}
                    Some(name) => {
                        has.insert(name, index);
                        flowing.push(index);
                    }
                    None => flowing.push(index),
                }
            }
        }
        let later = ends.iter().chain(&flows_from).flatten().copied().filter(|time| *time > now);
        let done = flowing.iter().map(|index| now + left[*index]);
        let until = later.chain(done).fold(f64::INFINITY, f64::min);
        if until.is_infinite() {
            return None;
        }
        flowing.iter().for_each(|index| left[*index] -= until - now);
        now = until;
    }
}
