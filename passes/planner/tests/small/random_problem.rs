//! Small random problems, with every feature of the format now and then.

use std::collections::BTreeMap;

use divi_planner::Problem;
use divi_planner::problem::{Device, MemoryModel, Node, Tensor};
use divi_planner::random::Random;
use divi_planner::units::{Bytes, BytesPerMicro, Micros};

/// Size of a problem, and its number of inputs.
pub(crate) struct Size {
    pub(crate) nodes: usize,
    pub(crate) devices: usize,
    pub(crate) inputs: u32,
}

pub(crate) fn problem(size: &Size, random: &mut Random) -> Problem {
    let nodes = 1 + random.below(size.nodes);
    let devices = 1 + random.below(size.devices);
    let inputs = if size.inputs > 1 { 2 + random.below(size.inputs as usize - 1) as u32 } else { 1 };
    let mut problem = Problem::new("small", machines(devices, inputs, random), links(devices, random));
    problem.inputs = inputs;
    if random.chance(0.3) {
        problem.link_latency = Some(matrix(devices, |random| Some(Micros(random.below(4) as f64)), random));
    }
    problem.nodes = (0..nodes).map(|id| node(id, devices, inputs, random)).collect();
    wire(&mut problem, random);
    if random.chance(0.15) && nodes > 1 {
        problem.colocate = Some(vec![random.sample(nodes, 2)]);
    }
    if random.chance(0.35) {
        limit_memory(&mut problem, random);
    }
    problem
}

fn machines(devices: usize, inputs: u32, random: &mut Random) -> Vec<Device> {
    (0..devices)
        .map(|id| {
            let mut sizes: Vec<u32> = (1..=inputs).filter(|size| *size == inputs || random.chance(0.6)).collect();
            random.shuffle(&mut sizes);
            Device { id, name: format!("d{id}"), memory: None, batch_sizes: sizes }
        })
        .collect()
}

fn links(devices: usize, random: &mut Random) -> Vec<Vec<Option<BytesPerMicro>>> {
    let missing = if random.chance(0.2) { 0.3 } else { 0.0 };
    let bandwidth = |random: &mut Random| {
        Some(BytesPerMicro(if random.chance(missing) { 0.0 } else { [0.5, 1.0, 2.0, 8.0][random.below(4)] }))
    };
    matrix(devices, bandwidth, random)
}

fn matrix<T>(
    devices: usize,
    mut entry: impl FnMut(&mut Random) -> Option<T>,
    random: &mut Random,
) -> Vec<Vec<Option<T>>> {
    let row = |from: usize, random: &mut Random, entry: &mut dyn FnMut(&mut Random) -> Option<T>| {
        (0..devices).map(|to| if from == to { None } else { entry(random) }).collect()
    };
    (0..devices).map(|from| row(from, random, &mut entry)).collect()
}

fn node(id: usize, devices: usize, inputs: u32, random: &mut Random) -> Node {
    let one: Vec<Option<f64>> = (0..devices).map(|_| (!random.chance(0.1)).then(|| random.below(20) as f64)).collect();
    let fixed: Vec<f64> = (0..devices).map(|_| random.unit()).collect();
    let batch = |size: u32| -> Vec<Option<Micros>> {
        let grown = |(time, fixed): (&Option<f64>, &f64)| {
            time.map(|time| Micros((time * (fixed + (1.0 - fixed) * f64::from(size))).round()))
        };
        one.iter().zip(&fixed).map(grown).collect()
    };
    let time: BTreeMap<u32, Vec<Option<Micros>>> = (1..=inputs).map(|size| (size, batch(size))).collect();
    Node {
        id,
        name: random.chance(0.5).then(|| format!("task{id}")),
        time,
        weight: Bytes(random.below(10) as f64),
        input: Bytes(random.below(10) as f64),
        output: Some(Bytes(random.below(12) as f64)),
        scratch: Bytes(random.below(3) as f64),
        pin: random.chance(0.1).then(|| random.below(devices)),
        module: None,
    }
}

/// Adds edges or tensors from lower to higher numbers, then shuffles the numbers.
fn wire(problem: &mut Problem, random: &mut Random) {
    let count = problem.nodes.len();
    let mut place: Vec<usize> = (0..count).collect();
    random.shuffle(&mut place);
    if random.chance(0.3) {
        let mut tensors = Vec::new();
        for from in 0..count {
            for _ in 0..random.below(3) {
                let to = (from + 1..count).filter(|_| random.chance(0.5)).map(|to| place[to]).collect();
                tensors.push(Tensor { from: place[from], bytes: Bytes(random.below(12) as f64), to });
            }
        }
        problem.tensors = Some(tensors);
        for node in &mut problem.nodes {
            if random.chance(0.5) {
                node.output = None;
            }
        }
        return;
    }
    let mut edges = Vec::new();
    for from in 0..count {
        for to in from + 1..count {
            if random.chance(0.5) {
                edges.push((place[from], place[to]));
            }
        }
    }
    problem.edges = Some(edges);
}

/// Sets memories that some placements exceed.
fn limit_memory(problem: &mut Problem, random: &mut Random) {
    if random.chance(0.5) {
        problem.memory_model = MemoryModel::Liveness;
    }
    let inputs = f64::from(problem.inputs);
    let all: Bytes = problem.nodes.iter().map(|node| node.weight + (node.input + Bytes(12.0)) * inputs).sum();
    for device in &mut problem.devices {
        if random.chance(0.6) {
            device.memory = Some(Bytes((all.0 * random.unit()).round()));
        }
    }
}
