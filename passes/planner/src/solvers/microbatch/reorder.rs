//! Search for devices and order of given launches: each is a task of a problem with one input.
//!
//! A launch may move to any device that holds its task's weights already; where memory does not bind, to any device.

use std::collections::{BTreeMap, BTreeSet};

use super::Flow;
use crate::model::instance::Instance;
use crate::model::options::Options;
use crate::model::plan::{Batch, Objective, Schedule};
use crate::model::problem::{Device, MemoryModel, Node, Problem, Tensor};
use crate::model::units::{Bytes, Micros};
use crate::solvers::exact::Timetable;
use crate::solvers::{search, timing};

/// Maximum number of launches.
const MOST_LAUNCHES: usize = 4000;

/// Improves a schedule; `None` if nothing better is found.
pub(super) fn improve(instance: &Instance, start: &Flow, options: &Options) -> Option<Flow> {
    if start.launches.len() > MOST_LAUNCHES {
        return None;
    }
    let problem = problem(instance, &start.launches, &timing::launch_of(instance, &start.launches)?);
    let expanded = Instance::new(&problem, Objective::Latency).ok()?;
    let timetable = Timetable::new(&Schedule::Latency {
        device: start.launches.iter().map(|launch| launch.device).collect(),
        start: start.launches.iter().map(|launch| launch.start).collect(),
        makespan: start.value,
    })?;
    let found = search::neighbourhoods_from(&expanded, &timetable, &search::neighbourhoods_allowance(options))?;
    let Schedule::Latency { device, start: starts, .. } = found.into_schedule() else { return None };
    let placed = |(launch, (device, start)): (&Batch, (&usize, &Micros))| Batch {
        node: launch.node,
        device: *device,
        inputs: launch.inputs.clone(),
        start: *start,
    };
    let mut launches: Vec<Batch> = start.launches.iter().zip(device.iter().zip(&starts)).map(placed).collect();
    let value = timing::retime(instance, &mut launches)?;
    (value < start.value && instance.fits_launches(&launches)).then_some(Flow { value, launches })
}

/// Returns the problem of one input whose tasks are the launches. `launch_of` has the launch of each task and input.
fn problem(instance: &Instance, launches: &[Batch], launch_of: &[usize]) -> Problem {
    let devices = instance.devices();
    let is_tight = instance.memory_binds();
    let holders: BTreeSet<(usize, usize)> = launches.iter().map(|launch| (launch.node, launch.device)).collect();
    let mut left: Vec<Bytes> = (0..devices).map(|device| instance.capacity_bytes(device)).collect();
    holders.iter().for_each(|(task, device)| left[*device] -= instance.weight_bytes(*task));
    let memory = |device: usize| (is_tight && left[device].is_finite()).then(|| left[device].max(Bytes::ZERO));
    let device =
        |id: usize| Device { id, name: instance.device_name(id).to_owned(), memory: memory(id), batch_sizes: vec![1] };
    let speed = |from: usize, to: usize| instance.bandwidth(from, to);
    let bandwidth = (0..devices).map(|from| (0..devices).map(|to| speed(from, to)).collect()).collect();
    let mut problem = Problem::new("launches", (0..devices).map(device).collect(), bandwidth);
    problem.link_latency =
        Some((0..devices).map(|from| (0..devices).map(|to| Some(instance.link_latency(from, to))).collect()).collect());
    problem.memory_model = instance.memory_model();
    for (id, launch) in launches.iter().enumerate() {
        let count = launch.inputs.len() as u32;
        let time = |device: usize| {
            let is_open = !is_tight || holders.contains(&(launch.node, device));
            instance.time_at(launch.node, device, count).filter(|_| is_open)
        };
        let values = instance.input_bytes(launch.node) + instance.output_bytes(launch.node);
        let is_static = instance.memory_model() == MemoryModel::Static;
        problem.nodes.push(Node {
            id,
            name: None,
            time: [(1, (0..devices).map(time).collect())].into(),
            weight: if is_static { values * f64::from(count) } else { Bytes::ZERO },
            input: Bytes::ZERO,
            output: Some(Bytes::ZERO),
            scratch: instance.scratch_bytes(launch.node) * f64::from(count),
            pin: None,
            module: None,
        });
    }
    problem.tensors = Some(tensors(instance, launches, launch_of));
    problem.colocate = Some(colocated(instance, launch_of)).filter(|groups| !groups.is_empty());
    problem
}

/// Returns a tensor for each launch, and each number of inputs that readers have in common with it: their transfers
/// take different times.
fn tensors(instance: &Instance, launches: &[Batch], launch_of: &[usize]) -> Vec<Tensor> {
    let inputs = instance.inputs() as usize;
    // By tensor, producer and number of common inputs.
    let mut readers: BTreeMap<(usize, usize, u32), Vec<usize>> = BTreeMap::new();
    for (index, launch) in launches.iter().enumerate() {
        for arc in instance.predecessors(launch.node) {
            let mut common: BTreeMap<usize, u32> = BTreeMap::new();
            for input in &launch.inputs {
                *common.entry(launch_of[arc.task * inputs + *input as usize]).or_default() += 1;
            }
            for (producer, count) in common {
                readers.entry((arc.tensor, producer, count)).or_default().push(index);
            }
        }
    }
    let tensor = |((tensor, from, count), to): ((usize, usize, u32), Vec<usize>)| Tensor {
        from,
        bytes: instance.tensors()[tensor].bytes * f64::from(count),
        to,
    };
    readers.into_iter().map(tensor).collect()
}

/// Returns lists of launches of co-located tasks that have an input in common.
fn colocated(instance: &Instance, launch_of: &[usize]) -> Vec<Vec<usize>> {
    let inputs = instance.inputs() as usize;
    let mut lists = BTreeSet::new();
    for group in instance.groups().iter().filter(|group| group.len() > 1) {
        for input in 0..inputs {
            lists.insert(group.iter().map(|task| launch_of[task * inputs + input]).collect::<Vec<_>>());
        }
    }
    lists.into_iter().collect()
}
