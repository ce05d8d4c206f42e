//! Small problems with batch sizes.

use divi_planner::Problem;
use divi_planner::problem::Contention;
use divi_planner::random::Random;
use divi_planner::units::{Bytes, BytesPerMicro, Micros};

use super::random_problem::{Size, problem};

/// Batch sizes that devices may have.
pub(crate) const SIZES: [u32; 3] = [1, 2, 4];
/// Generates a problem of few tasks on up to three devices, often equal ones.
pub(crate) fn small(random: &mut Random, nodes: usize) -> Problem {
    let mut problem = problem(&Size { nodes, devices: 3, inputs: 1 }, random);
    let devices = problem.devices.len();
    for device in &mut problem.devices {
        device.batch_sizes = SIZES.into_iter().filter(|_| random.chance(0.6)).collect();
        if device.batch_sizes.is_empty() {
            device.batch_sizes.push(SIZES[random.below(3)]);
        }
        device.memory = None;
    }
    for node in &mut problem.nodes {
        let one = node.time[&1].clone();
        let fixed = random.unit();
        for size in SIZES {
            let grown = |time: &Option<Micros>| {
                time.map(|time| Micros((time.0 * (fixed + (1.0 - fixed) * f64::from(size))).round()))
            };
            let lost = random.chance(0.05);
            node.time.insert(size, one.iter().map(|time| grown(time).filter(|_| !lost)).collect());
        }
    }
    if random.chance(0.6) {
        make_equal(&mut problem);
    }
    if random.chance(0.4) {
        let all: Bytes = problem.nodes.iter().map(|node| node.weight + (node.input + Bytes(12.0)) * 4.0).sum();
        let memory = Some(Bytes((all.0 * (0.2 + 0.8 * random.unit())).round()));
        let limited = if random.chance(0.5) { devices } else { 1 };
        problem.devices.iter_mut().take(limited).for_each(|device| device.memory = memory);
    }
    add_ports(&mut problem, random);
    if random.chance(0.15) {
        let name = |pair: usize| ["p", "q"][pair % 2].to_owned();
        let one = random.below(3);
        let bus = |from: usize, to: usize| (from != to).then(|| name(if one == 0 { 0 } else { from + to }));
        problem.bus = Some((0..devices).map(|from| (0..devices).map(|to| bus(from, to)).collect()).collect());
        problem.contention = [Contention::Exclusive, Contention::Shared][random.below(2)];
    }
    problem
}

/// Makes all devices and links equal, except for pins.
fn make_equal(problem: &mut Problem) {
    let sizes = problem.devices[0].batch_sizes.clone();
    problem.devices.iter_mut().for_each(|device| device.batch_sizes.clone_from(&sizes));
    for times in problem.nodes.iter_mut().flat_map(|node| node.time.values_mut()) {
        let first = times.iter().flatten().next().copied();
        times.fill(first);
    }
    problem.bandwidth.iter_mut().flatten().flatten().for_each(|bandwidth| *bandwidth = BytesPerMicro(2.0));
    let latency = problem.link_latency.iter_mut().flatten().flatten().flatten();
    latency.for_each(|latency| *latency = Micros(3.0));
}

/// Turns at most two of the first and last tasks into inputs and outputs, a few of them pinned.
fn add_ports(problem: &mut Problem, random: &mut Random) {
    for node in 0..problem.nodes.len() {
        if (0..node).filter(|other| is_port(problem, *other)).count() < 2 && is_end(problem, node) && random.chance(0.4)
        {
            problem.nodes[node].time.values_mut().flatten().flatten().for_each(|time| *time = Micros::ZERO);
            let first = problem.nodes[node].time[&1].iter().position(Option::is_some);
            problem.nodes[node].pin = first.filter(|_| random.chance(0.5));
        }
    }
}

/// Returns true if a node is not between others.
fn is_end(problem: &Problem, node: usize) -> bool {
    let tensors = problem.all_tensors();
    let makes = tensors.iter().any(|tensor| tensor.from == node && !tensor.to.is_empty());
    let reads = tensors.iter().any(|tensor| tensor.to.contains(&node));
    !(makes && reads)
}

/// Returns true if a node takes no time in any size, and only provides an input or takes an output.
pub(crate) fn is_port(problem: &Problem, node: usize) -> bool {
    is_end(problem, node) && problem.nodes[node].time.values().flatten().flatten().all(|time| *time == Micros::ZERO)
}
