//! Stages of a pipeline: its blocks without model inputs and outputs.

use std::collections::{BTreeMap, BTreeSet};

use crate::launches::{Launches, Role};
use crate::line::{Line, Piece, Times};
use crate::merge::Judge;
use divi_planner::error::{Error, Finding};
use divi_planner::plan::{Schedule, Stages};
use divi_planner::units::{Bytes, Micros};

/// Builds one piece per block in topological order, lowest block first. Tasks are in the plan's order, or in a topological
/// order if it has none.
pub(crate) fn blocks(launches: &Launches, schedule: &Schedule) -> Result<Line, Error> {
    let Schedule::Pipeline { block, stages, .. } = schedule else {
        return Err(Error::Bug("only a pipeline has blocks".to_owned()));
    };
    let ordered = stages.as_ref().and_then(|stages| stages.order.as_ref());
    let order: Vec<usize> = match ordered {
        Some(order) => order.iter().flatten().copied().filter(|node| *node < block.len()).collect(),
        None => launches.instance.order().to_vec(),
    };
    // One launch per node, with the same number.
    let is_task = |node: &usize| launches.role[*node] == Role::Task;
    let mut tasks: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
    for node in order.into_iter().filter(is_task) {
        tasks.entry(block[node]).or_default().push(node);
    }
    let waits_for = |nodes: &[usize]| -> BTreeSet<usize> {
        let reads = nodes.iter().flat_map(|node| &launches.reads[*node]).map(|read| read.launch).filter(is_task);
        reads.map(|node| block[node]).filter(|of| *of != block[nodes[0]]).collect()
    };
    let mut left: BTreeMap<usize, BTreeSet<usize>> = tasks.iter().map(|(of, nodes)| (*of, waits_for(nodes))).collect();
    let mut pieces = Vec::new();
    while !left.is_empty() {
        let Some(next) = left.iter().find(|(_, others)| others.is_empty()).map(|(of, _)| *of) else {
            let message = "blocks form a cycle".to_owned();
            return Err(Error::Plan(vec![Finding::new("block", message)]));
        };
        left.remove(&next);
        left.values_mut().for_each(|others| {
            others.remove(&next);
        });
        let nodes = tasks.remove(&next).unwrap_or_default();
        pieces.push(Piece { device: launches.all[nodes[0]].device, launches: nodes });
    }
    Ok(Line::new(launches, pieces))
}

/// Objective of a pipeline: time of the slowest device, of the slowest link if transfers overlap, or of the slowest bus
/// under contention.
pub(crate) struct Bottleneck<'a> {
    pub(crate) launches: &'a Launches,
    pub(crate) overlap: bool,
    /// Bus of each pair of devices, and number of buses.
    pub(crate) buses: (Vec<Option<usize>>, usize),
}

impl Judge for Bottleneck<'_> {
    fn value(&self, line: &Line, _: &Times) -> Micros {
        let instance = &self.launches.instance;
        let devices = instance.devices();
        let on = |node: usize| line.device_of(self.launches, node);
        let mut work = vec![Micros::ZERO; devices];
        let mut moving = vec![Micros::ZERO; devices];
        let mut links = vec![Micros::ZERO; devices * devices];
        let (bus_of_pair, buses) = &self.buses;
        let mut buses = vec![Micros::ZERO; *buses];
        for node in 0..instance.tasks() {
            work[on(node)] += instance.time(node, on(node)).unwrap_or(Micros::INFINITY);
        }
        for (index, tensor) in instance.tensors().iter().enumerate() {
            let home = on(tensor.producer);
            let elsewhere: BTreeSet<usize> =
                tensor.consumers.iter().map(|reader| on(*reader)).filter(|to| *to != home).collect();
            let mut longest = Micros::ZERO;
            for to in elsewhere {
                let takes = instance.transfer(index, home, to);
                longest = longest.max(takes);
                moving[to] += takes;
                links[home * devices + to] += takes;
                bus_of_pair[home * devices + to].into_iter().for_each(|bus| buses[bus] += takes);
            }
            moving[home] += longest;
        }
        let busiest = buses.into_iter().fold(Micros::ZERO, Micros::max);
        match self.overlap {
            false => work.iter().zip(moving).map(|(work, moving)| *work + moving).fold(busiest, Micros::max),
            true => work.into_iter().chain(links).fold(busiest, Micros::max),
        }
    }

    /// Several inputs are in flight: a device holds all tensors that its tasks access.
    fn fits(&self, line: &Line, _: &Times) -> bool {
        let instance = &self.launches.instance;
        let mut held: Vec<Bytes> = vec![Bytes::ZERO; instance.devices()];
        for node in 0..instance.tasks() {
            held[line.device_of(self.launches, node)] += instance.static_bytes(node, 1);
        }
        held.iter().enumerate().all(|(device, held)| *held <= instance.capacity_bytes(device))
    }
}

/// Builds the schedule of a line whose blocks differ from the plan's: stages in order, then inputs, then outputs by device.
pub(crate) fn schedule(launches: &Launches, line: &Line, order: &[usize], bottleneck: Micros) -> Schedule {
    let mut block = vec![0; launches.all.len()];
    let mut block_device = Vec::new();
    let mut in_order: Vec<Vec<usize>> = Vec::new();
    for &piece in order {
        let Piece { device, launches: nodes } = &line.pieces[piece];
        nodes.iter().for_each(|node| block[*node] = in_order.len());
        in_order.push(nodes.clone());
        block_device.push(*device);
    }
    for role in [Role::Input, Role::Output] {
        for device in 0..launches.instance.devices() {
            let is_one = |node: &usize| launches.role[*node] == role && launches.all[*node].device == device;
            let nodes: Vec<usize> = (0..launches.all.len()).filter(is_one).collect();
            if !nodes.is_empty() {
                nodes.iter().for_each(|node| block[*node] = in_order.len());
                in_order.push(nodes);
                block_device.push(device);
            }
        }
    }
    let k = in_order.len() as u32;
    let stages = Stages { block_device: Some(block_device), order: Some(in_order) };
    Schedule::Pipeline { block, k, bottleneck, stages: Some(stages) }
}
