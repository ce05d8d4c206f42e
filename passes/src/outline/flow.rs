//! The function that runs the model, made explicit: launches and transfers in the order in which they start.

use super::{
    function::Launched,
    model::{Model, function_type},
    parts::{Place, places},
};
use crate::{
    ir::{
        Failure, arguments_of, create_operation, operands, operations, reshaped_type, results, set_attribute, type_of,
        uses,
    },
    rebatch::Batch,
    tasks::{definer, is_constant},
};
use divi_dialect::node::is_none;
use divi_planner::Objective;
use divi_stages::{Move, Source, Stage};
use mlir_sys::*;
use rustc_hash::FxHashMap;

/// Replaces the body of the function that runs the model. Returns how many transfers there are.
pub(super) fn rewrite(model: &Model<'_>, launched: &[Launched]) -> Result<usize, Failure> {
    let function = model.function.function;
    let block = crate::ir::blocks(function)[0];
    let before = operations(block);
    let Some(&terminator) = before.last() else { return Ok(0) };
    let queue: Vec<u32> = (0..model.queued).collect();
    let mut flow = Flow { model, terminator, there: FxHashMap::default(), cut: FxHashMap::default(), moved: 0 };
    if let Some(whole) = model.at(queue.len()) {
        // What is the same for all inputs stays as it is.
        let batched = |argument: &MlirValue| whole.batch_of(*argument) != Batch::Same;
        for argument in arguments_of(block).into_iter().filter(batched) {
            let ty = whole.type_of(argument).map(|ty| reshaped_type(model.context, type_of(argument), &ty));
            // SAFETY: value and type are alive.
            ty.into_iter().for_each(|ty| unsafe { mlirValueSetType(argument, ty) });
        }
    }
    for (tensor, value) in model.values.iter().enumerate() {
        if let Some(argument) = value.filter(|&value| definer(value).is_none()) {
            flow.put(tensor, model.posed.host, queue.clone(), argument);
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
    for (i, value) in operands(terminator).into_iter().enumerate() {
        if let Some(tensor) = model.tensor(value) {
            let returned = flow.value(tensor, model.posed.host, &queue);
            // SAFETY: operation and value are alive.
            unsafe { mlirOperationSetOperand(terminator, i as isize, returned) };
        }
    }
    let moved = flow.moved;
    erase(&before[..before.len() - 1]);
    set_attribute(function, "function_type", function_type(model.context, function));
    Ok(moved)
}

/// Takes away the tasks, and the constants that only they read.
fn erase(operations: &[MlirOperation]) {
    for &operation in operations.iter().rev() {
        let kept = is_constant(operation) || results(operation).into_iter().all(is_none);
        let used = results(operation).into_iter().any(|result| !uses(result).is_empty());
        // An absent result may be returned as it is.
        if !(kept && used) {
            // SAFETY: what reads it is behind it and gone, or reads what a stage gives.
            unsafe { mlirOperationDestroy(operation) };
        }
    }
}

/// Inputs, and a value that is for them.
type Part = (Vec<u32>, MlirValue);

struct Flow<'a> {
    model: &'a Model<'a>,
    terminator: MlirOperation,
    /// By tensor and device: what is there, for which inputs.
    there: FxHashMap<(usize, usize), Vec<Part>>,
    /// What has been cut or joined already, by tensor, device and inputs.
    cut: FxHashMap<(usize, usize, Vec<u32>), MlirValue>,
    moved: usize,
}

impl Flow<'_> {
    fn put(&mut self, tensor: usize, device: usize, inputs: Vec<u32>, value: MlirValue) {
        self.there.entry((tensor, device)).or_default().push((inputs, value));
    }

    /// Appends an operation.
    fn append(
        &self,
        name: &str,
        location: MlirLocation,
        operands: &[MlirValue],
        types: &[MlirType],
        attributes: &[MlirNamedAttribute],
    ) -> MlirOperation {
        let operation = create_operation(name, location, operands, types, attributes);
        // SAFETY: the terminator is alive; its block takes ownership of the operation.
        unsafe {
            mlirBlockInsertOwnedOperationBefore(mlirOperationGetBlock(self.terminator), self.terminator, operation);
        }
        operation
    }

    /// Brings a tensor to a device. What is absent, or the same for all inputs and there already, does not move.
    fn transfer(&mut self, step: &Move) {
        let Move { tensor, from, to, .. } = *step;
        let absent = self.model.values[tensor].is_none_or(is_none);
        if absent || (self.is_same(tensor) && self.there.contains_key(&(tensor, to))) {
            return;
        }
        let value = self.value(tensor, from, &step.inputs);
        let mut attributes = vec![
            self.model.symbol("from", self.model.device_name(from)),
            self.model.symbol("to", self.model.device_name(to)),
            self.model.micros("divi.start", step.start),
        ];
        // Where transfers hinder each other, how long one takes is the plan's.
        if !self.model.staged.plan.transfers.is_empty() {
            attributes.push(self.model.micros("divi.end", step.end));
        }
        // SAFETY: the value is alive.
        let location = unsafe { mlirValueGetLocation(value) };
        let transfer = self.append("divi.transfer", location, &[value], &[type_of(value)], &attributes);
        self.put(tensor, to, step.inputs.clone(), results(transfer)[0]);
        self.moved += 1;
    }

    fn launch(&mut self, index: usize, launched: &Launched) {
        let Stage { device, inputs, start, .. } = &self.model.staged.stages[index];
        let operands: Vec<_> = launched.takes.iter().map(|&tensor| self.value(tensor, *device, inputs)).collect();
        let model = self.model;
        let mut attributes = vec![
            model.symbol("callee", &launched.name),
            model.symbol("device", model.device_name(*device)),
            model.micros("divi.start", *start),
        ];
        match model.staged.plan.objective {
            Objective::Latency => {}
            Objective::Batch => {
                let inputs: Vec<i64> = inputs.iter().map(|&input| input.into()).collect();
                attributes.push(model.integers("divi.inputs", &inputs));
            }
            Objective::Pipeline => attributes.push(model.integer("divi.stage", index as i64)),
        }
        let launch = self.append("divi.launch", launched.location, &operands, &launched.types, &attributes);
        for (&tensor, result) in launched.gives.iter().zip(results(launch)) {
            self.put(tensor, *device, inputs.clone(), result);
        }
    }

    /// Whether a tensor is the same for all inputs.
    fn is_same(&self, tensor: usize) -> bool {
        places(self.model, tensor).is_none()
    }

    /// A tensor on a device where it is, for some inputs.
    fn value(&mut self, tensor: usize, device: usize, inputs: &[u32]) -> MlirValue {
        let there = self.there.get(&(tensor, device)).expect("what is read is there: computed before, or moved");
        if let Some((_, value)) = there.iter().find(|(own, _)| own == inputs) {
            return *value;
        }
        let Some(place) = places(self.model, tensor) else { return there[0].1 };
        let key = (tensor, device, inputs.to_vec());
        if let Some(&value) = self.cut.get(&key) {
            return value;
        }
        // For each part that is there, the inputs that come from it.
        let mut parts: Vec<(usize, Vec<u32>)> = vec![];
        for &input in inputs {
            let part =
                there.iter().position(|(own, _)| own.contains(&input)).expect("every input that is read is there");
            match parts.iter_mut().find(|(other, _)| *other == part) {
                Some((_, taken)) => taken.push(input),
                None => parts.push((part, vec![input])),
            }
        }
        let parts: Vec<(MlirValue, Vec<u32>, Vec<u32>)> =
            parts.into_iter().map(|(part, taken)| (there[part].1, there[part].0.clone(), taken)).collect();
        let pieces: Vec<(MlirValue, Vec<u32>)> =
            parts.into_iter().map(|(value, own, taken)| (self.slice(value, &own, &taken, place), taken)).collect();
        let together = self.gather(&pieces, place);
        let order: Vec<u32> = pieces.into_iter().flat_map(|(_, taken)| taken).collect();
        let value = self.slice(together, &order, inputs, place);
        self.cut.insert(key, value);
        value
    }

    /// Some of the inputs that a value is for, in the order in which they are wanted.
    fn slice(&self, value: MlirValue, own: &[u32], wanted: &[u32], place: Place) -> MlirValue {
        if own == wanted {
            return value;
        }
        let position = |input: &u32| own.iter().position(|other| other == input).map_or(0, |place| place as i64);
        let positions: Vec<i64> = wanted.iter().map(position).collect();
        let mut attributes =
            vec![self.model.integers("positions", &positions), self.model.integer("count", own.len() as i64)];
        attributes.extend(place.attributes(self.model));
        let r#type = place.resized(self.model.context, type_of(value), own.len(), wanted.len());
        // SAFETY: the value is alive.
        let location = unsafe { mlirValueGetLocation(value) };
        results(self.append("divi.slice", location, &[value], &[r#type], &attributes))[0]
    }

    /// Pieces one behind the other.
    fn gather(&self, pieces: &[(MlirValue, Vec<u32>)], place: Place) -> MlirValue {
        let (first, taken) = &pieces[0];
        if pieces.len() == 1 {
            return *first;
        }
        let counts: Vec<i64> = pieces.iter().map(|(_, taken)| taken.len() as i64).collect();
        let total = counts.iter().sum::<i64>() as usize;
        let mut attributes = vec![self.model.integers("counts", &counts)];
        attributes.extend(place.attributes(self.model));
        let values: Vec<_> = pieces.iter().map(|(value, _)| *value).collect();
        let r#type = place.resized(self.model.context, type_of(*first), taken.len(), total);
        // SAFETY: the value is alive.
        let location = unsafe { mlirValueGetLocation(*first) };
        results(self.append("divi.gather", location, &values, &[r#type], &attributes))[0]
    }
}
