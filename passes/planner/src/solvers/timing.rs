//! Exact start times: a solver's times are rounded, so only its devices and its order are used.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::model::instance::Instance;
use crate::model::plan::{Batch, Schedule};
use crate::model::units::{Micros, Total};

/// Returns the launches of a schedule; for one input, each task is a launch.
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
        Schedule::Pipeline { .. } | Schedule::BatchedPipeline { .. } | Schedule::Edge { .. } => Vec::new(),
    }
}

/// Returns the launch of each task and input; `None` if one is missing.
pub(crate) fn launch_of(instance: &Instance, launches: &[Batch]) -> Option<Vec<usize>> {
    let inputs = instance.inputs() as usize;
    let mut launch_of = vec![None; instance.tasks() * inputs];
    for (index, launch) in launches.iter().enumerate() {
        for input in &launch.inputs {
            launch_of[launch.node * inputs + *input as usize] = Some(index);
        }
    }
    launch_of.into_iter().collect()
}

/// Starts every launch as early as possible with the order of each device unchanged, and returns the makespan. `None`
/// if an input is missing or a batch size is not supported.
pub(crate) fn retime(instance: &Instance, launches: &mut [Batch]) -> Option<Micros> {
    let inputs = instance.inputs() as usize;
    let launch_of = launch_of(instance, launches)?;
    // Readers of each launch, with the transfer time.
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
    // Ordered by midpoints, which is robust if a launch has zero duration and starts have rounding errors.
    let middle = |index: usize, launch: &Batch| Reverse((Total((launch.start + times[index] / 2.0).0), index));
    let mut free = vec![Micros::ZERO; instance.devices()];
    let mut earliest: Vec<Micros> = vec![Micros::ZERO; launches.len()];
    let mut end = Micros::ZERO;
    let ready = (0..launches.len()).filter(|index| waiting[*index] == 0);
    let mut ready: BinaryHeap<_> = ready.map(|index| middle(index, &launches[index])).collect();
    while let Some(Reverse((_, index))) = ready.pop() {
        let launch = &mut launches[index];
        launch.start = Micros::max(earliest[index], free[launch.device]);
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

/// Converts launches to the objective's schedule.
pub(crate) fn schedule(instance: &Instance, launches: Vec<Batch>, makespan: Micros, queue: bool) -> Schedule {
    if queue {
        return Schedule::Batch { batches: launches, makespan };
    }
    let (mut device, mut start) = (vec![0; instance.tasks()], vec![Micros::ZERO; instance.tasks()]);
    for launch in launches {
        (device[launch.node], start[launch.node]) = (launch.device, launch.start);
    }
    Schedule::Latency { device, start, makespan }
}
