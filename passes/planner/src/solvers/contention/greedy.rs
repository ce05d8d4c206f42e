//! A start that knows of buses: each task where it ends first, with its parameters by the quickest way.

use super::choice::{Choice, Job, jobs};
use super::model::{Model, Way};
use super::simulate::Simulator;
use crate::model::problem::MemoryModel;
use crate::model::units::{Bytes, Micros};

/// Ends that differ by less than this share are the same.
const SAME: f64 = 1e-9;

/// One input's tasks in an order. Of devices on which a task ends at the same time, that which has least to hold. None where a
/// task is left without a device.
pub(crate) fn first_to_end(model: &Model<'_>, order: &[usize], avoid: &[usize]) -> Option<Choice> {
    let mut choice = Choice::empty(model);
    extend_first_to_end(model, &mut choice, &mut Simulator::new(model), order, avoid)?;
    choice.order = jobs(model, order);
    Some(choice)
}

/// The same for some launches more, after those that the choice's order has. What they do is simulated, but the order is the
/// caller's to extend.
pub(crate) fn extend_first_to_end(
    model: &Model<'_>,
    choice: &mut Choice,
    simulator: &mut Simulator<'_>,
    launches: &[usize],
    avoid: &[usize],
) -> Option<()> {
    let mut group_device: Vec<Option<usize>> = vec![None; model.instance.groups().len()];
    let mut held: Vec<Bytes> = vec![0.0; model.devices];
    for job in &choice.order {
        if let Job::Run(launch) = *job {
            let launch = launch as usize;
            let device = usize::from(choice.device[launch]);
            group_device[model.instance.group_of(model.launches[launch].task)] = Some(device);
            held[device] += takes(model, launch, device, choice.way[launch]);
        }
    }
    for &launch in launches {
        let task = model.launches[launch].task;
        let group = model.instance.group_of(task);
        let steps = jobs(model, &[launch]);
        let mark = simulator.mark();
        let mut best: Option<(Micros, Bytes, usize, Way)> = None;
        let (avoided, spared): (Vec<usize>, Vec<usize>) =
            model.allowed(launch).into_iter().partition(|device| avoid.contains(device));
        // What is to be avoided is better than nothing.
        for (index, &device) in spared.iter().chain(&avoided).enumerate() {
            if index == spared.len() && best.is_some() {
                break;
            }
            if group_device[group].is_some_and(|fixed| fixed != device) {
                continue;
            }
            // Who comes first decides for all who share the device.
            if group_device[group].is_none()
                && held[device] + group_takes(model, group, device) > model.capacity[device]
            {
                continue;
            }
            for way in model.ways(launch, device) {
                let bytes = takes(model, launch, device, way);
                if held[device] + bytes > model.capacity[device] {
                    continue;
                }
                (choice.device[launch], choice.way[launch]) = (device as u16, way);
                simulator.run(choice, &steps);
                let end = simulator.end[launch];
                let possible = simulator.value.is_finite();
                simulator.rewind(&mark);
                let is_better = best.is_none_or(|(least, holds, ..)| {
                    end < least * (1.0 - SAME) || (end <= least * (1.0 + SAME) && held[device] < holds)
                });
                if possible && is_better {
                    best = Some((end, held[device], device, way));
                }
            }
        }
        let (_, _, device, way) = best?;
        (choice.device[launch], choice.way[launch]) = (device as u16, way);
        group_device[group] = Some(device);
        held[device] += takes(model, launch, device, way);
        simulator.run(choice, &steps);
    }
    Some(())
}

/// What a group takes from a device's memory at the least; infinite where one of it cannot run there.
fn group_takes(model: &Model<'_>, group: usize, device: usize) -> Bytes {
    let least = |launch: &usize| {
        let ways = if model.time(*launch, device).is_finite() { model.ways(*launch, device) } else { Vec::new() };
        ways.into_iter().map(|way| takes(model, *launch, device, way)).fold(f64::INFINITY, f64::min)
    };
    model.instance.groups()[group].iter().flat_map(|task| &model.of_task[*task]).map(least).sum()
}

/// What a launch takes from its device's memory for sure.
fn takes(model: &Model<'_>, launch: usize, device: usize, way: Way) -> Bytes {
    let task = model.launches[launch].task;
    let away = way == Way::Direct && model.needs_parameters(launch, device);
    let weight = if away { 0.0 } else { model.weight(launch) };
    match model.instance.memory_model() {
        MemoryModel::Static => model.instance.static_bytes(task, 1) - model.weight(launch) + weight,
        MemoryModel::Liveness => weight,
    }
}
