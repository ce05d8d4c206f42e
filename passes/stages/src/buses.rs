//! Times of merged stages and of the transfers between them under bus contention.
//!
//! Builds a smaller problem, with the stages as tasks and the transferred tensors as tensors, and times it with the planner.

use std::collections::{BTreeMap, BTreeSet};

use crate::cut::{self, Moving};
use crate::launches::{Launches, Role};
use crate::line::{Line, Times};
use divi_planner::plan::{LaunchRule, Schedule, Transfer};
use divi_planner::problem::{Device, Node, Problem, Tensor};
use divi_planner::time_as_it_is;
use divi_planner::units::{Bytes, Micros};

/// A tensor of the plan that is transferred between two devices, and its inputs.
#[derive(Clone)]
struct Way {
    tensor: usize,
    from: usize,
    to: usize,
    inputs: Vec<u32>,
}

/// Times the stages of a line and their transfers; `None` if pieces form a cycle or a link is missing.
pub(crate) fn times(problem: &Problem, launches: &Launches, line: &Line) -> Option<(Times, Vec<Transfer>)> {
    let mut times = line.times(launches, false)?;
    let of_role = |role: Role| (0..launches.all.len()).filter(move |launch| launches.role[*launch] == role);
    let mut node_of = vec![0; launches.all.len()];
    // Inputs, pieces, outputs: a topological order.
    let mut nodes: Vec<(usize, Micros)> = Vec::new();
    for launch in of_role(Role::Input) {
        node_of[launch] = nodes.len();
        nodes.push((launches.all[launch].device, Micros::ZERO));
    }
    let first_piece = nodes.len();
    for &piece in &times.order {
        line.pieces[piece].launches.iter().for_each(|launch| node_of[*launch] = nodes.len());
        nodes.push((line.pieces[piece].device, times.end[piece] - times.begin[piece]));
    }
    for launch in of_role(Role::Output) {
        node_of[launch] = nodes.len();
        nodes.push((launches.all[launch].device, Micros::ZERO));
    }
    let (tensors, ways) = tensors(launches, line, &node_of);
    let device = nodes.iter().map(|(device, _)| *device).collect();
    let order = Schedule::Latency {
        device,
        start: (0..nodes.len()).map(|node| Micros(node as f64)).collect(),
        makespan: Micros::ZERO,
    };
    let timed = time_as_it_is(&smaller(problem, &nodes, tensors), &order).ok()?;
    let Schedule::Latency { start, makespan, .. } = timed.schedule else { return None };
    times.makespan = makespan;
    for (place, &piece) in times.order.iter().enumerate() {
        let mut now = start[first_piece + place];
        times.begin[piece] = now;
        for &launch in &line.pieces[piece].launches {
            times.start[launch] = now;
            now += launches.time(launch, line.pieces[piece].device);
        }
        times.end[piece] = now;
    }
    for launch in of_role(Role::Input).chain(of_role(Role::Output)) {
        times.start[launch] = start[node_of[launch]];
    }
    let transfer = |moved: &Transfer| {
        let Way { tensor, from, to, inputs } = ways[moved.tensor].clone()?;
        let inputs = Some(inputs).filter(|_| launches.instance.launches() == LaunchRule::Many);
        Some(Transfer { tensor, from, to, inputs, start: moved.start, end: moved.end })
    };
    Some((times, timed.transfers.iter().filter_map(transfer).collect()))
}

/// Returns the tensors between nodes, and for each transferred one its tensor and devices in the plan.
fn tensors(launches: &Launches, line: &Line, node_of: &[usize]) -> (Vec<Tensor>, Vec<Option<Way>>) {
    let on = |launch: usize| line.device_of(launches, launch);
    let (mut tensors, mut ways) = (Vec::new(), Vec::new());
    for moving in cut::moves(launches, line).0 {
        let readers = launches.read_by[moving.from].iter().filter(|read| read.tensor == moving.tensor);
        let here: BTreeSet<usize> =
            readers.filter(|read| on(read.launch) == moving.to).map(|read| node_of[read.launch]).collect();
        let bytes = launches.instance.tensors()[moving.tensor].bytes * moving.inputs.len() as f64;
        tensors.push(Tensor { from: node_of[moving.from], bytes, to: here.into_iter().collect() });
        let Moving { tensor, to, inputs, .. } = moving;
        ways.push(Some(Way { tensor, from: on(moving.from), to, inputs }));
    }
    // Dependences within a device become tensors of zero bytes.
    let mut behind: BTreeMap<usize, BTreeSet<usize>> = BTreeMap::new();
    for launch in 0..launches.all.len() {
        let readers = launches.read_by[launch].iter().map(|read| read.launch);
        let here = readers.filter(|reader| on(*reader) == on(launch) && node_of[*reader] != node_of[launch]);
        behind.entry(node_of[launch]).or_default().extend(here.map(|reader| node_of[reader]));
    }
    for (from, readers) in behind.into_iter().filter(|(_, readers)| !readers.is_empty()) {
        tensors.push(Tensor { from, bytes: Bytes::ZERO, to: readers.into_iter().collect() });
        ways.push(None);
    }
    (tensors, ways)
}

/// Builds the problem with nodes of fixed devices and times.
fn smaller(problem: &Problem, nodes: &[(usize, Micros)], tensors: Vec<Tensor>) -> Problem {
    let device = |device: &Device| Device { memory: None, batch_sizes: vec![1], ..device.clone() };
    let devices: Vec<Device> = problem.devices.iter().map(device).collect();
    let count = devices.len();
    let mut smaller = Problem::new("stages", devices, problem.bandwidth.clone());
    smaller.link_latency.clone_from(&problem.link_latency);
    smaller.bus.clone_from(&problem.bus);
    smaller.contention = problem.contention;
    let node = |(id, (on, time)): (usize, &(usize, Micros))| Node {
        id,
        name: None,
        time: BTreeMap::from([(1, (0..count).map(|device| (device == *on).then_some(*time)).collect())]),
        weight: Bytes::ZERO,
        input: Bytes::ZERO,
        output: None,
        scratch: Bytes::ZERO,
        pin: None,
        module: None,
    };
    smaller.nodes = nodes.iter().enumerate().map(node).collect();
    smaller.tensors = Some(tensors);
    smaller
}
