//! What devices hold when buses and cold starts say when things come.

use super::choice::Choice;
use super::model::{Model, Way};
use super::simulate::Simulator;
use crate::model::instance::{Event, peak};
use crate::model::problem::MemoryModel;
use crate::model::units::{Bytes, Micros};

/// Sums of bytes that are added up in another order may be larger by this factor.
const ROUNDED: f64 = 1.0 + 1e-12;

/// Whether some choice might not fit; where none, memory need not be looked at.
pub(super) fn binds(model: &Model<'_>) -> bool {
    let instance = model.instance;
    // Parameters that are handed on lie on a device besides.
    let handed: Bytes = match &model.cold {
        Some(_) => (0..instance.tasks()).map(|task| instance.weight_bytes(task)).sum(),
        None => 0.0,
    };
    (0..model.devices).any(|device| {
        let inputs = instance.inputs();
        let of_task = |task: usize| match instance.memory_model() {
            MemoryModel::Static => instance.static_bytes(task, inputs),
            MemoryModel::Liveness => instance.weight_bytes(task) + instance.scratch_bytes(task) * f64::from(inputs),
        };
        let tensors: Bytes = match instance.memory_model() {
            MemoryModel::Static => 0.0,
            MemoryModel::Liveness => instance.tensors().iter().map(|t| t.bytes * f64::from(inputs)).sum(),
        };
        let most: Bytes = (0..instance.tasks()).map(of_task).sum::<Bytes>() + tensors + handed;
        most > model.capacity[device]
    })
}

/// Whether what each device holds fits. The simulation is that of the choice.
pub(super) fn fits(model: &Model<'_>, choice: &Choice, simulator: &Simulator<'_>) -> bool {
    let held = match model.instance.memory_model() {
        MemoryModel::Static => everything(model, choice),
        MemoryModel::Liveness => most_at_once(model, choice, simulator),
    };
    (0..model.devices).all(|device| held[device] <= model.capacity[device] * ROUNDED)
}

/// Whether a launch's parameters lie on its device.
fn holds_parameters(model: &Model<'_>, choice: &Choice, launch: usize) -> bool {
    choice.way[launch] != Way::Direct || !model.needs_parameters(launch, usize::from(choice.device[launch]))
}

fn everything(model: &Model<'_>, choice: &Choice) -> Vec<Bytes> {
    let instance = model.instance;
    let mut held = vec![0.0; model.devices];
    for (launch, of) in model.launches.iter().enumerate() {
        let device = usize::from(choice.device[launch]);
        let away = if holds_parameters(model, choice, launch) { 0.0 } else { model.weight(launch) };
        held[device] += instance.static_bytes(of.task, of.inputs.len() as u32) - away;
        if let (Way::Via(via), true) = (choice.way[launch], model.needs_parameters(launch, device)) {
            held[usize::from(via)] += model.weight(launch);
        }
    }
    held
}

/// Lives as the format describes them: results from their launch's start until they have been read and moved, copies from when
/// they start to move until they have been read, scratch while a launch runs, parameters all the time, and those that are
/// handed on from when they begin to come until they have gone.
fn most_at_once(model: &Model<'_>, choice: &Choice, simulator: &Simulator<'_>) -> Vec<Bytes> {
    let instance = model.instance;
    let mut held = vec![0.0; model.devices];
    let mut events: Vec<Vec<Event>> = vec![Vec::new(); model.devices];
    let mut alive = |on: usize, bytes: Bytes, from: Micros, until: Micros| {
        if bytes > 0.0 && until > from {
            events[on].extend([Event { time: from, change: bytes }, Event { time: until, change: -bytes }]);
        }
    };
    let (start, end) = (&simulator.start, &simulator.end);
    let mut last_reader = vec![Micros::NEG_INFINITY; model.ways_of_tensors()];
    let mut made_until: Vec<Vec<Micros>> =
        model.launches.iter().enumerate().map(|(at, of)| vec![end[at]; model.made_by[of.task].len()]).collect();
    let place = |tensor: usize| {
        let producer = instance.tensors()[tensor].producer;
        model.made_by[producer].iter().position(|made| *made == tensor).unwrap_or(0)
    };
    for (reader, device) in choice.device.iter().copied().enumerate() {
        for arc in model.predecessors(reader) {
            for &producer in model.of_task[arc.task].iter().filter(|producer| model.meet(**producer, reader)) {
                if choice.device[producer] == device {
                    let until = &mut made_until[producer][place(arc.tensor)];
                    *until = until.max(end[reader]);
                } else {
                    let last = &mut last_reader[model.way_of_tensor(arc.tensor, producer, usize::from(device))];
                    *last = last.max(end[reader]);
                }
            }
        }
    }
    for moved in &simulator.moves {
        let until = &mut made_until[moved.producer][place(moved.tensor)];
        *until = until.max(moved.end);
        let bytes = model.moved(moved.tensor, moved.producer, moved.to, &choice.device);
        alive(moved.to, bytes, moved.start, last_reader[model.way_of_tensor(moved.tensor, moved.producer, moved.to)]);
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
    // The two legs of what is handed on follow each other.
    for legs in simulator.legs.windows(2) {
        if legs[0].launch == legs[1].launch && legs[1].via == Some(legs[0].to) {
            alive(legs[0].to, model.weight(legs[0].launch), legs[0].start, legs[1].end);
        }
    }
    held.into_iter().zip(events).map(|(held, events)| held + peak(events)).collect()
}
