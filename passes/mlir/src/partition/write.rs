//! Writes a plan as attributes of tasks, and its certificate onto the module.

use super::{copies, moves};
use crate::{
    cost::{CostSource, ModuleProblem},
    decisions::{self, PipelineRules},
    fingerprint::fingerprint,
    ir::{Failure, error},
    tasks::entry,
};
use divi_dialect::{BatchAttribute, Operation, attr};
use divi_planner::{
    Objective, Plan,
    plan::{Batch, LaunchRule, Limit, Schedule, Stages},
    units::Micros,
};
use divi_stages::{TurnStages, request_launches};

/// Removes the decisions of an earlier plan from a task, or from the entry function.
pub(crate) fn remove_decisions(task: Operation<'_>) {
    task.remove(attr::DEVICE);
    task.remove(attr::START);
    task.remove(attr::STAGE);
    task.remove(attr::BATCHES);
    task.remove(attr::MOVES);
}

/// Writes a plan onto the tasks of the module that it was made for. `stages` are those of a pipeline of batches.
pub(crate) fn write_plan(
    module: Operation<'_>,
    module_problem: &ModuleProblem<'_>,
    plan: &Plan,
    stages: Option<&TurnStages>,
) -> Result<(), Failure> {
    let writer = Writer { module_problem };
    module_problem.tasks.iter().chain([&module_problem.function]).for_each(|&operation| remove_decisions(operation));
    let mut shape = PipelineShape::default();
    match (&plan.schedule, stages) {
        (Schedule::Latency { device, start, .. }, _) => {
            for (task, node) in writer.tasks() {
                writer.device(task, device[node]);
                writer.start(task, start[node]);
            }
        }
        (Schedule::Batch { batches, .. }, _) => writer.batches(batches)?,
        (Schedule::Pipeline { block, stages: Some(Stages { block_device: Some(devices), order }), .. }, _) => {
            shape.stages = writer.pipeline(block, devices, order.as_deref());
        }
        (Schedule::BatchedPipeline { .. }, Some(stages)) => {
            shape = writer.turns(stages).map_err(|wrong| {
                error(module, &wrong.to_string());
                Failure
            })??;
        }
        (Schedule::Pipeline { .. } | Schedule::BatchedPipeline { .. } | Schedule::Edge { .. }, _) => {
            error(module, "the plan is for identical devices: plan for those of the module");
            return Err(Failure);
        }
    }
    moves::write_transfers(module_problem, &plan.transfers)?;
    copies::write(module_problem, &plan.copies)?;
    let marks = Marks {
        decisions: Some(decisions::fingerprint(&module_problem.tasks)),
        // Stages of several inputs have other batch sizes, and so another fingerprint.
        model: match plan.objective == Objective::Batch || shape.inputs > 1 {
            true => None,
            false => fingerprint(module, entry(module)?),
        },
        problem: Some(decisions::problem(&module_problem.problem, &PipelineRules::of_plan(plan))),
    };
    write_certificate(module, plan, shape, &marks);
    Ok(())
}

/// Fingerprints in a certificate, which reveal edits of the module or of the plan.
pub(crate) struct Marks {
    pub(crate) decisions: Option<String>,
    pub(crate) model: Option<String>,
    /// Problem that the bound was proven for.
    pub(crate) problem: Option<String>,
}

impl Marks {
    /// Returns the fingerprints that remain valid when a plan is outlined: stages compute the same as the model, while
    /// tasks have no decisions any more.
    pub(crate) fn kept(module: Operation<'_>) -> Self {
        let plan = module.get(attr::PLAN);
        let mark = |name| plan.and_then(|plan| attr::entry(plan, name)).and_then(attr::as_string);
        let kept = |name| mark(name).map(str::to_owned);
        Self { decisions: None, model: kept("model"), problem: kept("problem") }
    }
}

/// Size of a pipeline; other plans have none.
#[derive(Clone, Copy, Default)]
pub(crate) struct PipelineShape {
    /// Number of stages.
    pub(crate) stages: usize,
    /// Number of inputs of a request, if stages take batches or have several devices.
    pub(crate) inputs: u32,
}

/// Writes the certificate of a plan onto the module.
pub(crate) fn write_certificate(module: Operation<'_>, plan: &Plan, shape: PipelineShape, marks: &Marks) {
    let context = module.context();
    let mut entries = vec![
        ("objective", attr::string(context, plan.objective.name())),
        ("value", attr::float(context, plan.value.0)),
        ("bound", attr::float(context, plan.bound.0)),
        ("gap", attr::float(context, plan.gap)),
        ("bound_by", attr::string(context, &plan.bound_by)),
        ("proof", attr::string(context, plan.proof.name())),
        ("algorithm", attr::string(context, &plan.algorithm)),
        ("seed", attr::integer(context, i64::try_from(plan.seed).unwrap_or(i64::MAX))),
    ];
    entries.extend(plan.verified_bound.map(|verified| ("verified_bound", attr::float(context, verified.0))));
    entries.extend(CostSource::of(module).name().map(|source| ("costs", attr::string(context, source))));
    entries.extend(marks.decisions.as_ref().map(|decisions| ("decisions", attr::string(context, decisions))));
    entries.extend(marks.model.as_ref().map(|model| ("model", attr::string(context, model))));
    entries.extend(marks.problem.as_ref().map(|problem| ("problem", attr::string(context, problem))));
    let contention = module.get(attr::CONTENTION).filter(|name| *name != "off");
    let unit = attr::unit(context);
    entries.extend(module.has(attr::COLD).then_some(("cold", unit)));
    entries.extend(contention.map(|contention| ("contention", attr::string(context, contention))));
    match plan.limit {
        Some(Limit::Iterations(count)) => {
            entries.push(("iterations", attr::integer(context, i64::try_from(count).unwrap_or(i64::MAX))));
        }
        Some(Limit::Seconds(seconds)) => entries.push(("seconds", attr::float(context, seconds))),
        None => {}
    }
    match &plan.schedule {
        Schedule::Batch { batches, .. } => {
            let inputs = batches.iter().flat_map(|batch| &batch.inputs).max().map_or(1, |last| last + 1);
            entries.push(("inputs", attr::integer(context, inputs.into())));
            if plan.launches == LaunchRule::Many {
                entries.push(("launches", attr::string(context, plan.launches.name())));
            }
        }
        Schedule::Pipeline { .. } | Schedule::BatchedPipeline { .. } => {
            let count = |name, count: Option<u32>| Some((name, attr::integer(context, count?.into())));
            entries.push(("k", attr::integer(context, shape.stages as i64)));
            entries.extend(count("inputs", Some(shape.inputs).filter(|inputs| *inputs > 0)));
            entries.extend(count("max_batch", plan.max_batch));
            entries.extend(count("max_replicas", plan.max_replicas));
            entries.push(("pipeline_cost", attr::string(context, plan.pipeline_cost.as_deref().unwrap_or("serial"))));
            if plan.shared_devices {
                entries.push(("shared_devices", unit));
            }
        }
        Schedule::Latency { .. } | Schedule::Edge { .. } => {}
    }
    module.set(attr::PLAN, &entries);
}

/// Sets fingerprints in an existing certificate.
pub(crate) fn mark(module: Operation<'_>, marks: &[(&str, &str)]) {
    let Some(mut entries) = module.get(attr::PLAN).and_then(attr::as_dictionary) else { return };
    entries.retain(|(name, _)| marks.iter().all(|(mark, _)| mark != name));
    entries.extend(marks.iter().map(|(name, value)| (*name, attr::string(module.context(), value))));
    module.set(attr::PLAN, &entries);
}

struct Writer<'a> {
    module_problem: &'a ModuleProblem<'a>,
}

impl Writer<'_> {
    /// Returns each task with its node.
    fn tasks(&self) -> impl Iterator<Item = (Operation<'_>, usize)> {
        self.module_problem.tasks.iter().copied().zip(self.module_problem.first_task..)
    }

    fn device(&self, task: Operation<'_>, device: usize) {
        let name = &self.module_problem.problem.devices[device].name;
        task.set(attr::DEVICE, name);
    }

    fn start(&self, task: Operation<'_>, start: Micros) {
        task.set(attr::START, start.0);
    }

    fn batches(&self, batches: &[Batch]) -> Result<(), Failure> {
        let mut of: Vec<Vec<&Batch>> = vec![vec![]; self.module_problem.problem.nodes.len()];
        batches.iter().for_each(|batch| of[batch.node].push(batch));
        for (task, node) in self.tasks() {
            of[node].sort_by(|a, b| a.start.total_cmp(&b.start).then(a.device.cmp(&b.device)));
            let mut list = vec![];
            for batch in &of[node] {
                let mut inputs: Vec<i64> = batch.inputs.iter().map(|&input| input.into()).collect();
                inputs.sort_unstable();
                let device = &self.module_problem.problem.devices[batch.device].name;
                list.push(BatchAttribute::new(task.location(), device, batch.start.0, &inputs).ok_or(Failure)?);
            }
            task.set(attr::BATCHES, &list);
        }
        Ok(())
    }

    /// Writes the launches of one request of a pipeline of batches, with their stages.
    fn turns(&self, stages: &TurnStages) -> Result<Result<PipelineShape, Failure>, divi_planner::Error> {
        let (problem, ports) = (&self.module_problem.problem, self.module_problem.ports());
        let launches = request_launches(problem, stages, Some(&ports))?;
        let shape = PipelineShape { stages: stages.batch.len(), inputs: stages.request_inputs()? };
        for (task, node) in self.tasks() {
            stages.stage[node].into_iter().for_each(|stage| task.set(attr::STAGE, stage as i64));
        }
        Ok(self.batches(&launches).map(|()| shape))
    }

    /// Writes a pipeline and returns the number of stages. Stages are numbered in topological order; starts are
    /// relative to the beginning of the stage.
    fn pipeline(&self, block: &[usize], devices: &[usize], order: Option<&[Vec<usize>]>) -> usize {
        let mut stage_of = vec![None; devices.len()];
        let stages = self.stage_order(block, devices.len());
        for (stage, &block) in stages.iter().enumerate() {
            stage_of[block] = Some(stage);
        }
        let mut clock = vec![Micros::ZERO; devices.len()];
        let mut start = vec![Micros::ZERO; block.len()];
        let mut run = |node: usize| {
            let time =
                self.module_problem.problem.nodes[node].time.get(&1).and_then(|times| times[devices[block[node]]]);
            start[node] = clock[block[node]];
            clock[block[node]] += time.unwrap_or_default();
        };
        match order {
            Some(order) => order.iter().flatten().for_each(|&node| run(node)),
            // The nodes of a module are in topological order.
            None => (0..block.len()).for_each(run),
        }
        for (task, node) in self.tasks() {
            self.device(task, devices[block[node]]);
            self.start(task, start[node]);
            let stage = stage_of[block[node]].expect("a block with tasks is a stage");
            task.set(attr::STAGE, stage as i64);
        }
        stages.len()
    }

    /// Returns the blocks that have tasks in topological order; ties are resolved by the position of the first task in
    /// the module.
    fn stage_order(&self, block: &[usize], count: usize) -> Vec<usize> {
        let mut readers = vec![vec![]; count];
        let mut waits_for = vec![0usize; count];
        for tensor in self.module_problem.problem.all_tensors() {
            for &to in &tensor.to {
                if block[tensor.from] != block[to] {
                    readers[block[tensor.from]].push(block[to]);
                    waits_for[block[to]] += 1;
                }
            }
        }
        let mut first = vec![usize::MAX; count];
        for (node, &block) in block.iter().enumerate().rev() {
            first[block] = node;
        }
        let mut has_tasks = vec![false; count];
        self.tasks().for_each(|(_, node)| has_tasks[block[node]] = true);
        let mut ready: std::collections::BTreeSet<(usize, usize)> =
            (0..count).filter(|&block| waits_for[block] == 0).map(|block| (first[block], block)).collect();
        let mut order = vec![];
        while let Some((_, next)) = ready.pop_first() {
            if has_tasks[next] {
                order.push(next);
            }
            for &reader in &readers[next] {
                waits_for[reader] -= 1;
                if waits_for[reader] == 0 {
                    ready.insert((first[reader], reader));
                }
            }
        }
        order
    }
}
