//! Small random edge networks, and all placements on them.

use std::collections::BTreeMap;

use divi_planner::Problem;
use divi_planner::problem::{Device, EdgeNetwork, Node};
use divi_planner::random::Random;
use divi_planner::units::{Bytes, BytesPerMicro, Micros};

/// Features of a random problem.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Traits {
    pub(crate) nodes: usize,
    pub(crate) machines: usize,
    /// True if machines and links are all equal.
    pub(crate) even: bool,
    /// True if each node reads its predecessor, so that the graph is connected.
    pub(crate) chained: bool,
    /// True if there are pins, thread limits, co-location and missing links.
    pub(crate) limits: bool,
}

/// Generates a graph with skip edges on a network. Node numbers need not be a topological order.
pub(crate) fn problem(traits: Traits, random: &mut Random) -> Problem {
    let Traits { nodes, machines, even, chained, limits } = traits;
    let mut label: Vec<usize> = (0..nodes).collect();
    if limits && random.chance(0.3) {
        random.shuffle(&mut label);
    }
    let some = |random: &mut Random, most: usize| random.below(most + 1) as f64;
    let mut edges = Vec::new();
    for to in 0..nodes {
        for from in 0..to {
            if (chained && from + 1 == to) || random.chance(0.25) {
                edges.push((label[from], label[to]));
            }
        }
    }
    let slow = if random.chance(0.5) { 4.0 } else { 1.0 };
    let bandwidth = |random: &mut Random| match random.below(10) {
        0..3 if limits => Some(BytesPerMicro::ZERO),
        3 if limits => None,
        _ => Some(BytesPerMicro(random.between(0.3, 3.0) / slow)),
    };
    let (rate, link) = (random.between(0.5, 2.0), BytesPerMicro(random.between(0.3, 3.0) / slow));
    let view = EdgeNetwork {
        flops: (0..nodes).map(|_| some(random, 9)).collect(),
        rate: (0..machines).map(|_| if even { rate } else { random.between(0.5, 2.0) }).collect(),
        bandwidth: (0..machines)
            .map(|_| (0..machines).map(|_| if even { Some(link) } else { bandwidth(random) }).collect())
            .collect(),
        edge_bytes: edges.iter().map(|_| Bytes(1.0 + some(random, 5))).collect(),
        splits: random.chance(0.4).then(|| random.below(nodes) as u32),
        threads: (limits && random.chance(0.3)).then(|| (0..machines).map(|_| 1 + random.below(2) as u32).collect()),
        pin: (limits && random.chance(0.4))
            .then(|| (0..nodes).map(|_| random.chance(0.4).then(|| random.below(machines))).collect()),
    };
    let device = |id: usize| Device { id, name: format!("m{id}"), memory: None, batch_sizes: vec![1] };
    let mut problem = Problem::new(
        "edge",
        (0..machines).map(device).collect(),
        vec![vec![Some(BytesPerMicro(1.0)); machines]; machines],
    );
    problem.nodes = (0..nodes)
        .map(|id| Node {
            id,
            name: None,
            time: BTreeMap::from([(1, vec![Some(Micros(1.0)); machines])]),
            weight: Bytes::ZERO,
            input: Bytes::ZERO,
            output: Some(Bytes(1.0)),
            scratch: Bytes::ZERO,
            pin: None,
            module: None,
        })
        .collect();
    problem.edges = Some(edges);
    problem.edge = Some(view);
    if limits && nodes > 1 && random.chance(0.2) {
        problem.colocate = Some(vec![random.sample(nodes, 2)]);
    }
    problem
}

/// Returns the topological order, lowest number first.
fn order(problem: &Problem) -> Vec<usize> {
    let edges = problem.edges.as_ref().expect("edges");
    let mut order: Vec<usize> = Vec::new();
    while order.len() < problem.nodes.len() {
        let waits = |node: &usize| edges.iter().any(|(from, to)| to == node && !order.contains(from));
        let next = (0..problem.nodes.len()).find(|node| !order.contains(node) && !waits(node));
        order.push(next.expect("no circle"));
    }
    order
}

/// Returns the number of changes of the machine.
pub(crate) fn split_points(problem: &Problem, place: &[usize]) -> usize {
    order(problem).windows(2).filter(|two| place[two[0]] != place[two[1]]).count()
}

/// Returns the period of a placement by eqs. (3) and (5); `None` if it is not allowed.
pub(crate) fn period(problem: &Problem, place: &[usize], splits: Option<u32>) -> Option<Micros> {
    let view = problem.edge.as_ref().expect("a view");
    let machines = view.rate.len();
    if splits.or(view.splits).is_some_and(|most| split_points(problem, place) > most as usize) {
        return None;
    }
    if view.pin.iter().flatten().zip(place).any(|(pin, on)| pin.is_some_and(|pin| pin != *on)) {
        return None;
    }
    if problem.colocate.iter().flatten().any(|group| group.iter().any(|node| place[*node] != place[group[0]])) {
        return None;
    }
    let order = order(problem);
    for (machine, most) in view.threads.iter().flatten().enumerate() {
        let starts =
            |index: &usize| place[order[*index]] == machine && (*index == 0 || place[order[*index - 1]] != machine);
        if (0..order.len()).filter(starts).count() > *most as usize {
            return None;
        }
    }
    let mut slowest = Micros::ZERO;
    for machine in 0..machines {
        let flops: f64 = (0..place.len()).filter(|node| place[*node] == machine).map(|node| view.flops[node]).sum();
        slowest = slowest.max(Micros(flops / view.rate[machine]));
        for other in (0..machines).filter(|other| *other != machine) {
            let moved: Vec<Bytes> = (problem.edges.iter().flatten().zip(&view.edge_bytes))
                .filter(|((from, to), _)| place[*from] == machine && place[*to] == other)
                .map(|(_, bytes)| *bytes)
                .collect();
            match view.bandwidth[machine][other] {
                Some(BytesPerMicro::ZERO) if !moved.is_empty() => return None,
                Some(bandwidth) if !moved.is_empty() => slowest = slowest.max(moved.iter().sum::<Bytes>() / bandwidth),
                _ => {}
            }
        }
    }
    Some(slowest)
}

/// Enumerates all placements.
pub(crate) fn placements(problem: &Problem) -> impl Iterator<Item = Vec<usize>> {
    let (nodes, machines) = (problem.nodes.len(), problem.edge.as_ref().expect("a view").rate.len());
    (0..machines.pow(nodes as u32))
        .map(move |code| (0..nodes).map(|node| code / machines.pow(node as u32) % machines).collect())
}

/// Returns the least period of all placements.
pub(crate) fn optimum(problem: &Problem, splits: Option<u32>) -> Option<Micros> {
    placements(problem).filter_map(|place| period(problem, &place, splits)).min_by(Micros::total_cmp)
}
