//! Rewrites the entry function: launches and transfers in order of start.

use super::{
    function::Launched,
    model::Model,
    parts::{Place, places},
};
use crate::{
    ir::{Failure, type_of_body},
    rebatch::Batch,
    tasks::is_constant,
};
use divi_dialect::{NamedAttribute, NewOperation, Operation, Value, attr, op, reshaped_type};
use divi_stages::{Move, Source, Stage};
use melior::ir::{Location, Type};
use rustc_hash::FxHashMap;

/// Replaces the body of the entry function. Returns the number of transfers.
pub(super) fn rewrite<'m>(model: &'m Model<'m>, launched: &[Launched<'m>]) -> Result<usize, Failure> {
    let function = model.function.function;
    let block = function.blocks()[0];
    let before = block.operations();
    let Some(&terminator) = before.last() else { return Ok(0) };
    let queue: Vec<u32> = (0..model.queued).collect();
    let mut flow = Flow { model, terminator, there: FxHashMap::default(), cut: FxHashMap::default(), moved: 0 };
    if let Some(whole) = model.at(queue.len()) {
        // Arguments that all inputs share keep their types.
        let batched = |argument: &Value<'m>| whole.batch_of(*argument) != Batch::Same;
        for argument in block.arguments().into_iter().filter(batched) {
            let ty = whole.type_of(argument).map(|ty| reshaped_type(model.context, argument.r#type(), &ty));
            ty.into_iter().for_each(|ty| argument.set_type(ty));
        }
    }
    for (tensor, value) in model.values.iter().enumerate() {
        if let Some(argument) = value.filter(|value| value.defining_op().is_none()) {
            flow.put(tensor, model.module_problem.host, queue.clone(), argument);
        }
    }
    let mut moves = model.staged.moves.iter();
    let mut waiting: Vec<&Move> = vec![];
    for (index, stage) in model.staged.stages.iter().enumerate() {
        waiting.extend(moves.by_ref());
        let (ready, later) = waiting.into_iter().partition(|step: &&Move| {
            let computed = match step.source {
                Source::Stage(source) => source < index,
                Source::Input(_) => true,
            };
            computed && step.start <= stage.start
        });
        waiting = later;
        let ready: Vec<&Move> = ready;
        ready.into_iter().for_each(|step| flow.transfer(step));
        flow.launch(index, &launched[index]);
    }
    waiting.into_iter().chain(moves).for_each(|step| flow.transfer(step));
    for (i, value) in terminator.operands().into_iter().enumerate() {
        if let Some(tensor) = model.tensor(value) {
            let returned = flow.value(tensor, model.module_problem.host, &queue);
            terminator.set_operand(i, returned);
        }
    }
    let moved = flow.moved;
    erase(&before[..before.len() - 1]);
    function.set(attr::FUNCTION_TYPE, type_of_body(model.context, block));
    Ok(moved)
}

/// Removes the tasks, and the constants that only they read.
fn erase(operations: &[Operation<'_>]) {
    for &operation in operations.iter().rev() {
        let kept = is_constant(operation) || operation.results().into_iter().all(Value::is_none);
        let used = operation.results().into_iter().any(|result| !result.uses().is_empty());
        // An absent result may be returned directly.
        if !(kept && used) {
            operation.erase();
        }
    }
}

/// Inputs, and the value that holds them.
type Part<'m> = (Vec<u32>, Value<'m>);

struct Flow<'m> {
    model: &'m Model<'m>,
    terminator: Operation<'m>,
    /// Values of a tensor on a device, and the inputs of each.
    there: FxHashMap<(usize, usize), Vec<Part<'m>>>,
    /// Values that have been sliced or gathered already, by tensor, device and inputs.
    cut: FxHashMap<(usize, usize, Vec<u32>), Value<'m>>,
    moved: usize,
}

impl<'m> Flow<'m> {
    fn put(&mut self, tensor: usize, device: usize, inputs: Vec<u32>, value: Value<'m>) {
        self.there.entry((tensor, device)).or_default().push((inputs, value));
    }

    /// Appends an operation.
    fn append(
        &self,
        name: &str,
        location: Location<'m>,
        operands: &[Value<'m>],
        results: &[Type<'m>],
        attributes: &[NamedAttribute<'m>],
    ) -> Operation<'m> {
        let operation = NewOperation { name, location, operands, results, attributes, regions: &[] };
        operation.create().insert_before(self.terminator)
    }

    /// Transfers a tensor to a device. Absent values, and tensors that all inputs share and the device already has, are
    /// not transferred.
    fn transfer(&mut self, step: &Move) {
        let Move { tensor, from, to, .. } = *step;
        let absent = self.model.values[tensor].is_none_or(Value::is_none);
        if absent || (self.is_same(tensor) && self.there.contains_key(&(tensor, to))) {
            return;
        }
        let value = self.value(tensor, from, &step.inputs);
        let model = self.model;
        let mut attributes = vec![
            attr::FROM.named(model.context, model.device_name(from)),
            attr::TO.named(model.context, model.device_name(to)),
            attr::START.named(model.context, step.start.0),
        ];
        // Under contention, the duration of a transfer is part of the plan.
        if !model.staged.plan.transfers.is_empty() {
            attributes.push(attr::END.named(model.context, step.end.0));
        }
        let location = value.location();
        let transfer = self.append(op::TRANSFER, location, &[value], &[value.r#type()], &attributes);
        self.put(tensor, to, step.inputs.clone(), transfer.result(0));
        self.moved += 1;
    }

    fn launch(&mut self, index: usize, launched: &Launched<'m>) {
        let Stage { device, inputs, number, start, .. } = &self.model.staged.stages[index];
        let operands: Vec<_> = launched.takes.iter().map(|&tensor| self.value(tensor, *device, inputs)).collect();
        let model = self.model;
        let mut attributes = vec![
            attr::CALLEE.named(model.context, &launched.name),
            attr::LAUNCH_DEVICE.named(model.context, model.device_name(*device)),
            attr::START.named(model.context, start.0),
        ];
        if model.is_queued() {
            let inputs: Vec<i64> = inputs.iter().map(|&input| input.into()).collect();
            attributes.push(attr::INPUTS.named(model.context, &inputs));
        }
        attributes.extend(number.map(|number| attr::STAGE.named(model.context, number as i64)));
        let launch = self.append(op::LAUNCH, launched.location, &operands, &launched.types, &attributes);
        for (&tensor, result) in launched.gives.iter().zip(launch.results()) {
            self.put(tensor, *device, inputs.clone(), result);
        }
    }

    /// Returns true if all inputs share a tensor.
    fn is_same(&self, tensor: usize) -> bool {
        places(self.model, tensor).is_none()
    }

    /// Returns the value of a tensor on a device for some inputs.
    fn value(&mut self, tensor: usize, device: usize, inputs: &[u32]) -> Value<'m> {
        let there = self.there.get(&(tensor, device)).expect("a tensor is computed or transferred before it is read");
        if let Some((_, value)) = there.iter().find(|(own, _)| own == inputs) {
            return *value;
        }
        let Some(place) = places(self.model, tensor) else { return there[0].1 };
        let key = (tensor, device, inputs.to_vec());
        if let Some(&value) = self.cut.get(&key) {
            return value;
        }
        // Inputs that are taken from each existing value.
        let mut parts: Vec<(usize, Vec<u32>)> = vec![];
        for &input in inputs {
            let part = there
                .iter()
                .position(|(own, _)| own.contains(&input))
                .expect("every input is on the device before it is read");
            match parts.iter_mut().find(|(other, _)| *other == part) {
                Some((_, taken)) => taken.push(input),
                None => parts.push((part, vec![input])),
            }
        }
        let parts: Vec<(Value<'m>, Vec<u32>, Vec<u32>)> =
            parts.into_iter().map(|(part, taken)| (there[part].1, there[part].0.clone(), taken)).collect();
        let pieces: Vec<(Value<'m>, Vec<u32>)> =
            parts.into_iter().map(|(value, own, taken)| (self.slice(value, &own, &taken, place), taken)).collect();
        let together = self.gather(&pieces, place);
        let order: Vec<u32> = pieces.into_iter().flat_map(|(_, taken)| taken).collect();
        let value = self.slice(together, &order, inputs, place);
        self.cut.insert(key, value);
        value
    }

    /// Selects some of the inputs of a value, in the order of `wanted`.
    fn slice(&self, value: Value<'m>, own: &[u32], wanted: &[u32], place: Place) -> Value<'m> {
        if own == wanted {
            return value;
        }
        let position = |input: &u32| own.iter().position(|other| other == input).map_or(0, |place| place as i64);
        let positions: Vec<i64> = wanted.iter().map(position).collect();
        let context = self.model.context;
        let mut attributes =
            vec![attr::POSITIONS.named(context, &positions), attr::COUNT.named(context, own.len() as i64)];
        attributes.extend(place.attributes(context));
        let r#type = place.resized(context, value.r#type(), own.len(), wanted.len());
        let location = value.location();
        self.append(op::SLICE, location, &[value], &[r#type], &attributes).result(0)
    }

    /// Concatenates values along the axis of inputs.
    fn gather(&self, pieces: &[(Value<'m>, Vec<u32>)], place: Place) -> Value<'m> {
        let (first, taken) = &pieces[0];
        if pieces.len() == 1 {
            return *first;
        }
        let counts: Vec<i64> = pieces.iter().map(|(_, taken)| taken.len() as i64).collect();
        let total = counts.iter().sum::<i64>() as usize;
        let context = self.model.context;
        let mut attributes = vec![attr::COUNTS.named(context, &counts)];
        attributes.extend(place.attributes(context));
        let values: Vec<_> = pieces.iter().map(|(value, _)| *value).collect();
        let r#type = place.resized(context, first.r#type(), taken.len(), total);
        let location = first.location();
        self.append(op::GATHER, location, &values, &[r#type], &attributes).result(0)
    }
}
