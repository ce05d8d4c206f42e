//! Pipelines of all kinds: blocks on a problem's devices, on homogeneous devices, or placements in an edge network.

mod turns;

use divi_planner::Error;
use divi_planner::plan::{Plan, Schedule, Stages, Turns};
use divi_planner::problem::{EdgeNetwork, Pipeline, Problem, Tensor};
use divi_planner::units::{Bytes, BytesPerMicro, Micros};

use super::lives::{Life, most, profile};
use super::memory::everything;
use super::steady::{Links, View};
use super::{Launch, Memory, StageCost, Timeline, moving, no_link, ports, wrong};
use crate::order::{edges, topological};

/// Computes the steady state of a pipeline.
pub(super) fn timeline(problem: &Problem, plan: &Plan) -> Result<Timeline, Error> {
    let view = match &plan.schedule {
        Schedule::Pipeline { block, k, stages, .. } => {
            let cost = cost(plan)?;
            let blocks = Blocks::of(problem, block, *k as usize, stages.as_ref())?;
            let devices = stages.as_ref().and_then(|stages| stages.block_device.as_ref());
            match (devices, &problem.mtpp) {
                (Some(devices), _) => on_devices(problem, &blocks, devices, cost)?,
                (None, Some(view)) => on_equal_devices(problem, view, &blocks, cost),
                (None, None) => {
                    let message = "is missing, and the problem has no pipeline view (mtpp)";
                    return Err(wrong("block_device", message));
                }
            }
        }
        Schedule::BatchedPipeline { block, k, turns: Turns::Devices { batch, devices }, order, .. } => {
            let order = Stages { block_device: None, order: order.clone() };
            let blocks = Blocks::of(problem, block, *k as usize, Some(&order))?;
            turns::on_devices(problem, &blocks, batch, devices, cost(plan)?)?
        }
        Schedule::BatchedPipeline { .. } => {
            let message =
                "pipelines whose stages have several equal devices (mtpp) are not reported; plan without --replicas";
            return Err(Error::Unsupported(message.to_owned()));
        }
        Schedule::Edge { place, .. } => in_network(problem, place)?,
        Schedule::Latency { .. } | Schedule::Batch { .. } => View::default(),
    };
    Ok(view.timeline(problem))
}

fn cost(plan: &Plan) -> Result<StageCost, Error> {
    match plan.pipeline_cost.as_deref() {
        None | Some("serial") => Ok(StageCost::Serial),
        Some("overlap") => Ok(StageCost::Overlap),
        Some(other) => Err(wrong("pipeline_cost", format!("unknown cost model '{other}'; expected serial or overlap"))),
    }
}

/// Blocks of a pipeline in topological order.
struct Blocks<'a> {
    of_node: &'a [usize],
    /// Position of each block in that order.
    place: Vec<usize>,
    /// All nodes: block by block, in the execution order of each block.
    order: Vec<usize>,
}

impl<'a> Blocks<'a> {
    fn of(problem: &Problem, block: &'a [usize], k: usize, stages: Option<&Stages>) -> Result<Self, Error> {
        let nodes = problem.nodes.len();
        if block.len() != nodes {
            return Err(wrong("block", format!("has {} entries, but there are {nodes} nodes", block.len())));
        }
        if let Some(node) = block.iter().position(|of| *of >= k) {
            let message = format!("is in block {}, but there are only {k} blocks", block[node]);
            return Err(wrong(problem.node_label(node), message));
        }
        let edges = edges(problem);
        let between = edges.iter().map(|(from, to)| (block[*from], block[*to])).filter(|(from, to)| from != to);
        let flow = topological(k, between);
        if flow.len() < k {
            return Err(wrong("block", "blocks form a cycle"));
        }
        let mut place = vec![0; k];
        flow.iter().enumerate().for_each(|(at, of)| place[*of] = at);
        let order = match stages.and_then(|stages| stages.order.as_ref()) {
            Some(order) => {
                let order: Vec<usize> = flow.iter().filter_map(|of| order.get(*of)).flatten().copied().collect();
                let mut sorted = order.clone();
                sorted.sort_unstable();
                if !sorted.into_iter().eq(0..nodes) {
                    return Err(wrong("order", format!("does not contain each of the {nodes} nodes exactly once")));
                }
                order
            }
            None => {
                let mut order = topological(nodes, edges.into_iter());
                order.sort_by_key(|node| place[block[*node]]);
                order
            }
        };
        Ok(Self { of_node: block, place, order })
    }

    /// Returns the blocks that are stages, in the order of the pipeline: those with more than model inputs and outputs.
    fn stages(&self, problem: &Problem) -> Vec<usize> {
        let ports = ports(problem);
        let mut works: Vec<usize> =
            (0..self.of_node.len()).filter(|node| !ports[*node]).map(|node| self.of_node[node]).collect();
        works.sort_unstable_by_key(|of| self.place[*of]);
        works.dedup();
        works
    }
}

/// Blocks on the problem's devices. Several inputs are in flight, so a device holds all tensors that its tasks access.
fn on_devices(problem: &Problem, blocks: &Blocks<'_>, devices: &[usize], cost: StageCost) -> Result<View, Error> {
    if devices.len() != blocks.place.len() {
        let message = format!("has {} entries, but there are {} blocks", devices.len(), blocks.place.len());
        return Err(wrong("block_device", message));
    }
    let place: Vec<usize> = blocks.of_node.iter().map(|of| devices[*of]).collect();
    check_devices(problem, &place)?;
    let work = |(node, on): (usize, &usize)| {
        problem.nodes[node].time.get(&1).and_then(|times| times[*on]).ok_or_else(|| {
            let message = format!("is on {}, which does not support it for one input", problem.device_label(*on));
            wrong(problem.node_label(node), message)
        })
    };
    let work: Vec<Micros> = place.iter().enumerate().map(work).collect::<Result<_, _>>()?;
    let mut stages = vec![Vec::new(); problem.devices.len()];
    for (number, of) in blocks.stages(problem).into_iter().enumerate() {
        stages[devices[of]].push(number);
    }
    let takes = |tensor: &Tensor, from: usize, to: usize| {
        moving(problem, from, to, tensor.bytes).ok_or_else(|| no_link(problem, tensor.from, from, to))
    };
    let links = Links::between(problem.all_tensors().iter().enumerate(), &place, takes)?;
    let names = problem.devices.iter().map(|device| device.name.clone()).collect();
    let memory = touched(problem, place.iter().map(|device| (vec![*device], 1)));
    let place = place.into_iter().map(|device| vec![device]).collect();
    Ok(View { names, place, work, order: blocks.order.clone(), links, stages, memory, cost, ..View::default() })
}

/// MTPP's view: one homogeneous device per block.
fn on_equal_devices(problem: &Problem, view: &Pipeline, blocks: &Blocks<'_>, cost: StageCost) -> View {
    let k = blocks.place.len();
    let place: Vec<usize> = blocks.of_node.iter().map(|of| blocks.place[*of]).collect();
    let tensors = problem.all_tensors();
    let takes = |tensor: &Tensor, _, _| Ok(tensor.bytes / view.bandwidth);
    let links = Links::between(tensors.iter().enumerate(), &place, takes).unwrap_or_default();
    let mut memory = Vec::new();
    let mut spill = Vec::new();
    for block in 0..k {
        let tasks: Vec<usize> = blocks.order.iter().copied().filter(|node| place[*node] == block).collect();
        let weights: Bytes = tasks.iter().map(|task| problem.nodes[*task].weight).sum();
        let peak = weights + held(problem, &tensors, &tasks);
        let capacity = view.memory;
        memory.push(Memory { weights, peak, counted: peak, capacity, profile: Vec::new() });
        spill.push(capacity.map_or(Bytes::ZERO, |capacity| (peak - capacity).max(Bytes::ZERO)));
    }
    View {
        names: (0..k).map(|stage| format!("stage {stage}")).collect(),
        place: place.into_iter().map(|device| vec![device]).collect(),
        work: view.work.clone(),
        order: blocks.order.clone(),
        links,
        equal: true,
        spill: spill.into_iter().map(|bytes| (bytes, bytes / view.bandwidth)).collect(),
        stages: vec![Vec::new(); k],
        memory,
        cost,
    }
}

/// Returns the maximum of live bytes while tasks run in sequence. A tensor from another block is live from the start until
/// its last use; one produced here until its last use, or until the end if another block uses it; scratch during its task.
fn held(problem: &Problem, tensors: &[Tensor], tasks: &[usize]) -> Bytes {
    // Each task counts as one microsecond.
    let one = Micros(1.0);
    let mut step = vec![None; problem.nodes.len()];
    tasks.iter().enumerate().for_each(|(at, task)| step[*task] = Some(Micros(at as f64)));
    let mut lives = Vec::new();
    for (at, task) in tasks.iter().enumerate() {
        let from = Micros(at as f64);
        lives.push(Life { bytes: problem.nodes[*task].scratch, from, until: from + one });
    }
    for tensor in tensors {
        let last = tensor
            .to
            .iter()
            .filter_map(|to| step[*to])
            .fold(None, |last: Option<Micros>, at| Some(last.map_or(at, |last| last.max(at))));
        let life = match (step[tensor.from], last) {
            (Some(_), _) if tensor.to.iter().any(|to| step[*to].is_none()) => {
                step[tensor.from].zip(Some(Micros(tasks.len() as f64)))
            }
            (Some(made), last) => Some((made, last.unwrap_or(made).max(made) + one)),
            (None, Some(last)) => Some((Micros::ZERO, last + one)),
            (None, None) => None,
        };
        lives.extend(life.map(|(from, until)| Life { bytes: tensor.bytes, from, until }));
    }
    most(&profile(&lives, Micros::ZERO))
}

/// Placement in an edge network: devices and links work in parallel.
fn in_network(problem: &Problem, place: &[usize]) -> Result<View, Error> {
    let Some(view) = &problem.edge else {
        return Err(wrong("place", "the problem has no view of an edge network (edge)"));
    };
    let nodes = problem.nodes.len();
    if place.len() != nodes {
        return Err(wrong("place", format!("has {} entries, but there are {nodes} nodes", place.len())));
    }
    check_devices(problem, place)?;
    let work = place.iter().zip(&view.flops).map(|(on, flops)| Micros(flops / view.rate[*on])).collect();
    // Each edge transfers its own bytes, even if other consumers read the same value.
    let edges = problem.edges.iter().flatten().zip(&view.edge_bytes);
    let tensors: Vec<Tensor> =
        edges.map(|((from, to), bytes)| Tensor { from: *from, bytes: *bytes, to: vec![*to] }).collect();
    // In a problem with edges, tensor numbers equal node numbers.
    let numbered = tensors.iter().map(|tensor| (tensor.from, tensor));
    let links = Links::between(numbered, place, |tensor, from, to| takes(problem, view, tensor, from, to))?;
    Ok(View {
        names: problem.devices.iter().map(|device| device.name.clone()).collect(),
        place: place.iter().map(|device| vec![*device]).collect(),
        work,
        order: topological(nodes, crate::order::edges(problem).into_iter()),
        links,
        stages: vec![Vec::new(); problem.devices.len()],
        memory: touched(problem, place.iter().map(|device| (vec![*device], 1))),
        cost: StageCost::Overlap,
        ..View::default()
    })
}

fn takes(problem: &Problem, view: &EdgeNetwork, tensor: &Tensor, from: usize, to: usize) -> Result<Micros, Error> {
    match view.bandwidth[from][to] {
        None => Ok(Micros::ZERO),
        Some(BytesPerMicro::ZERO) => Err(no_link(problem, tensor.from, from, to)),
        Some(bandwidth) => Ok(tensor.bytes / bandwidth),
    }
}

fn check_devices(problem: &Problem, place: &[usize]) -> Result<(), Error> {
    match place.iter().position(|on| *on >= problem.devices.len()) {
        Some(node) => {
            let message = format!("is on device {}, but there are only {}", place[node], problem.devices.len());
            Err(wrong(problem.node_label(node), message))
        }
        None => Ok(()),
    }
}

/// Returns the memory usage of each device if it holds all tensors that its tasks access. `place` has the devices of each
/// node, and the number of inputs that it takes at once.
fn touched(problem: &Problem, place: impl Iterator<Item = (Vec<usize>, u32)>) -> Vec<Memory> {
    let launch = |task: usize, device: usize, size: u32| Launch {
        task,
        device,
        inputs: (0..size).collect(),
        start: Micros::ZERO,
        end: Micros::ZERO,
    };
    let of_node = |(task, (devices, size)): (usize, (Vec<usize>, u32))| {
        devices.into_iter().map(move |device| launch(task, device, size))
    };
    let launches: Vec<Launch> = place.enumerate().flat_map(of_node).collect();
    let mut memory: Vec<Memory> = everything(problem, &launches)
        .into_iter()
        .zip(&problem.devices)
        .map(|(held, device)| Memory { peak: held, counted: held, capacity: device.memory, ..Memory::default() })
        .collect();
    launches.iter().for_each(|launch| memory[launch.device].weights += problem.nodes[launch.task].weight);
    memory
}
