//! Small random edge networks, and every placement on them.

use std::collections::BTreeMap;

use divi_planner::Problem;
use divi_planner::problem::{Device, EdgeNetwork, Node};
use divi_planner::random::Random;

/// What a random problem may have.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Traits {
    pub(crate) nodes: usize,
    pub(crate) machines: usize,
    /// Whether machines and links are all the same.
    pub(crate) even: bool,
    /// Whether each node reads the one before it, so that all hang together.
    pub(crate) chained: bool,
    /// Whether there are pins, thread limits, company, missing links.
    pub(crate) limits: bool,
}

/// A graph with skip edges on a network. Numbers of nodes need not be in the order in which they run.
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
        0..3 if limits => Some(0.0),
        3 if limits => None,
        _ => Some(random.between(0.3, 3.0) / slow),
    };
    let (rate, link) = (random.between(0.5, 2.0), random.between(0.3, 3.0) / slow);
    let view = EdgeNetwork {
        flops: (0..nodes).map(|_| some(random, 9)).collect(),
        rate: (0..machines).map(|_| if even { rate } else { random.between(0.5, 2.0) }).collect(),
        bandwidth: (0..machines)
            .map(|_| (0..machines).map(|_| if even { Some(link) } else { bandwidth(random) }).collect())
            .collect(),
        edge_bytes: edges.iter().map(|_| 1.0 + some(random, 5)).collect(),
        splits: random.chance(0.4).then(|| random.below(nodes) as u32),
        threads: (limits && random.chance(0.3)).then(|| (0..machines).map(|_| 1 + random.below(2) as u32).collect()),
        pin: (limits && random.chance(0.4))
            .then(|| (0..nodes).map(|_| random.chance(0.4).then(|| random.below(machines))).collect()),
    };
    let device = |id: usize| Device { id, name: format!("m{id}"), memory: None, batch_sizes: vec![1] };
    let mut problem =
        Problem::new("edge", (0..machines).map(device).collect(), vec![vec![Some(1.0); machines]; machines]);
    problem.nodes = (0..nodes)
        .map(|id| Node {
            id,
            name: None,
            time: BTreeMap::from([(1, vec![Some(1.0); machines])]),
            weight: 0.0,
            input: 0.0,
            output: Some(1.0),
            scratch: 0.0,
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

/// The order in which nodes run: always the lowest number of those that wait for none.
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

/// How often the machine changes.
pub(crate) fn split_points(problem: &Problem, place: &[usize]) -> usize {
    order(problem).windows(2).filter(|two| place[two[0]] != place[two[1]]).count()
}

/// What a placement takes, by the definition: eq. (3) and (5). None where it may not be.
pub(crate) fn period(problem: &Problem, place: &[usize], splits: Option<u32>) -> Option<f64> {
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
    let mut slowest: f64 = 0.0;
    for machine in 0..machines {
        let flops: f64 = (0..place.len()).filter(|node| place[*node] == machine).map(|node| view.flops[node]).sum();
        slowest = slowest.max(flops / view.rate[machine]);
        for other in (0..machines).filter(|other| *other != machine) {
            let moved: Vec<f64> = (problem.edges.iter().flatten().zip(&view.edge_bytes))
                .filter(|((from, to), _)| place[*from] == machine && place[*to] == other)
                .map(|(_, bytes)| *bytes)
                .collect();
            match view.bandwidth[machine][other] {
                Some(0.0) if !moved.is_empty() => return None,
                Some(bandwidth) if !moved.is_empty() => slowest = slowest.max(moved.iter().sum::<f64>() / bandwidth),
                _ => {}
            }
        }
    }
    Some(slowest)
}

/// Every placement.
pub(crate) fn placements(problem: &Problem) -> impl Iterator<Item = Vec<usize>> {
    let (nodes, machines) = (problem.nodes.len(), problem.edge.as_ref().expect("a view").rate.len());
    (0..machines.pow(nodes as u32))
        .map(move |code| (0..nodes).map(|node| code / machines.pow(node as u32) % machines).collect())
}

/// The least period of all placements.
pub(crate) fn optimum(problem: &Problem, splits: Option<u32>) -> Option<f64> {
    placements(problem).filter_map(|place| period(problem, &place, splits)).min_by(f64::total_cmp)
}
