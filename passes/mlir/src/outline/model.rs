//! The module and its plan side by side: which value is which tensor, which task is in which stage.

use crate::{
    cost::Posed,
    ir::{Failure, describe, error},
    rebatch::{Batch, Present, Rebatched},
    tasks::{Tasks, entry, task_name},
};
use divi_dialect::{Block, Operation, Value, attr, function_type, op};
use divi_planner::{Objective, Problem, problem::Tensor};
use divi_stages::{Stage, Staged};
use melior::{
    ContextRef,
    ir::{Attribute, TypeLike},
};
use rustc_hash::FxHashMap;
use std::collections::BTreeMap;

pub(super) struct Model<'m> {
    pub(super) context: ContextRef<'m>,
    pub(super) module: Operation<'m>,
    pub(super) posed: &'m Posed<'m>,
    pub(super) staged: &'m Staged,
    pub(super) function: Tasks<'m>,
    pub(super) tensors: Vec<Tensor>,
    /// The value that each tensor is; none where a task has no result.
    pub(super) values: Vec<Option<Value<'m>>>,
    tensor_of: FxHashMap<Value<'m>, usize>,
    /// The stage that runs a node for an input.
    stage_of: BTreeMap<(usize, u32), usize>,
    /// How many inputs are queued.
    pub(super) queued: u32,
    /// For several queued inputs, what the function becomes at each number of them that is launched, and at all.
    batched: BTreeMap<u32, Rebatched<'m>>,
}

impl<'m> Model<'m> {
    /// Checks all that may be in the way, before anything is changed.
    pub(super) fn new(module: Operation<'m>, posed: &'m Posed<'m>, staged: &'m Staged) -> Result<Self, Failure> {
        let function = Tasks::of(entry(module)?)?;
        let tensors = posed.problem.all_tensors();
        let values = posed.values();
        let tensor = |(index, value): (usize, &Option<Value<'m>>)| Some(((*value)?, index));
        let mut stage_of = BTreeMap::new();
        for (index, Stage { tasks, inputs, .. }) in staged.stages.iter().enumerate() {
            for &task in tasks {
                inputs.iter().for_each(|&input| {
                    stage_of.insert((task, input), index);
                });
            }
        }
        let queued = if staged.plan.objective == Objective::Batch { posed.problem.inputs } else { 1 };
        let mut model = Self {
            context: module.context(),
            module,
            posed,
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
        &self.posed.problem
    }

    pub(super) fn device_name(&self, device: usize) -> &str {
        &self.problem().devices[device].name
    }

    /// Returns the operation that a node is.
    pub(super) fn operation(&self, node: usize) -> Operation<'m> {
        self.posed.tasks[node - self.posed.first_task]
    }

    pub(super) fn name(&self) -> &'m str {
        self.function.function.symbol_name().unwrap_or_default()
    }

    /// Returns the tensor that a value is; none for constants and what is absent.
    pub(super) fn tensor(&self, value: Value<'_>) -> Option<usize> {
        self.tensor_of.get(&value).copied().filter(|_| !value.is_none())
    }

    /// Returns true if something outside a stage reads what the stage computes.
    pub(super) fn leaves(&self, tensor: usize, stage: usize) -> bool {
        let inputs = &self.staged.stages[stage].inputs;
        let elsewhere = |reader: usize| inputs.iter().any(|&input| self.stage_of.get(&(reader, input)) != Some(&stage));
        self.tensors[tensor].to.iter().any(|&reader| elsewhere(reader))
    }

    /// Returns what the function becomes at a number of inputs; none where it stays as it is.
    pub(super) fn at(&self, inputs: usize) -> Option<&Rebatched<'m>> {
        self.batched.get(&u32::try_from(inputs).ok()?).filter(|_| inputs > 1)
    }

    /// Returns where inputs are in a tensor.
    pub(super) fn batch(&self, tensor: usize) -> Batch {
        let value = self.values[tensor].filter(|_| self.queued > 1);
        match (value, self.batched.get(&self.queued)) {
            (Some(value), Some(batched)) => batched.batch_of(value),
            _ => Batch::Same,
        }
    }

    /// Checks that only tensors move.
    fn check_moves(&self) -> Result<(), Failure> {
        for step in &self.staged.moves {
            let Some(value) = self.values[step.tensor].filter(|&value| !value.is_none()) else { continue };
            if value.r#type().is_tensor() {
                continue;
            }
            let what = value.definer().map_or_else(|| "an argument".to_owned(), describe);
            let (from, to) = (self.device_name(step.from), self.device_name(step.to));
            let place = value.definer().unwrap_or(self.function.function);
            let message = format!(
                "{what} is read on @{to} but is on @{from}, and no tensor that could move there: give both tasks the same \
                 divi.colocate"
            );
            error(place, &message);
            return Err(Failure);
        }
        Ok(())
    }

    /// Finds what the function becomes at each number of inputs, if values that go from stage to stage can be cut and joined.
    fn follow_batch(&mut self) -> Result<(), Failure> {
        let function = self.function.function;
        if !matches!(Present::of(function), Present::Size(_)) {
            let message = format!(
                "@{} has a batch of no known size, so {} queued inputs cannot be told apart: run divi-infer-shapes with \
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
            let Some(operation) = value.definer().filter(|_| crosses) else { continue };
            let layouts: Vec<Batch> = self.batched.values().map(|batched| batched.batch_of(value)).collect();
            let why = match layouts[..] {
                _ if layouts.contains(&Batch::Apart) => "mixes inputs and has a result without an axis for them",
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

/// Returns the types of the arguments and of what ends a function's body, as the function's type.
pub(super) fn type_of_body<'m>(context: ContextRef<'m>, body: Block<'m>) -> Attribute<'m> {
    let inputs: Vec<_> = body.arguments().into_iter().map(Value::r#type).collect();
    let end = body.terminator().expect("a function's body ends in a terminator");
    let outputs: Vec<_> = end.operands().into_iter().map(Value::r#type).collect();
    attr::type_attribute(function_type(context, &inputs, &outputs))
}
