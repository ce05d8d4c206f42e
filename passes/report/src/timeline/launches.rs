//! Launches of a schedule, with the times of the problem.

use divi_planner::Error;
use divi_planner::plan::{Batch, LaunchRule, Plan, Schedule};
use divi_planner::problem::Problem;
use divi_planner::units::Micros;

use super::{Launch, wrong};

/// Launches of each task by input.
pub(super) struct ByInput<'a> {
    /// By task: inputs and launches, sorted by input.
    of_task: Vec<Vec<(u32, &'a Launch)>>,
}

impl<'a> ByInput<'a> {
    pub(super) fn new(problem: &Problem, launches: &'a [Launch]) -> Self {
        let mut of_task: Vec<Vec<(u32, &'a Launch)>> = vec![Vec::new(); problem.nodes.len()];
        for launch in launches {
            of_task[launch.task].extend(launch.inputs.iter().map(|input| (*input, launch)));
        }
        of_task.iter_mut().for_each(|launches| launches.sort_by_key(|(input, _)| *input));
        Self { of_task }
    }

    /// Returns a task's launch for each of some inputs; an input that the task does not run has none.
    pub(super) fn of(&self, task: usize, inputs: &[u32]) -> impl Iterator<Item = (u32, &'a Launch)> {
        let launches = &self.of_task[task];
        inputs.iter().flat_map(move |input| {
            let first = launches.partition_point(|(other, _)| other < input);
            launches[first..].iter().take_while(move |(other, _)| other == input).copied()
        })
    }
}

/// Returns the launches of a schedule for one input or for a queue, sorted by start, device and task.
pub(super) fn of(problem: &Problem, plan: &Plan) -> Result<Vec<Launch>, Error> {
    let nodes = problem.nodes.len();
    let mut launches = Vec::with_capacity(nodes);
    match &plan.schedule {
        Schedule::Latency { device, start, .. } => {
            for (key, count) in [("device", device.len()), ("start", start.len())] {
                if count != nodes {
                    return Err(wrong(key, format!("has {count} entries, but there are {nodes} nodes")));
                }
            }
            for (node, (&device, &start)) in device.iter().zip(start).enumerate() {
                launches.push(launch(problem, &Batch { node, device, inputs: vec![0], start })?);
            }
        }
        Schedule::Batch { batches, .. } => {
            for (index, batch) in batches.iter().enumerate() {
                if batch.node >= nodes {
                    let message = format!("unknown node {}; the problem has {nodes} nodes", batch.node);
                    return Err(wrong(format!("batches[{index}]"), message));
                }
                launches.push(launch(problem, batch)?);
            }
        }
        Schedule::Pipeline { .. } | Schedule::BatchedPipeline { .. } | Schedule::Edge { .. } => {}
    }
    launches.sort_by(|a, b| a.start.total_cmp(&b.start).then((a.device, a.task).cmp(&(b.device, b.task))));
    let mut places: Vec<(usize, usize)> = launches.iter().map(|launch| (launch.task, launch.device)).collect();
    places.sort_unstable();
    if plan.launches == LaunchRule::One
        && let Some(twice) = places.windows(2).find(|pair| pair[0] == pair[1])
    {
        let device = problem.device_label(twice[0].1);
        return Err(wrong(problem.node_label(twice[0].0), format!("launches more than once on {device}")));
    }
    Ok(launches)
}

fn launch(problem: &Problem, batch: &Batch) -> Result<Launch, Error> {
    let label = || problem.node_label(batch.node);
    if batch.device >= problem.devices.len() {
        let message = format!("runs on device {}, but there are only {}", batch.device, problem.devices.len());
        return Err(wrong(label(), message));
    }
    let device = problem.device_label(batch.device);
    if !batch.start.is_finite() || batch.start < Micros::ZERO {
        return Err(wrong(label(), format!("starts at {} on {device}", batch.start)));
    }
    let mut inputs = batch.inputs.clone();
    inputs.sort_unstable();
    inputs.dedup();
    let size = u32::try_from(inputs.len()).ok();
    let time = size.and_then(|size| problem.nodes[batch.node].time.get(&size)).and_then(|times| times[batch.device]);
    let Some(time) = time else {
        return Err(wrong(label(), format!("{device} does not support it in a batch of {}", inputs.len())));
    };
    Ok(Launch { task: batch.node, device: batch.device, inputs, start: batch.start, end: batch.start + time })
}
