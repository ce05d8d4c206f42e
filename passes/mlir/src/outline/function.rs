//! Builds the function of a stage: copies of its tasks, and of the constants that they read.

use super::model::Model;
use crate::{
    ir::{Failure, describe, error, type_of_body, warning},
    partition::remove_decisions,
    rebatch::{Batch, Rebatched, make},
    tasks::{is_constant, reads},
};
use divi_dialect::{Block, NewOperation, Operation, Region, Value, attr, op};
use divi_stages::Stage;
use melior::ir::{Location, Type};
use rustc_hash::{FxHashMap, FxHashSet};
use std::collections::hash_map::Entry;

/// Signature of a stage, for its launch.
#[derive(Clone)]
pub(super) struct Launched<'m> {
    pub(super) name: String,
    /// Tensors that it takes and returns, in order.
    pub(super) takes: Vec<usize>,
    pub(super) gives: Vec<usize>,
    /// Types of the tensors that it returns.
    pub(super) types: Vec<Type<'m>>,
    pub(super) location: Location<'m>,
}

/// Inserts the functions of all stages before the entry function, which is not changed. Stages that run the same tasks for
/// other inputs, but as many, share a function.
pub(super) fn functions<'m>(model: &'m Model<'m>) -> Result<Vec<Launched<'m>>, Failure> {
    // Names of stages are unique, so only existing symbols can conflict.
    let symbols = symbols(model.module);
    let mut of_device = vec![0_usize; model.problem().devices.len()];
    let mut all: Vec<Launched<'m>> = vec![];
    let mut mixing = vec![];
    // First stage with the same device, tasks and number of inputs: it takes and returns the same tensors.
    let mut first: FxHashMap<(usize, &Vec<usize>, usize), usize> = FxHashMap::default();
    for (index, stage) in model.staged.stages.iter().enumerate() {
        match first.entry((stage.device, &stage.tasks, stage.inputs.len())) {
            Entry::Occupied(same) => {
                all.push(all[*same.get()].clone());
                continue;
            }
            Entry::Vacant(new) => {
                new.insert(index);
            }
        }
        let name = format!("{}.{}.{}", model.name(), model.device_name(stage.device), of_device[stage.device]);
        of_device[stage.device] += 1;
        check_name(model, &symbols, &name)?;
        let body = Body::of(model, index);
        let function = body.function(&name);
        let values: Vec<_> = body.takes.iter().filter_map(|&tensor| model.values[tensor]).collect();
        if let Some(whole) = model.at(stage.inputs.len()) {
            let part = whole.part(function, &values)?;
            check_layouts(model, &body, &part)?;
            mixing.extend(part.unrolled().iter().map(|&operation| describe(operation)));
            make(function, &part)?;
        }
        all.push(Launched {
            name,
            types: terminator(function).operands().into_iter().map(Value::r#type).collect(),
            takes: body.takes,
            gives: body.gives,
            location: model.operation(stage.tasks[0]).location(),
        });
    }
    mixing.sort();
    mixing.dedup();
    if !mixing.is_empty() {
        let names = mixing.join(", ");
        warning(model.module, &format!("mixes the inputs of a batch, so it runs once for each: {names}"));
    }
    Ok(all)
}

/// Returns the module's symbols, by name.
fn symbols(module: Operation<'_>) -> FxHashMap<&str, Operation<'_>> {
    module.children().into_iter().filter_map(|operation| Some((operation.symbol_name()?, operation))).collect()
}

fn check_name(model: &Model<'_>, symbols: &FxHashMap<&str, Operation<'_>>, name: &str) -> Result<(), Failure> {
    match symbols.get(name) {
        None => Ok(()),
        Some(&other) => {
            error(other, &format!("has the name @{name}, which a stage of @{} needs: rename it", model.name()));
            Err(Failure)
        }
    }
}

fn terminator(function: Operation<'_>) -> Operation<'_> {
    function.blocks()[0].terminator().expect("a function's body ends in a terminator")
}

/// Checks that the results of a stage have the layout that their readers expect.
fn check_layouts<'m>(model: &Model<'m>, body: &Body<'m>, part: &Rebatched<'m>) -> Result<(), Failure> {
    for (&tensor, inside) in body.gives.iter().zip(body.end.operands()) {
        if part.batch_of(inside) != model.batch(tensor) {
            let operation = model.operation(model.tensors[tensor].from);
            let found = |batch: Batch| match batch {
                Batch::Same => "the same for all inputs".to_owned(),
                Batch::At(layout) => format!("on axis {}", layout.axis),
                Batch::Separate => "in separate tensors".to_owned(),
            };
            let message = format!(
                "{} has its inputs {} in its stage, but {} in the model, so the stage cannot be outlined: plan for another \
                 number of inputs",
                describe(operation),
                found(part.batch_of(inside)),
                found(model.batch(tensor))
            );
            error(operation, &message);
            return Err(Failure);
        }
    }
    Ok(())
}

/// Function of a stage under construction.
struct Body<'m> {
    model: &'m Model<'m>,
    stage: usize,
    block: Block<'m>,
    /// Values inside, by the values of the model that they replace.
    inside: FxHashMap<Value<'m>, Value<'m>>,
    takes: Vec<usize>,
    gives: Vec<usize>,
    end: Operation<'m>,
}

impl<'m> Body<'m> {
    fn of(model: &'m Model<'m>, stage: usize) -> Self {
        let tasks: Vec<_> = model.staged.stages[stage].tasks.iter().map(|&task| model.operation(task)).collect();
        let computed: FxHashSet<_> = tasks.iter().flat_map(|&task| task.results()).collect();
        let mut takes: Vec<usize> = vec![];
        for value in tasks.iter().flat_map(|&task| reads(task)).filter(|value| !computed.contains(value)) {
            takes.extend(model.tensor(value).filter(|tensor| !takes.contains(tensor)));
        }
        let made = tasks.iter().flat_map(|&task| task.results()).filter_map(|result| model.tensor(result));
        let gives = made.filter(|&tensor| model.leaves(tensor, stage)).collect();
        let values: Vec<_> = takes.iter().filter_map(|&tensor| model.values[tensor]).collect();
        let arguments: Vec<_> = values.iter().map(|value| (value.r#type(), value.location())).collect();
        let block = Block::create(&arguments);
        let inside = values.into_iter().zip(block.arguments()).collect();
        let mut body = Self { model, stage, block, inside, takes, gives, end: tasks[0] };
        tasks.into_iter().for_each(|task| body.adopt(task));
        body.end();
        body
    }

    /// Appends a copy of a task.
    fn adopt(&mut self, task: Operation<'m>) {
        for value in reads(task) {
            if !self.inside.contains_key(&value) {
                self.provide(value);
            }
        }
        let copy = task.clone_detached().append_to(self.block);
        remove_decisions(copy);
        copy.replace_operands(&self.inside);
        for (before, after) in task.results().into_iter().zip(copy.results()) {
            self.inside.insert(before, after);
        }
    }

    /// Adds a copy of a constant, or of the marker of an absent value.
    fn provide(&mut self, value: Value<'m>) {
        let constant = value.defining_op().filter(|&definer| is_constant(definer));
        let provided = match constant {
            Some(constant) => {
                for operand in constant.operands() {
                    if !self.inside.contains_key(&operand) {
                        self.provide(operand);
                    }
                }
                let copy = constant.clone_detached().append_to(self.block);
                copy.replace_operands(&self.inside);
                for (before, after) in constant.results().into_iter().zip(copy.results()) {
                    self.inside.insert(before, after);
                }
                return;
            }
            None => self.absent(value),
        };
        self.inside.insert(value, provided);
    }

    /// Adds the marker of an absent value.
    fn absent(&self, value: Value<'m>) -> Value<'m> {
        debug_assert!(value.is_none(), "any other value is an argument of the stage");
        let context = self.model.context;
        let absent = NewOperation {
            results: &[value.r#type()],
            attributes: &[attr::VALUE.named(context, attr::unit(context))],
            ..NewOperation::new("onnx.NoValue", value.location())
        };
        absent.create().append_to(self.block).result(0)
    }

    fn end(&mut self) {
        let value = |tensor: &usize| self.model.values[*tensor].map(|value| self.inside[&value]);
        let values: Vec<_> = self.gives.iter().filter_map(value).collect();
        let location = terminator(self.model.function.function).location();
        let end = NewOperation { operands: &values, ..NewOperation::new(op::RETURN, location) };
        self.end = end.create().append_to(self.block);
    }

    /// Creates a function with the body, before the entry function.
    fn function(&self, name: &str) -> Operation<'m> {
        let Self { model, block, .. } = *self;
        let Stage { device, tasks, number, .. } = &model.staged.stages[self.stage];
        let mut attributes = vec![
            attr::SYM_NAME.named(model.context, name),
            attr::SYM_VISIBILITY.named(model.context, "private"),
            attr::DEVICE.named(model.context, model.device_name(*device)),
        ];
        attributes.extend(number.map(|number| attr::STAGE.named(model.context, number as i64)));
        attributes.push(attr::FUNCTION_TYPE.named(model.context, type_of_body(model.context, block)));
        let region = Region::create();
        region.append(block);
        let location = model.operation(tasks[0]).location();
        let function =
            NewOperation { attributes: &attributes, regions: &[region], ..NewOperation::new(op::FUNC, location) };
        function.create().insert_before(model.function.function)
    }
}
