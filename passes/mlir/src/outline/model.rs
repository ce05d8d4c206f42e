//! Module and plan together: the tensor of each value, and the stage of each task.

use crate::{
    cost::ModuleProblem,
    ir::{Failure, describe, error},
    rebatch::{Batch, Present, Rebatched},
    tasks::{Tasks, entry, task_name},
};
use divi_dialect::{Operation, Value, op};
use divi_planner::{Problem, plan::Schedule, problem::Tensor};
use divi_stages::{Stage, Staged};
use melior::{ContextRef, ir::TypeLike};
use rustc_hash::FxHashMap;
use std::collections::BTreeMap;

/// Module with its planning problem, its stages, and the relations between them.
pub(super) struct Model<'m> {
    pub(super) context: ContextRef<'m>,
    pub(super) module: Operation<'m>,
    pub(super) module_problem: &'m ModuleProblem<'m>,
    pub(super) staged: &'m Staged,
    pub(super) function: Tasks<'m>,
    pub(super) tensors: Vec<Tensor>,
    /// Value of each tensor; `None` where a task has no result.
    pub(super) values: Vec<Option<Value<'m>>>,
    tensor_of: FxHashMap<Value<'m>, usize>,
    /// Stage that runs a node for an input.
    stage_of: BTreeMap<(usize, u32), usize>,
    /// Number of inputs of the queue, or of a request of a pipeline.
    pub(super) queued: u32,
    /// If several inputs are queued: the function rebatched to each number of inputs that is launched, and to all.
    batched: BTreeMap<u32, Rebatched<'m>>,
}

impl<'m> Model<'m> {
    /// Checks all preconditions before anything is changed.
    pub(super) fn new(
        module: Operation<'m>,
        module_problem: &'m ModuleProblem<'m>,
        staged: &'m Staged,
    ) -> Result<Self, Failure> {
        let function = Tasks::of(entry(module)?)?;
        let tensors = module_problem.problem.all_tensors();
        let values = module_problem.values();
        let tensor = |(index, value): (usize, &Option<Value<'m>>)| Some(((*value)?, index));
        let mut stage_of = BTreeMap::new();
        for (index, Stage { tasks, inputs, .. }) in staged.stages.iter().enumerate() {
            for &task in tasks {
                inputs.iter().for_each(|&input| {
                    stage_of.insert((task, input), index);
                });
            }
        }
        let queued = staged.inputs;
        let mut model = Self {
            context: module.context(),
            module,
            module_problem,
            staged,
            tensor_of: values.iter().enumerate().filter_map(tensor).collect(),
            tensors,
            values,
            function,
            stage_of,
            queued,
            batched: BTreeMap::new(),
        };
        model.check_moves()?;
        if queued > 1 {
            model.follow_batch()?;
        }
        Ok(model)
    }

    pub(super) fn problem(&self) -> &Problem {
        &self.module_problem.problem
    }

    /// Returns true if launches are for some inputs of a queue or of a request.
    pub(super) fn is_queued(&self) -> bool {
        let schedule = &self.staged.plan.schedule;
        matches!(schedule, Schedule::Batch { .. } | Schedule::BatchedPipeline { .. })
    }

    pub(super) fn device_name(&self, device: usize) -> &str {
        &self.problem().devices[device].name
    }

    /// Returns the operation of a node.
    pub(super) fn operation(&self, node: usize) -> Operation<'m> {
        self.module_problem.tasks[node - self.module_problem.first_task]
    }

    pub(super) fn name(&self) -> &'m str {
        self.function.function.symbol_name().unwrap_or_default()
    }

    /// Returns the tensor of a value; `None` for constants and absent values.
    pub(super) fn tensor(&self, value: Value<'_>) -> Option<usize> {
        self.tensor_of.get(&value).copied().filter(|_| !value.is_none())
    }

    /// Returns true if a tensor that a stage computes is read outside it.
    pub(super) fn leaves(&self, tensor: usize, stage: usize) -> bool {
        let inputs = &self.staged.stages[stage].inputs;
        let elsewhere = |reader: usize| inputs.iter().any(|&input| self.stage_of.get(&(reader, input)) != Some(&stage));
        self.tensors[tensor].to.iter().any(|&reader| elsewhere(reader))
    }

    /// Returns the function rebatched to a number of inputs; `None` for one input.
    pub(super) fn at(&self, inputs: usize) -> Option<&Rebatched<'m>> {
        self.batched.get(&u32::try_from(inputs).ok()?).filter(|_| inputs > 1)
    }

    /// Returns the position of inputs in a tensor.
    pub(super) fn batch(&self, tensor: usize) -> Batch {
        let value = self.values[tensor].filter(|_| self.queued > 1);
        match (value, self.batched.get(&self.queued)) {
            (Some(value), Some(batched)) => batched.batch_of(value),
            _ => Batch::Same,
        }
    }

    /// Checks that only tensors are transferred.
    fn check_moves(&self) -> Result<(), Failure> {
        for step in &self.staged.moves {
            let Some(value) = self.values[step.tensor].filter(|&value| !value.is_none()) else { continue };
            if value.r#type().is_tensor() {
                continue;
            }
            let what = value.defining_op().map_or_else(|| "an argument".to_owned(), describe);
            let (from, to) = (self.device_name(step.from), self.device_name(step.to));
            let place = value.defining_op().unwrap_or(self.function.function);
            let message = format!(
                "{what} is read on @{to} but is on @{from}, and only tensors can be transferred: give both tasks the same \
                 divi.colocate"
            );
            error(place, &message);
            return Err(Failure);
        }
        Ok(())
    }

    /// Rebatches the function to each number of inputs, and checks that values between stages can be sliced and
    /// gathered.
    fn follow_batch(&mut self) -> Result<(), Failure> {
        let function = self.function.function;
        if !matches!(Present::of(function), Present::Size(_)) {
            let message = format!(
                "@{} has a batch of unknown size, so {} queued inputs cannot be separated: run divi-infer-shapes with \
                 batch=1 first",
                self.name(),
                self.queued
            );
            error(function, &message);
            return Err(Failure);
        }
        let counts = self.staged.stages.iter().map(|stage| stage.inputs.len() as u32);
        for count in counts.chain([self.queued]).collect::<std::collections::BTreeSet<u32>>() {
            self.batched.insert(count, Rebatched::of(function, count.into())?);
        }
        for (tensor, value) in self.values.iter().enumerate() {
            let Some(value) = *value else { continue };
            let crosses = (0..self.staged.stages.len()).any(|stage| {
                let Stage { tasks, .. } = &self.staged.stages[stage];
                tasks.contains(&self.tensors[tensor].from) && self.leaves(tensor, stage)
            });
            let Some(operation) = value.defining_op().filter(|_| crosses) else { continue };
            let layouts: Vec<Batch> = self.batched.values().map(|batched| batched.batch_of(value)).collect();
            let why = match layouts[..] {
                _ if layouts.contains(&Batch::Separate) => "mixes inputs and has a result without an axis for them",
                [first, ..] if layouts.iter().any(|layout| *layout != first) => {
                    "has its inputs on another axis at another batch"
                }
                _ => continue,
            };
            let name = match operation.name() {
                op::CLUSTER => format!("{} '{}'", describe(operation), task_name(operation)),
                _ => describe(operation),
            };
            let message = format!(
                "{name} {why}, so it cannot leave its stage for several inputs: keep its readers with it by \
                 divi.colocate, or plan for one input if it is an output of the model"
            );
            error(operation, &message);
            return Err(Failure);
        }
        Ok(())
    }
}
