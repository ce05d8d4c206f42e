//! Memory use of devices under contention and cold starts.

use super::choice::Choice;
use super::model::{Model, Route};
use super::simulate::Simulator;
use crate::model::instance::{Event, peak};
use crate::model::problem::MemoryModel;
use crate::model::units::{Bytes, Micros};

/// Tolerance for sums of bytes in a different order.
const ROUNDED: f64 = 1.0 + 1e-12;

/// Returns true if some choice might not fit; otherwise memory is ignored.
pub(super) fn binds(model: &Model<'_>) -> bool {
    let instance = model.instance;
    // Parameters on a multi-hop route also occupy the intermediate device.
    let forwarded: Bytes = match &model.cold {
        Some(_) => (0..instance.tasks()).map(|task| instance.weight_bytes(task)).sum(),
        None => Bytes::ZERO,
    };
    (0..model.devices).any(|device| {
        let inputs = instance.inputs();
        let of_task = |task: usize| match instance.memory_model() {
            MemoryModel::Static => instance.static_bytes(task, inputs),
            MemoryModel::Liveness => instance.weight_bytes(task) + instance.scratch_bytes(task) * f64::from(inputs),
        };
        let tensors: Bytes = match instance.memory_model() {
            MemoryModel::Static => Bytes::ZERO,
            MemoryModel::Liveness => instance.tensors().iter().map(|t| t.bytes * f64::from(inputs)).sum(),
        };
        let most: Bytes = (0..instance.tasks()).map(of_task).sum::<Bytes>() + tensors + forwarded;
        most > model.capacity[device]
    })
}

/// Returns true if every device's memory use fits. `simulator` has run the choice.
pub(super) fn fits(model: &Model<'_>, choice: &Choice, simulator: &Simulator<'_>) -> bool {
    let held = match model.instance.memory_model() {
        MemoryModel::Static => everything(model, choice),
        MemoryModel::Liveness => most_at_once(model, choice, simulator),
    };
    (0..model.devices).all(|device| held[device] <= model.capacity[device] * ROUNDED)
}

/// Returns true if a launch's parameters reside on its device.
fn holds_parameters(model: &Model<'_>, choice: &Choice, launch: usize) -> bool {
    choice.route[launch] != Route::Direct || !model.needs_parameters(launch, usize::from(choice.device[launch]))
}

fn everything(model: &Model<'_>, choice: &Choice) -> Vec<Bytes> {
    let instance = model.instance;
    let mut held = vec![Bytes::ZERO; model.devices];
    for (launch, of) in model.launches.iter().enumerate() {
        let device = usize::from(choice.device[launch]);
        let away = if holds_parameters(model, choice, launch) { Bytes::ZERO } else { model.weight(launch) };
        held[device] += instance.static_bytes(of.task, of.inputs.len() as u32) - away;
        if let (Route::Via(via), true) = (choice.route[launch], model.needs_parameters(launch, device)) {
            held[usize::from(via)] += model.weight(launch);
        }
    }
    held
}

/// Returns the peak use of each device. Live ranges follow the file format: results from the start of their launch
/// until they have been read and moved, moved tensors from the start of the transfer until they have been read, scratch
/// while a launch runs, parameters always, and forwarded parameters on an intermediate device from the start of the
/// first hop to the end of the second.
fn most_at_once(model: &Model<'_>, choice: &Choice, simulator: &Simulator<'_>) -> Vec<Bytes> {
    let instance = model.instance;
    let mut held = vec![Bytes::ZERO; model.devices];
    let mut events: Vec<Vec<Event>> = vec![Vec::new(); model.devices];
    let mut alive = |on: usize, bytes: Bytes, from: Micros, until: Micros| {
        if bytes > Bytes::ZERO && until > from {
            events[on].extend([Event { time: from, change: bytes }, Event { time: until, change: -bytes }]);
        }
    };
    let (start, end) = (&simulator.start, &simulator.end);
    let mut last_reader = vec![Micros(f64::NEG_INFINITY); model.tensor_routes()];
    let mut made_until: Vec<Vec<Micros>> =
        model.launches.iter().enumerate().map(|(at, of)| vec![end[at]; model.made_by[of.task].len()]).collect();
    let place = |tensor: usize| {
        let producer = instance.tensors()[tensor].producer;
        model.made_by[producer].iter().position(|made| *made == tensor).unwrap_or(0)
    };
    for (reader, device) in choice.device.iter().copied().enumerate() {
        for arc in model.predecessors(reader) {
            for &producer in model.of_task[arc.task].iter().filter(|producer| model.share_inputs(**producer, reader)) {
                if choice.device[producer] == device {
                    let until = &mut made_until[producer][place(arc.tensor)];
                    *until = until.max(end[reader]);
                } else {
                    let last = &mut last_reader[model.tensor_route(arc.tensor, producer, usize::from(device))];
                    *last = last.max(end[reader]);
                }
            }
        }
    }
    for moved in &simulator.moves {
        let until = &mut made_until[moved.producer][place(moved.tensor)];
        *until = until.max(moved.end);
        let bytes = model.moved(moved.tensor, moved.producer, moved.to, &choice.device);
        alive(moved.to, bytes, moved.start, last_reader[model.tensor_route(moved.tensor, moved.producer, moved.to)]);
    }
    for (launch, of) in model.launches.iter().enumerate() {
        let (device, count) = (usize::from(choice.device[launch]), of.inputs.len() as f64);
        if holds_parameters(model, choice, launch) {
            held[device] += model.weight(launch);
        }
        alive(device, instance.scratch_bytes(of.task) * count, start[launch], end[launch]);
        for (&tensor, until) in model.made_by[of.task].iter().zip(&made_until[launch]) {
            alive(device, instance.tensors()[tensor].bytes * count, start[launch], *until);
        }
    }
    // The two hops of a forwarded copy are adjacent.
    for hops in simulator.hops.windows(2) {
        if hops[0].launch == hops[1].launch && hops[1].via == Some(hops[0].to) {
            alive(hops[0].to, model.weight(hops[0].launch), hops[0].start, hops[1].end);
        }
    }
    held.into_iter().zip(events).map(|(held, events)| held + peak(events)).collect()
}
