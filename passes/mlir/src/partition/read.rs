//! Reads the plan of a module from the attributes of its tasks.

use super::{copies, moves};
use crate::{
    cost::ModuleProblem,
    decisions::{self, PipelineRules},
    ir::{Failure, describe, error, warning},
    tasks::time_key,
};
use divi_dialect::{Operation, attr};
use divi_planner::{
    Objective, Options, Plan, Problem, api,
    plan::{Batch, Bound, LaunchRule, Limit, ParameterCopy, Proof, Schedule, Stages, Transfer},
    problem::{Contention, Tensor},
    units::{BytesPerMicro, Micros},
};
use divi_stages::TurnStages;
use melior::ir::Attribute;
use std::{
    cmp::Reverse,
    collections::{BTreeMap, BinaryHeap},
};

/// Reads the plan of a module from its attributes. Its value is computed from the starts, its bound is that of the
/// certificate. The plan is not verified. Errors are emitted on the operations.
pub(crate) fn read_plan(module: Operation<'_>, module_problem: &ModuleProblem<'_>) -> Result<Plan, Failure> {
    let Some(certificate) = module.get(attr::PLAN) else {
        error(module, "has no divi.plan: run divi-partition first");
        return Err(Failure);
    };
    let entry = |name| attr::entry(certificate, name);
    let string = |name| entry(name).and_then(attr::as_string);
    let integer = |name| entry(name).and_then(attr::as_integer);
    let number = |name| entry(name).and_then(attr::as_float);
    let objective: Option<Objective> = string("objective").and_then(|name| name.parse().ok());
    let says_moves = module_problem.problem.contention != Contention::Off && objective != Some(Objective::Pipeline);
    let transfers = if says_moves { moves::read(module_problem) } else { vec![] };
    let copies = copies::read(module_problem);
    let reader = Reader {
        module_problem,
        tensors: module_problem.problem.all_tensors(),
        transfers: &transfers,
        copies: &copies,
    };
    let launches = string("launches").and_then(|name| name.parse().ok()).unwrap_or(LaunchRule::One);
    let schedule = match objective {
        Some(Objective::Latency) => reader.latency()?,
        Some(Objective::Batch) => reader.batch()?,
        // A pipeline of batches has a number of inputs.
        Some(Objective::Pipeline) if entry("inputs").is_some() => reader.turns(certificate)?,
        Some(Objective::Pipeline) => reader.pipeline(Micros(number("value").unwrap_or(0.0)))?,
        None => {
            error(module, "has a divi.plan without an objective: run divi-partition again");
            return Err(Failure);
        }
    };
    let rules = PipelineRules::of_certificate(certificate);
    let proven_for = decisions::problem(&module_problem.problem, &rules);
    let bound = match string("problem").is_none_or(|problem| problem == proven_for) {
        true => stated_bound(certificate),
        false => known_bound(module, module_problem, schedule.objective(), launches)?,
    };
    let mut plan = Plan::new(&module_problem.problem, string("algorithm").unwrap_or_default(), schedule, bound);
    plan.warnings().iter().for_each(|message| warning(module, message));
    (plan.transfers, plan.copies, plan.launches) = (transfers, copies, launches);
    plan.seed = integer("seed").and_then(|seed| u64::try_from(seed).ok()).unwrap_or(0);
    plan.limit = match (integer("iterations"), number("seconds")) {
        (Some(count), _) => u64::try_from(count).ok().map(Limit::Iterations),
        (None, seconds) => seconds.map(Limit::Seconds),
    };
    if plan.objective == Objective::Pipeline {
        plan.pipeline_cost = rules.pipeline_cost.map(str::to_owned);
        (plan.shared_devices, plan.max_batch, plan.max_replicas) =
            (rules.shared_devices, rules.max_batch, rules.max_replicas);
    }
    Ok(plan)
}

/// Returns the bound that a certificate states. Without a proof, it counts as reported by the solver.
fn stated_bound(certificate: Attribute<'_>) -> Bound {
    let entry = |name| attr::entry(certificate, name);
    let number = |name| entry(name).and_then(attr::as_float);
    let proof = entry("proof").and_then(attr::as_string).and_then(|name| name.parse().ok()).unwrap_or(Proof::Solver);
    let by = entry("bound_by").and_then(attr::as_string).unwrap_or("nothing");
    let verified =
        number("verified_bound").filter(|_| proof == Proof::Solver).map(|value| Bound::new(Micros(value), "verified"));
    let bound = Bound::by(Micros(number("bound").unwrap_or(0.0)), by, proof);
    Bound { verified: verified.map(Box::new), ..bound }
}

/// Returns the best immediate bound of a problem whose costs or constraints have changed since planning.
fn known_bound(
    module: Operation<'_>,
    module_problem: &ModuleProblem<'_>,
    objective: Objective,
    launches: LaunchRule,
) -> Result<Bound, Failure> {
    if objective == Objective::Pipeline {
        return Ok(Bound::none());
    }
    let options = Options { launches, ..Options::default() };
    let known = api::bounds(&module_problem.problem, objective, &options).map_err(|wrong| {
        error(module, &wrong.to_string());
        Failure
    })?;
    Ok(known.into_iter().fold(Bound::none(), Bound::or))
}

struct Reader<'a> {
    module_problem: &'a ModuleProblem<'a>,
    tensors: Vec<Tensor>,
    /// Transfers with the times on the tasks, if they have any.
    transfers: &'a [Transfer],
    /// Copies of parameters.
    copies: &'a [ParameterCopy],
}

impl Reader<'_> {
    fn problem(&self) -> &Problem {
        &self.module_problem.problem
    }

    /// Returns each task with its node.
    fn tasks(&self) -> impl Iterator<Item = (Operation<'_>, usize)> {
        self.module_problem.tasks.iter().copied().zip(self.module_problem.first_task..)
    }

    /// Returns the nodes of the model's outputs.
    fn outputs(&self) -> std::ops::Range<usize> {
        self.module_problem.first_task + self.module_problem.tasks.len()..self.problem().nodes.len()
    }

    fn missing<T>(&self, task: Operation<'_>, name: &str) -> Result<T, Failure> {
        error(task, &format!("{} has no {name}: run divi-partition first", describe(task)));
        Err(Failure)
    }

    fn device(&self, task: Operation<'_>) -> Result<usize, Failure> {
        let name = task.get(attr::DEVICE);
        let known = name.and_then(|name| self.module_problem.device(name));
        known.map_or_else(|| self.missing(task, attr::DEVICE.name()), Ok)
    }

    fn start(&self, task: Operation<'_>) -> Result<Micros, Failure> {
        let start = task.get(attr::START).map(Micros);
        start.map_or_else(|| self.missing(task, attr::START.name()), Ok)
    }

    /// Returns the time at which inputs of a tensor that is computed at `end` are on the host. A missing link takes no
    /// time: the verifier reports it.
    fn arrival(&self, tensor: usize, inputs: &[u32], from: usize, end: Micros) -> Micros {
        let (problem, to) = (self.problem(), self.module_problem.host);
        let is_it = |moved: &&Transfer| {
            let has_inputs = |all: &Vec<u32>| all.iter().any(|input| inputs.contains(input));
            (moved.tensor, moved.from, moved.to) == (tensor, from, to) && moved.inputs.as_ref().is_none_or(has_inputs)
        };
        if let Some(moved) = self.transfers.iter().find(is_it) {
            return moved.end;
        }
        let latency = problem.link_latency.as_ref().and_then(|latency| latency[from][to]).unwrap_or_default();
        match problem.bandwidth[from][to] {
            Some(bandwidth) if from != to && bandwidth > BytesPerMicro::ZERO => {
                end + (self.tensors[tensor].bytes * inputs.len() as f64 / bandwidth + latency)
            }
            _ => end,
        }
    }

    /// Returns the time at which the host takes an output that has arrived: if transfers have times, not while it runs
    /// a task.
    fn taken(&self, arrival: Micros, host_runs: impl Iterator<Item = (Micros, Micros)>) -> Micros {
        let mut busy: Vec<(Micros, Micros)> =
            host_runs.filter(|_| !self.transfers.is_empty() || self.problem().cold.is_some()).collect();
        busy.sort_by(|a, b| a.0.total_cmp(&b.0));
        let later = |at: Micros, (start, end): (Micros, Micros)| if start < at && at < end { end } else { at };
        busy.into_iter().fold(arrival, later)
    }

    fn time(&self, node: usize, device: usize, count: usize) -> Micros {
        let is_copied = self.copies.iter().any(|copy| (copy.node, copy.to) == (node, device));
        self.module_problem.micros(node, device, count, is_copied)
    }

    fn latency(&self) -> Result<Schedule, Failure> {
        let count = self.problem().nodes.len();
        let (mut device, mut start) = (vec![self.module_problem.host; count], vec![Micros::ZERO; count]);
        for (task, node) in self.tasks() {
            (device[node], start[node]) = (self.device(task)?, self.start(task)?);
        }
        // Outputs start when their tensors have arrived.
        for (index, tensor) in self.tensors.iter().enumerate() {
            let end = start[tensor.from] + self.time(tensor.from, device[tensor.from], 1);
            let arrival = self.arrival(index, &[0], device[tensor.from], end);
            for &to in tensor.to.iter().filter(|to| self.outputs().contains(to)) {
                start[to] = Micros::max(start[to], arrival);
            }
        }
        let on_host = self.tasks().map(|(_, node)| node).filter(|node| device[*node] == self.module_problem.host);
        let busy: Vec<_> = on_host.map(|node| (start[node], start[node] + self.time(node, device[node], 1))).collect();
        for node in self.outputs() {
            start[node] = self.taken(start[node], busy.iter().copied());
        }
        let ends = (0..count).map(|node| start[node] + self.time(node, device[node], 1));
        let makespan = ends.fold(Micros::ZERO, Micros::max);
        Ok(Schedule::Latency { device, start, makespan })
    }

    fn batch(&self) -> Result<Schedule, Failure> {
        let all: Vec<u32> = (0..self.problem().inputs).collect();
        let host = self.module_problem.host;
        let whole = |node, start| Batch { node, device: host, inputs: all.clone(), start };
        let mut batches: Vec<Batch> =
            (0..self.module_problem.first_task).map(|node| whole(node, Micros::ZERO)).collect();
        for (task, node) in self.tasks() {
            let Some(list) = task.get(attr::BATCHES) else { return self.missing(task, attr::BATCHES.name()) };
            for batch in list {
                let Some(device) = self.module_problem.device(batch.device()) else {
                    return self.missing(task, attr::BATCHES.name());
                };
                let inputs = batch.inputs().into_iter().filter_map(|input| u32::try_from(input).ok()).collect();
                batches.push(Batch { node, device, inputs, start: Micros(batch.start()) });
            }
        }
        let end = &|batch: &Batch| batch.start + self.time(batch.node, batch.device, batch.inputs.len());
        for node in self.outputs() {
            let read = self.tensors.iter().enumerate().filter(|(_, tensor)| tensor.to.contains(&node));
            let arrivals = read.flat_map(|(index, tensor)| {
                let parts = batches.iter().filter(|batch| batch.node == tensor.from);
                parts.map(move |part| self.arrival(index, &part.inputs, part.device, end(part)))
            });
            let on_host = batches.iter().filter(|batch| batch.device == host);
            let busy = on_host.map(|batch| (batch.start, end(batch)));
            let start = self.taken(arrivals.fold(Micros::ZERO, Micros::max), busy);
            batches.push(whole(node, start));
        }
        let makespan = batches.iter().map(end).fold(Micros::ZERO, Micros::max);
        Ok(Schedule::Batch { batches, makespan })
    }

    /// Reads a pipeline. Stages are blocks; inputs and outputs are blocks of their own, after them.
    fn pipeline(&self, bottleneck: Micros) -> Result<Schedule, Failure> {
        let count = self.problem().nodes.len();
        let mut block = vec![usize::MAX; count];
        let mut start = vec![Micros::ZERO; count];
        let mut block_device: Vec<Option<usize>> = vec![];
        for (task, node) in self.tasks() {
            let stage = self.stage(task)?;
            let device = self.device(task)?;
            if block_device.len() <= stage {
                block_device.resize(stage + 1, None);
            }
            let first = *block_device[stage].get_or_insert(device);
            if first != device {
                let devices = &self.problem().devices;
                let message = format!(
                    "{} is in stage {stage} on @{}, but the stage is on @{}: a stage runs on one device",
                    describe(task),
                    devices[device].name,
                    devices[first].name
                );
                error(task, &message);
                return Err(Failure);
            }
            (block[node], start[node]) = (stage, self.start(task)?);
        }
        let mut devices: Vec<usize> = vec![];
        // Unused stage numbers are skipped.
        let mut numbers = vec![usize::MAX; block_device.len()];
        for (stage, device) in block_device.iter().enumerate() {
            if let Some(device) = device {
                numbers[stage] = devices.len();
                devices.push(*device);
            }
        }
        for block in &mut block {
            *block = numbers.get(*block).copied().unwrap_or_else(|| {
                devices.push(self.module_problem.host);
                devices.len() - 1
            });
        }
        let order = self.order(&block, &start, devices.len());
        let k = u32::try_from(devices.len()).unwrap_or(u32::MAX);
        let stages = Some(Stages { block_device: Some(devices), order: Some(order) });
        Ok(Schedule::Pipeline { block, k, bottleneck, stages })
    }

    /// Reads a pipeline of batches: the stage of each task, and its launches for the inputs of a request.
    fn turns(&self, certificate: Attribute<'_>) -> Result<Schedule, Failure> {
        let count = self.problem().nodes.len();
        let (mut stage, mut start) = (vec![None; count], vec![Micros::ZERO; count]);
        let mut stages: BTreeMap<usize, (Turn, Operation<'_>)> = BTreeMap::new();
        for (task, node) in self.tasks() {
            let number = self.stage(task)?;
            let Some(list) = task.get(attr::BATCHES) else { return self.missing(task, attr::BATCHES.name()) };
            let mut launches = vec![];
            for batch in list {
                let Some(device) = self.module_problem.device(batch.device()) else {
                    return self.missing(task, attr::BATCHES.name());
                };
                launches.push((batch.inputs(), device));
                start[node] = Micros(batch.start());
            }
            let turn = Turn::of(launches).ok_or_else(|| {
                let message = format!(
                    "{} does not take the inputs of a request in batches of one size, in order, on devices that take turns: \
                     run divi-partition again",
                    describe(task)
                );
                error(task, &message);
                Failure
            })?;
            let (first, with) = stages.entry(number).or_insert_with(|| (turn.clone(), task));
            if *first != turn {
                let message = format!(
                    "{} is in stage {number}, but has other batches or devices than {} of that stage: give it the same, or \
                     a stage of its own",
                    describe(task),
                    describe(*with)
                );
                error(task, &message);
                return Err(Failure);
            }
            stage[node] = Some(number);
        }
        // Unused stage numbers are skipped.
        let numbers: Vec<usize> = stages.keys().copied().collect();
        let place = |number: usize| numbers.binary_search(&number).unwrap_or_default();
        let stage: Vec<Option<usize>> = stage.into_iter().map(|number| number.map(place)).collect();
        let block: Vec<usize> = stage.iter().map(|stage| stage.unwrap_or(stages.len())).collect();
        let mut order = self.order(&block, &start, stages.len() + 1);
        order.truncate(stages.len());
        let (batch, devices) = stages.into_values().map(|(turn, _)| (turn.size, turn.devices)).unzip();
        let max_batch = PipelineRules::of_certificate(certificate).max_batch;
        let max_batch = max_batch.unwrap_or_else(|| self.problem().default_batch());
        let value = attr::entry(certificate, "value").and_then(attr::as_float).unwrap_or(0.0);
        TurnStages { stage, batch, devices, order }.schedule(self.problem(), max_batch, Micros(value)).map_err(
            |wrong| {
                error(self.module_problem.function, &wrong.to_string());
                Failure
            },
        )
    }

    /// Returns the stage of a task.
    fn stage(&self, task: Operation<'_>) -> Result<usize, Failure> {
        let stage = task.get(attr::STAGE).and_then(|stage| usize::try_from(stage).ok());
        let known = stage.filter(|stage| *stage < self.problem().nodes.len());
        known.map_or_else(|| self.missing(task, "divi.stage that counts stages"), Ok)
    }

    /// Returns the nodes of each block in topological order, and in order of start otherwise: starts are out of date if
    /// a task was moved by hand.
    fn order(&self, block: &[usize], start: &[Micros], blocks: usize) -> Vec<Vec<usize>> {
        let mut waits_for = vec![0usize; block.len()];
        let mut readers = vec![vec![]; block.len()];
        for tensor in &self.tensors {
            for &to in tensor.to.iter().filter(|&&to| block[to] == block[tensor.from]) {
                waits_for[to] += 1;
                readers[tensor.from].push(to);
            }
        }
        // Ties are in the order of the module.
        let key = |node: usize| Reverse((time_key(start[node]), node));
        let mut ready: BinaryHeap<_> = (0..block.len()).filter(|&node| waits_for[node] == 0).map(key).collect();
        let mut order: Vec<Vec<usize>> = vec![vec![]; blocks];
        while let Some(Reverse((_, node))) = ready.pop() {
            order[block[node]].push(node);
            for &reader in &readers[node] {
                waits_for[reader] -= 1;
                if waits_for[reader] == 0 {
                    ready.push(key(reader));
                }
            }
        }
        order
    }
}

/// Batch size of a task in a pipeline of batches, and the devices that take turns at it.
#[derive(Clone, PartialEq)]
struct Turn {
    size: u32,
    devices: Vec<usize>,
    /// Number of inputs of a request.
    inputs: i64,
}

impl Turn {
    /// Reads the turns of a task's launches, which have inputs and a device. `None` if they do not take the inputs in
    /// batches of one size, in order, or if the devices do not take turns.
    fn of(mut launches: Vec<(Vec<i64>, usize)>) -> Option<Self> {
        launches.iter_mut().for_each(|(inputs, _)| inputs.sort_unstable());
        launches.sort();
        let size = launches.first()?.0.len();
        let inputs = launches.iter().flat_map(|(inputs, _)| inputs);
        let is_in_order = inputs.clone().copied().eq(0..inputs.count() as i64);
        let devices: Vec<usize> = launches.iter().map(|(_, device)| *device).collect();
        let turn = (1..=devices.len()).find(|turn| devices.iter().zip(&devices[*turn..]).all(|(a, b)| a == b))?;
        let is_valid = is_in_order && size > 0 && launches.iter().all(|(inputs, _)| inputs.len() == size);
        let (size, inputs) = (u32::try_from(size).ok()?, (size * launches.len()) as i64);
        is_valid.then(|| Self { size, devices: devices[..turn].to_vec(), inputs })
    }
}
