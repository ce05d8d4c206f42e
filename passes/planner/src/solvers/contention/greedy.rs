//! Bus-aware greedy start: each task on the device with the earliest finish time, with the fastest route of its
//! parameters.

use super::choice::{Choice, Job, jobs};
use super::model::{Model, Route};
use super::simulate::Simulator;
use crate::model::problem::MemoryModel;
use crate::model::units::{Bytes, Micros};

/// Relative tolerance below which finish times are equal.
const SAME: f64 = 1e-9;

/// Schedules the tasks of one input in an order. Ties go to the device that holds fewer bytes. `None` if a task is left
/// without a device.
pub(crate) fn earliest_finish(model: &Model<'_>, order: &[usize], avoid: &[usize]) -> Option<Choice> {
    let mut choice = Choice::empty(model);
    extend_earliest_finish(model, &mut choice, &mut Simulator::new(model), order, avoid)?;
    choice.order = jobs(model, order);
    Some(choice)
}

/// Extends a choice by further launches. They are simulated; the caller extends the order.
pub(crate) fn extend_earliest_finish(
    model: &Model<'_>,
    choice: &mut Choice,
    simulator: &mut Simulator<'_>,
    launches: &[usize],
    avoid: &[usize],
) -> Option<()> {
    let mut group_device: Vec<Option<usize>> = vec![None; model.instance.groups().len()];
    let mut held: Vec<Bytes> = vec![Bytes::ZERO; model.devices];
    for job in &choice.order {
        if let Job::Run(launch) = *job {
            let launch = launch as usize;
            let device = usize::from(choice.device[launch]);
            group_device[model.instance.group_of(model.launches[launch].task)] = Some(device);
            held[device] += takes(model, launch, device, choice.route[launch]);
        }
    }
    for &launch in launches {
        let task = model.launches[launch].task;
        let group = model.instance.group_of(task);
        let steps = jobs(model, &[launch]);
        let mark = simulator.mark();
        let mut best: Option<(Micros, Bytes, usize, Route)> = None;
        let (avoided, spared): (Vec<usize>, Vec<usize>) =
            model.allowed(launch).into_iter().partition(|device| avoid.contains(device));
        // Avoided devices are used only if no other is possible.
        for (index, &device) in spared.iter().chain(&avoided).enumerate() {
            if index == spared.len() && best.is_some() {
                break;
            }
            if group_device[group].is_some_and(|fixed| fixed != device) {
                continue;
            }
            // The first task of a group decides for all.
            if group_device[group].is_none()
                && held[device] + group_takes(model, group, device) > model.capacity[device]
            {
                continue;
            }
            for route in model.routes(launch, device) {
                let bytes = takes(model, launch, device, route);
                if held[device] + bytes > model.capacity[device] {
                    continue;
                }
                (choice.device[launch], choice.route[launch]) = (device as u16, route);
                simulator.run(choice, &steps);
                let end = simulator.end[launch];
                let possible = simulator.value.is_finite();
                simulator.rewind(&mark);
                let is_better = best.is_none_or(|(least, holds, ..)| {
                    end < least * (1.0 - SAME) || (end <= least * (1.0 + SAME) && held[device] < holds)
                });
                if possible && is_better {
                    best = Some((end, held[device], device, route));
                }
            }
        }
        let (_, _, device, route) = best?;
        (choice.device[launch], choice.route[launch]) = (device as u16, route);
        group_device[group] = Some(device);
        held[device] += takes(model, launch, device, route);
        simulator.run(choice, &steps);
    }
    Some(())
}

/// Returns the minimum bytes that a group needs on a device; infinite if a member cannot run there.
fn group_takes(model: &Model<'_>, group: usize, device: usize) -> Bytes {
    let least = |launch: &usize| {
        let routes = if model.time(*launch, device).is_finite() { model.routes(*launch, device) } else { Vec::new() };
        routes.into_iter().map(|route| takes(model, *launch, device, route)).fold(Bytes::INFINITY, Bytes::min)
    };
    model.instance.groups()[group].iter().flat_map(|task| &model.of_task[*task]).map(least).sum()
}

/// Returns a lower bound on the bytes that a launch needs on its device.
fn takes(model: &Model<'_>, launch: usize, device: usize, route: Route) -> Bytes {
    let task = model.launches[launch].task;
    let away = route == Route::Direct && model.needs_parameters(launch, device);
    let weight = if away { Bytes::ZERO } else { model.weight(launch) };
    match model.instance.memory_model() {
        MemoryModel::Static => model.instance.static_bytes(task, 1) - model.weight(launch) + weight,
        MemoryModel::Liveness => weight,
    }
}
