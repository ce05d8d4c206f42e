//! Pipelines whose stages take batches or whose devices take turns: the launches of one request.
//!
//! A request has as many inputs as repeat the batches of all stages and the turns of their devices. Successive requests
//! overlap, as in other pipelines.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use crate::launches::Launches;
use crate::line::{Line, Piece};
use divi_planner::error::{Error, Finding};
use divi_planner::plan::{Batch, Plan, Schedule, Turns};
use divi_planner::problem::Problem;
use divi_planner::units::Micros;
use divi_planner::{Terms, value_under};

/// Maximum number of inputs of a request of a pipeline.
pub const MOST_REQUEST_INPUTS: u32 = 4096;

/// Stages of a pipeline, without the model's inputs and outputs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TurnStages {
    /// Stage of each node; `None` for the model's inputs and outputs.
    pub stage: Vec<Option<usize>>,
    /// Number of inputs of a launch of each stage.
    pub batch: Vec<u32>,
    /// Devices of each stage, in the order of their turns.
    pub devices: Vec<Vec<usize>>,
    /// Tasks of each stage, in execution order.
    pub order: Vec<Vec<usize>>,
}

impl TurnStages {
    /// Reads the stages of a plan on devices, numbered in topological order, lowest block first. `None` for other plans.
    /// `ports` are the nodes of the model's inputs and outputs; detected if not given.
    pub fn of(problem: &Problem, plan: &Plan, ports: Option<&[usize]>) -> Result<Option<Self>, Error> {
        let Schedule::BatchedPipeline { block, turns: Turns::Devices { batch, devices }, order, .. } = &plan.schedule
        else {
            return Ok(None);
        };
        check_lists(problem, block, batch, devices)?;
        let is_port = ports_of(problem, ports);
        let blocks = topological(problem, block, &is_port)?;
        let number: BTreeMap<usize, usize> = blocks.iter().copied().zip(0..).collect();
        let stage: Vec<Option<usize>> =
            block.iter().zip(&is_port).map(|(of, port)| (!port).then(|| number[of])).collect();
        let in_order: Cow<'_, [usize]> = match order {
            Some(order) => order.iter().flatten().copied().filter(|node| *node < block.len()).collect(),
            None => problem.topological_order().map_err(|finding| Error::Plan(vec![finding]))?.into(),
        };
        let mut tasks = vec![vec![]; blocks.len()];
        for &node in in_order.iter() {
            stage[node].into_iter().for_each(|stage| tasks[stage].push(node));
        }
        let of_stages = blocks.iter();
        Ok(Some(Self {
            stage,
            batch: of_stages.clone().map(|of| batch[*of]).collect(),
            devices: of_stages.map(|of| devices[*of].clone()).collect(),
            order: tasks,
        }))
    }

    /// Returns the number of inputs of a request: the least common multiple of the inputs of a turn of all devices of each
    /// stage. The error names the stage with which it exceeds [`MOST_REQUEST_INPUTS`].
    pub fn request_inputs(&self) -> Result<u32, Error> {
        let mut inputs = 1_u64;
        for (stage, (batch, devices)) in self.batch.iter().zip(&self.devices).enumerate() {
            let turn = u64::from(*batch) * devices.len() as u64;
            inputs = (inputs / gcd(inputs, turn)).saturating_mul(turn);
            if inputs > MOST_REQUEST_INPUTS.into() {
                let message = format!(
                    "the batches and turns of the stages repeat only after more than {MOST_REQUEST_INPUTS} inputs (stage \
                     {stage} takes batches of {batch} on {}): reduce the maximum batch size or the replicas, or give the \
                     devices batch sizes that divide each other",
                    match devices.len() {
                        1 => "1 device".to_owned(),
                        count => format!("{count} devices"),
                    }
                );
                return Err(Error::Unsupported(message));
            }
        }
        Ok(inputs as u32)
    }

    /// Returns true if each stage takes one input on one device, as in [`Schedule::Pipeline`].
    pub fn is_plain(&self) -> bool {
        self.batch.iter().all(|batch| *batch == 1) && self.devices.iter().all(|devices| devices.len() == 1)
    }

    /// Builds the schedule: the stages in order, then a block for each of the model's inputs and outputs, on the device that
    /// it is pinned to. Its batch size is the one that has most in common with those of the stages on the other end, and is
    /// one of its device and at most `max_batch`.
    pub fn schedule(&self, problem: &Problem, max_batch: u32, bottleneck: Micros) -> Result<Schedule, Error> {
        let (mut batch, mut devices, mut order) = (self.batch.clone(), self.devices.clone(), self.order.clone());
        let mut neighbors: Vec<BTreeSet<u32>> = vec![BTreeSet::new(); problem.nodes.len()];
        for tensor in problem.all_tensors() {
            for &to in &tensor.to {
                for (port, other) in [(tensor.from, to), (to, tensor.from)] {
                    neighbors[port].extend(self.stage[other].map(|stage| self.batch[stage]));
                }
            }
        }
        let mut block = Vec::with_capacity(problem.nodes.len());
        for (node, stage) in self.stage.iter().enumerate() {
            if let Some(stage) = stage {
                block.push(*stage);
                continue;
            }
            let on = problem.nodes[node].pin.unwrap_or(0);
            let runs = |size: &&u32| {
                let times = problem.nodes[node].time.get(*size);
                **size <= max_batch && times.is_some_and(|times| times[on].is_some())
            };
            let common = |size: u32| neighbors[node].iter().map(|other| gcd(size.into(), (*other).into())).sum::<u64>();
            let sizes = problem.devices[on].batch_sizes.iter().filter(runs);
            // The least of equals.
            let Some(&size) = sizes.max_by_key(|size| (common(**size), std::cmp::Reverse(**size))) else {
                let message = format!(
                    "is on {}, which has no batch size up to {max_batch}: increase the maximum batch size",
                    problem.device_label(on)
                );
                return Err(Error::Plan(vec![Finding::new(problem.node_label(node), message)]));
            };
            block.push(batch.len());
            batch.push(size);
            devices.push(vec![on]);
            order.push(vec![node]);
        }
        let k = batch.len() as u32;
        let turns = Turns::Devices { batch, devices };
        Ok(Schedule::BatchedPipeline { block, k, bottleneck, turns, order: Some(order) })
    }

    /// Returns the device of each stage's launches for some input.
    fn device_of(&self, stage: usize, launch: u32) -> usize {
        self.devices[stage][launch as usize % self.devices[stage].len()]
    }
}

/// Returns a pipeline of batches with its stages in topological order and the model's inputs and outputs in blocks of their
/// own, see [`TurnStages::schedule`], with the value of that, and its stages. Other plans are returned as they are, without
/// stages. A plan that was proven under a maximum batch size records it.
pub fn in_stage_order(
    problem: &Problem,
    plan: Plan,
    ports: Option<&[usize]>,
) -> Result<(Plan, Option<TurnStages>), Error> {
    let Some(stages) = TurnStages::of(problem, &plan, ports)? else { return Ok((plan, None)) };
    let max_batch = plan.max_batch.unwrap_or_else(|| problem.default_batch());
    let schedule = stages.schedule(problem, max_batch, plan.value)?;
    let mut plan = Plan { schedule, max_batch: Some(max_batch), ..plan };
    let value = value_under(problem, &plan, &Terms::stated_by(&plan))?;
    if let Schedule::BatchedPipeline { bottleneck, .. } = &mut plan.schedule {
        *bottleneck = value;
    }
    plan.value = value;
    plan.prove(plan.bound());
    Ok((plan, Some(stages)))
}

/// Returns the launches of one request of a pipeline of batches, at their earliest times.
pub fn request_launches(problem: &Problem, stages: &TurnStages, ports: Option<&[usize]>) -> Result<Vec<Batch>, Error> {
    let launches = Launches::of_request(problem, stages, ports)?;
    let times = crate::times_of(&line(&launches, stages), &launches, false)?;
    let batch = |(launch, start): (&crate::launches::Launch, &Micros)| Batch {
        node: launch.node,
        device: launch.device,
        inputs: launch.inputs.clone(),
        start: *start,
    };
    Ok(launches.all.iter().zip(&times.start).map(batch).collect())
}

/// Problem of a request, and its launches without starts.
pub(crate) struct Request {
    pub(crate) problem: Problem,
    pub(crate) batches: Vec<Batch>,
}

impl Request {
    /// Builds the queue of a request's inputs. The model's inputs and outputs take all of them at once.
    pub(crate) fn of(problem: &Problem, stages: &TurnStages) -> Result<Self, Error> {
        let inputs = stages.request_inputs()?;
        let mut problem = problem.clone();
        problem.inputs = inputs;
        let devices = problem.devices.len();
        for node in &mut problem.nodes {
            node.time.entry(inputs).or_insert_with(|| vec![None; devices]);
        }
        let mut batches = Vec::new();
        let launch = |node, device, inputs| Batch { node, device, inputs, start: Micros::ZERO };
        for (node, stage) in stages.stage.iter().enumerate() {
            let Some(stage) = *stage else {
                let on = problem.nodes[node].pin.unwrap_or(0);
                let times = (0..devices).map(|device| (device == on).then_some(Micros::ZERO)).collect();
                problem.nodes[node].time.insert(inputs, times);
                if !problem.devices[on].batch_sizes.contains(&inputs) {
                    problem.devices[on].batch_sizes.push(inputs);
                }
                batches.push(launch(node, on, (0..inputs).collect()));
                continue;
            };
            let size = stages.batch[stage];
            let of_launch = |number: u32| {
                launch(node, stages.device_of(stage, number), (number * size..(number + 1) * size).collect())
            };
            batches.extend((0..inputs / size).map(of_launch));
        }
        Ok(Self { problem, batches })
    }
}

/// Builds a piece for each launch of a stage. A device runs the launches in the order in which all inputs that they depend
/// on have been read; stages in order, of equals.
pub(crate) fn line(launches: &Launches, stages: &TurnStages) -> Line {
    // Last input that each launch depends on.
    let mut needs: Vec<u32> = vec![0; launches.all.len()];
    let mut pieces: Vec<(u32, usize, usize, Piece)> = Vec::new();
    for (stage, tasks) in stages.order.iter().enumerate() {
        let Some(&first) = tasks.first() else { continue };
        for number in 0..launches.of_node[first].len() {
            let own: Vec<usize> = tasks.iter().map(|node| launches.of_node[*node][number]).collect();
            let read = own.iter().flat_map(|launch| &launches.reads[*launch]).map(|read| needs[read.launch]);
            let last = launches.all[own[0]].inputs.last().copied().unwrap_or(0);
            let need = read.fold(last, u32::max);
            own.iter().for_each(|launch| needs[*launch] = need);
            pieces.push((need, stage, number, Piece { device: launches.all[own[0]].device, launches: own }));
        }
    }
    pieces.sort_by_key(|(need, stage, number, _)| (*need, *stage, *number));
    Line::new(launches, pieces.into_iter().map(|(_, _, _, piece)| piece).collect())
}

/// Returns the greatest common divisor of two positive numbers.
fn gcd(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { gcd(b, a % b) }
}

/// Checks lengths and ranges of the lists of a plan, so that its stages can be read.
fn check_lists(problem: &Problem, block: &[usize], batch: &[u32], devices: &[Vec<usize>]) -> Result<(), Error> {
    let wrong = |key: &str, message: String| Err(Error::Plan(vec![Finding::new(key, message)]));
    if block.len() != problem.nodes.len() {
        let nodes = problem.nodes.len();
        return wrong("block", format!("has {} entries, but there are {nodes} nodes", block.len()));
    }
    if batch.len() != devices.len() || block.iter().any(|of| *of >= batch.len()) {
        return wrong("batch", format!("has {} entries, but there are other blocks", batch.len()));
    }
    if let Some(of) = batch.iter().position(|size| *size == 0) {
        return wrong("batch", format!("block {of} takes no inputs; at least 1"));
    }
    let count = problem.devices.len();
    if let Some(of) = devices.iter().position(|list| list.is_empty() || list.iter().any(|on| *on >= count)) {
        return wrong("block_devices", format!("block {of} has no device, or one of more than {count}"));
    }
    Ok(())
}

/// Returns true for each node that is an input or output of the model.
fn ports_of(problem: &Problem, ports: Option<&[usize]>) -> Vec<bool> {
    if let Some(ports) = ports {
        return (0..problem.nodes.len()).map(|node| ports.contains(&node)).collect();
    }
    let (mut makes, mut reads) = (vec![false; problem.nodes.len()], vec![false; problem.nodes.len()]);
    for tensor in problem.all_tensors() {
        makes[tensor.from] |= !tensor.to.is_empty();
        tensor.to.iter().for_each(|to| reads[*to] = true);
    }
    let is_free = |node: usize| problem.nodes[node].time.values().flatten().flatten().all(|time| *time == Micros::ZERO);
    let is_port = |node: usize| problem.nodes[node].pin.is_some() && !(makes[node] && reads[node]) && is_free(node);
    (0..problem.nodes.len()).map(is_port).collect()
}

/// Returns the blocks that have tasks in topological order, lowest first.
fn topological(problem: &Problem, block: &[usize], is_port: &[bool]) -> Result<Vec<usize>, Error> {
    let mut left: BTreeMap<usize, BTreeSet<usize>> = BTreeMap::new();
    block.iter().zip(is_port).filter(|(_, port)| !**port).for_each(|(of, _)| {
        left.entry(*of).or_default();
    });
    for tensor in problem.all_tensors().into_iter().filter(|tensor| !is_port[tensor.from]) {
        for &to in tensor.to.iter().filter(|to| !is_port[**to] && block[**to] != block[tensor.from]) {
            left.entry(block[to]).or_default().insert(block[tensor.from]);
        }
    }
    let mut order = Vec::with_capacity(left.len());
    while !left.is_empty() {
        let Some(next) = left.iter().find(|(_, others)| others.is_empty()).map(|(of, _)| *of) else {
            return Err(Error::Plan(vec![Finding::new("block", "blocks form a cycle")]));
        };
        left.remove(&next);
        left.values_mut().for_each(|others| {
            others.remove(&next);
        });
        order.push(next);
    }
    Ok(order)
}
