//! Exact starts: a solver's times are rounded, so only its devices and its order are taken.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::model::instance::Instance;
use crate::model::plan::{Batch, Schedule};
use crate::model::problem::MemoryModel;
use crate::model::units::{Bytes, Micros, Total};

/// The launches of a schedule; for one input, each task is a launch.
pub(crate) fn launches(schedule: &Schedule) -> Vec<Batch> {
    match schedule {
        Schedule::Latency { device, start, .. } => {
            let launch = |(node, (device, start)): (usize, (&usize, &Micros))| Batch {
                node,
                device: *device,
                inputs: vec![0],
                start: *start,
            };
            device.iter().zip(start).enumerate().map(launch).collect()
        }
        Schedule::Batch { batches, .. } => batches.clone(),
        Schedule::Pipeline { .. } | Schedule::Edge { .. } => Vec::new(),
    }
}

/// Starts every launch as early as it can with each device keeping its order, and says when the last one ends. None
/// where an input is missing or a batch cannot run.
pub(crate) fn retime(instance: &Instance, launches: &mut [Batch]) -> Option<Micros> {
    let inputs = instance.inputs() as usize;
    let mut launch_of = vec![None; instance.tasks() * inputs];
    for (index, launch) in launches.iter().enumerate() {
        for input in &launch.inputs {
            launch_of[launch.node * inputs + *input as usize] = Some(index);
        }
    }
    let launch_of = launch_of.into_iter().collect::<Option<Vec<usize>>>()?;
    // Who waits for whose values, how long after its end.
    let mut readers: Vec<Vec<(usize, Micros)>> = vec![Vec::new(); launches.len()];
    let mut waiting = vec![0; launches.len()];
    for (index, launch) in launches.iter().enumerate() {
        for arc in instance.predecessors(launch.node) {
            let mut writers: Vec<usize> =
                launch.inputs.iter().map(|input| launch_of[arc.task * inputs + *input as usize]).collect();
            writers.sort_unstable();
            for same in writers.chunk_by(|a, b| a == b) {
                let from = launches[same[0]].device;
                let hop = instance.transfer_of(arc.tensor, from, launch.device, u32::try_from(same.len()).ok()?);
                readers[same[0]].push((index, hop));
                waiting[index] += 1;
            }
        }
    }
    let time = |launch: &Batch| instance.time_at(launch.node, launch.device, u32::try_from(launch.inputs.len()).ok()?);
    let times = launches.iter().map(time).collect::<Option<Vec<Micros>>>()?;
    // Middles tell who is first even where one takes no time and starts are off by a rounding error.
    let middle = |index: usize, launch: &Batch| Reverse((Total(launch.start + times[index] / 2.0), index));
    let mut free = vec![0.0; instance.devices()];
    let mut earliest: Vec<Micros> = vec![0.0; launches.len()];
    let mut end: Micros = 0.0;
    let ready = (0..launches.len()).filter(|index| waiting[*index] == 0);
    let mut ready: BinaryHeap<_> = ready.map(|index| middle(index, &launches[index])).collect();
    while let Some(Reverse((_, index))) = ready.pop() {
        let launch = &mut launches[index];
        launch.start = f64::max(earliest[index], free[launch.device]);
        let over = launch.start + times[index];
        free[launch.device] = over;
        end = end.max(over);
        for &(reader, hop) in &readers[index] {
            earliest[reader] = earliest[reader].max(over + hop);
            waiting[reader] -= 1;
            if waiting[reader] == 0 {
                ready.push(middle(reader, &launches[reader]));
            }
        }
    }
    end.is_finite().then_some(end)
}

/// True if the devices hold what the launches put on them.
pub(crate) fn fits(instance: &Instance, launches: &[Batch]) -> bool {
    let held: Vec<Bytes> = match instance.memory_model() {
        MemoryModel::Static => {
            let mut held = vec![0.0; instance.devices()];
            for launch in launches {
                let count = u32::try_from(launch.inputs.len()).unwrap_or(u32::MAX);
                held[launch.device] += instance.static_bytes(launch.node, count);
            }
            held
        }
        MemoryModel::Liveness => instance.peak_use_of(launches),
    };
    instance.fits(&held)
}

/// Launches as the objective's schedule.
pub(crate) fn schedule(instance: &Instance, launches: Vec<Batch>, makespan: Micros, queue: bool) -> Schedule {
    if queue {
        return Schedule::Batch { batches: launches, makespan };
    }
    let (mut device, mut start) = (vec![0; instance.tasks()], vec![0.0; instance.tasks()]);
    for launch in launches {
        (device[launch.node], start[launch.node]) = (launch.device, launch.start);
    }
    Schedule::Latency { device, start, makespan }
}
