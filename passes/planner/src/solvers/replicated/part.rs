//! A part of a network on one host.

use std::collections::BTreeMap;

use crate::model::error::Error;
use crate::model::instance::Instance;
use crate::model::problem::{Device, Node, Problem, Tensor};
use crate::model::units::Micros;
use crate::solvers::cuts::segments;

/// Divides a network into parts of about equal work, in topological order: at single-task cuts if there are enough of
/// them.
pub(super) fn cut(instance: &Instance, parts: usize) -> Vec<Vec<usize>> {
    let order = instance.order();
    let work: Vec<Micros> = order.iter().map(|task| least_work(instance, *task)).collect();
    let ends: Vec<usize> = segments(instance).iter().map(|segment| segment.places.end).collect();
    let ends = if ends.len() >= 2 * parts { ends } else { (1..=order.len()).collect() };
    let total: Micros = work.iter().sum();
    let mut lists = Vec::with_capacity(parts);
    let (mut from, mut done, mut counted) = (0, Micros::ZERO, 0);
    for part in 1..=parts {
        let share = total * part as f64 / parts as f64;
        let mut until = from;
        for &end in ends.iter().filter(|end| **end > from) {
            done += work[counted..end].iter().sum::<Micros>();
            counted = end;
            if done > share * (1.0 + 1e-9) && part < parts {
                break;
            }
            until = end;
        }
        // Work beyond the end belongs to the next part.
        done -= work[until..counted].iter().sum::<Micros>();
        counted = until;
        lists.push(order[from..until].to_vec());
        from = until;
    }
    lists
}

/// Returns the minimum time per input of a task over devices and batch sizes.
fn least_work(instance: &Instance, task: usize) -> Micros {
    let on = |device: &usize| {
        let device = *device;
        let rate = move |size: &u32| Some(instance.time_at(task, device, *size)? / f64::from(*size));
        instance.batch_sizes(device).iter().filter_map(rate).fold(Micros::INFINITY, Micros::min)
    };
    instance.allowed(task).iter().map(on).fold(Micros::INFINITY, Micros::min)
}

/// Returns the problem of some tasks on some devices with some inputs; values of other tasks are available from the
/// start. Names are dropped, so that equal parts are equal problems.
pub(super) fn problem(whole: &Problem, tasks: &[usize], devices: &[usize], inputs: u32) -> Result<Problem, Error> {
    let place_of: BTreeMap<usize, usize> = tasks.iter().enumerate().map(|(place, task)| (*task, place)).collect();
    let device = |(id, device): (usize, &usize)| Device {
        id,
        name: format!("d{id}"),
        memory: whole.devices[*device].memory,
        batch_sizes: whole.devices[*device].batch_sizes.clone(),
    };
    let bandwidth = between(&whole.bandwidth, devices);
    let mut part = Problem::new("part", devices.iter().enumerate().map(device).collect(), bandwidth);
    part.link_latency = whole.link_latency.as_ref().map(|latency| between(latency, devices));
    part.memory_model = whole.memory_model;
    part.inputs = inputs;
    for (id, &task) in tasks.iter().enumerate() {
        let node = &whole.nodes[task];
        let pin = node.pin.map(|pin| devices.iter().position(|device| *device == pin));
        if pin == Some(None) {
            let message = format!("{} is pinned to a device of another node", whole.node_label(task));
            return Err(Error::NotFound(message));
        }
        let row = |times: &Vec<Option<Micros>>| devices.iter().map(|device| times[*device]).collect();
        let time = node.time.iter().map(|(size, times)| (*size, row(times))).collect();
        part.nodes.push(Node { id, name: None, time, pin: pin.flatten(), module: None, ..node.clone() });
    }
    let edges = whole.edges.iter().flatten();
    let inside = edges.filter_map(|(from, to)| Some((*place_of.get(from)?, *place_of.get(to)?))).collect();
    part.edges = whole.edges.as_ref().map(|_| inside);
    let tensor = |tensor: &Tensor| {
        let to = tensor.to.iter().filter_map(|reader| place_of.get(reader).copied()).collect();
        Some(Tensor { from: *place_of.get(&tensor.from)?, bytes: tensor.bytes, to })
    };
    part.tensors = whole.tensors.as_ref().map(|tensors| tensors.iter().filter_map(tensor).collect());
    for group in whole.colocate.iter().flatten() {
        let here: Vec<usize> = group.iter().filter_map(|task| place_of.get(task).copied()).collect();
        if !here.is_empty() && here.len() < group.len() {
            let message = format!("{} shares a device with tasks of another part", whole.node_label(group[0]));
            return Err(Error::NotFound(message));
        }
        part.colocate.get_or_insert_default().push(here);
    }
    Ok(part)
}

/// Returns the submatrix of some devices.
fn between<T: Copy>(matrix: &[Vec<T>], devices: &[usize]) -> Vec<Vec<T>> {
    devices.iter().map(|from| devices.iter().map(|to| matrix[*from][*to]).collect()).collect()
}
