//! A stage as a function: copies of its tasks, and of the constants that they read.

use super::model::{Model, function_type};
use crate::{
    ir::{
        Failure, attribute, blocks, create_operation, describe, error, named_attribute, operands, operation_name,
        operations, read_instead, results, set_attribute, string_attribute, type_of, warning,
    },
    partition::remove_decisions,
    rebatch::{Batch, make},
    tasks::{definer, is_constant, reads},
};
use divi_dialect::node::is_none;
use divi_planner::Objective;
use divi_stages::Stage;
use mlir_sys::*;
use rustc_hash::{FxHashMap, FxHashSet};
use std::ffi::c_void;

/// What a launch of a stage needs to know.
pub(super) struct Launched {
    pub(super) name: String,
    /// The tensors that it takes and that it gives, in order.
    pub(super) takes: Vec<usize>,
    pub(super) gives: Vec<usize>,
    /// The types of what it gives.
    pub(super) types: Vec<MlirType>,
    pub(super) location: MlirLocation,
}

/// Puts the functions of all stages in front of the one that runs the model, which stays as it is.
pub(super) fn functions(model: &Model<'_>) -> Result<Vec<Launched>, Failure> {
    // Stages get names of their own, so that those that were there are all that can be in the way.
    let symbols = symbols(model.module);
    let mut of_device = vec![0_usize; model.problem().devices.len()];
    let mut all = vec![];
    let mut mixing = vec![];
    for (index, stage) in model.staged.stages.iter().enumerate() {
        let name = format!("{}.{}.{}", model.name(), model.device_name(stage.device), of_device[stage.device]);
        of_device[stage.device] += 1;
        check_name(model, &symbols, &name)?;
        let mut body = Body::of(model, index);
        let function = body.function(&name);
        let values: Vec<_> = body.takes.iter().filter_map(|&tensor| model.values[tensor]).collect();
        if let Some(whole) = model.at(stage.inputs.len()) {
            let part = whole.part(function, &values)?;
            check_layouts(model, &body, &part)?;
            mixing.extend(part.repeated().iter().map(|&operation| describe(operation)));
            make(model.context, function, &part)?;
        }
        all.push(Launched {
            name,
            types: operands(terminator(function)).into_iter().map(type_of).collect(),
            takes: body.takes,
            gives: body.gives,
            // SAFETY: the operation is alive.
            location: unsafe { mlirOperationGetLocation(model.operation(stage.tasks[0])) },
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

/// The module's symbols, by name.
fn symbols<'a>(module: MlirOperation) -> FxHashMap<&'a str, MlirOperation> {
    let all = blocks(module).into_iter().flat_map(operations);
    let named = |operation| Some((attribute(operation, "sym_name").and_then(string_attribute)?, operation));
    all.filter_map(named).collect()
}

fn check_name(model: &Model<'_>, symbols: &FxHashMap<&str, MlirOperation>, name: &str) -> Result<(), Failure> {
    match symbols.get(name) {
        None => Ok(()),
        Some(&other) => {
            error(other, &format!("is called @{name}, as a stage of @{} would be: rename it", model.name()));
            Err(Failure)
        }
    }
}

fn terminator(function: MlirOperation) -> MlirOperation {
    // SAFETY: the function is alive, and its body ends in a terminator.
    unsafe { mlirBlockGetTerminator(blocks(function)[0]) }
}

/// What a stage gives is laid out as its readers expect it.
fn check_layouts(model: &Model<'_>, body: &Body<'_>, part: &crate::rebatch::Rebatched) -> Result<(), Failure> {
    for (&tensor, inside) in body.gives.iter().zip(operands(body.end)) {
        if part.batch_of(inside) != model.batch(tensor) {
            let operation = model.operation(model.tensors[tensor].from);
            let found = |batch: Batch| match batch {
                Batch::Same => "the same for all inputs".to_owned(),
                Batch::At(layout) => format!("on axis {}", layout.axis),
                Batch::Apart => "apart".to_owned(),
            };
            let message = format!(
                "{} has its inputs {} in its stage, but {} in the model, so the stage cannot be cut out: plan for another \
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

/// A stage's function in the making.
struct Body<'a> {
    model: &'a Model<'a>,
    stage: usize,
    block: MlirBlock,
    /// What stands for a value of the model inside.
    inside: FxHashMap<*const c_void, MlirValue>,
    takes: Vec<usize>,
    gives: Vec<usize>,
    end: MlirOperation,
}

impl<'a> Body<'a> {
    fn of(model: &'a Model<'a>, stage: usize) -> Self {
        let tasks: Vec<_> = model.staged.stages[stage].tasks.iter().map(|&task| model.operation(task)).collect();
        let computed: FxHashSet<_> = tasks.iter().flat_map(|&task| results(task)).map(|result| result.ptr).collect();
        let mut takes: Vec<usize> = vec![];
        for value in tasks.iter().flat_map(|&task| reads(task)).filter(|value| !computed.contains(&value.ptr)) {
            takes.extend(model.tensor(value).filter(|tensor| !takes.contains(tensor)));
        }
        let made = tasks.iter().flat_map(|&task| results(task)).filter_map(|result| model.tensor(result));
        let gives = made.filter(|&tensor| model.leaves(tensor, stage)).collect();
        let values: Vec<_> = takes.iter().filter_map(|&tensor| model.values[tensor]).collect();
        // SAFETY: values are alive; types and locations have one entry an argument.
        let block = unsafe {
            let types: Vec<_> = values.iter().map(|&value| type_of(value)).collect();
            let locations: Vec<_> = values.iter().map(|&value| mlirValueGetLocation(value)).collect();
            mlirBlockCreate(types.len() as isize, types.as_ptr(), locations.as_ptr())
        };
        // SAFETY: the block has an argument a value.
        let argument = |i: usize| unsafe { mlirBlockGetArgument(block, i as isize) };
        let inside = values.iter().enumerate().map(|(i, value)| (value.ptr, argument(i))).collect();
        let mut body = Self { model, stage, block, inside, takes, gives, end: tasks[0] };
        tasks.into_iter().for_each(|task| body.adopt(task));
        body.end();
        body
    }

    /// Puts a copy of a task behind the others.
    fn adopt(&mut self, task: MlirOperation) {
        for value in reads(task) {
            if !self.inside.contains_key(&value.ptr) {
                self.provide(value);
            }
        }
        // SAFETY: the task is alive; the block takes ownership of the copy.
        let copy = unsafe {
            let copy = mlirOperationClone(task);
            mlirBlockAppendOwnedOperation(self.block, copy);
            copy
        };
        remove_decisions(copy);
        read_instead(copy, &self.inside);
        for (before, after) in results(task).into_iter().zip(results(copy)) {
            self.inside.insert(before.ptr, after);
        }
    }

    /// A constant, or nothing where a value is absent: a stage has its own.
    fn provide(&mut self, value: MlirValue) {
        let constant = definer(value).filter(|&definer| is_constant(definer));
        let provided = match constant {
            Some(constant) => {
                for operand in operands(constant) {
                    if !self.inside.contains_key(&operand.ptr) {
                        self.provide(operand);
                    }
                }
                // SAFETY: the constant is alive; the block takes ownership of the copy.
                let copy = unsafe {
                    let copy = mlirOperationClone(constant);
                    mlirBlockAppendOwnedOperation(self.block, copy);
                    copy
                };
                read_instead(copy, &self.inside);
                for (before, after) in results(constant).into_iter().zip(results(copy)) {
                    self.inside.insert(before.ptr, after);
                }
                return;
            }
            None => self.absent(value),
        };
        self.inside.insert(value.ptr, provided);
    }

    /// What stands for a value that some task leaves out.
    fn absent(&self, value: MlirValue) -> MlirValue {
        debug_assert!(is_none(value), "what is neither constant nor absent is a tensor that the stage takes");
        // SAFETY: everything is alive; the block takes ownership of the operation.
        unsafe {
            let unit = named_attribute(self.model.context, "value", mlirUnitAttrGet(self.model.context.to_raw()));
            let absent = create_operation("onnx.NoValue", mlirValueGetLocation(value), &[], &[type_of(value)], &[unit]);
            mlirBlockAppendOwnedOperation(self.block, absent);
            mlirOperationGetResult(absent, 0)
        }
    }

    fn end(&mut self) {
        let value = |tensor: &usize| self.model.values[*tensor].map(|value| self.inside[&value.ptr]);
        let values: Vec<_> = self.gives.iter().filter_map(value).collect();
        // SAFETY: the terminator of the model is alive; the block takes ownership of the new one.
        unsafe {
            let location = mlirOperationGetLocation(terminator(self.model.function.function));
            self.end = create_operation("func.return", location, &values, &[], &[]);
            mlirBlockAppendOwnedOperation(self.block, self.end);
        }
    }

    /// The function around the body, in front of the one that runs the model.
    fn function(&mut self, name: &str) -> MlirOperation {
        let Self { model, block, .. } = *self;
        let Stage { device, tasks, .. } = &model.staged.stages[self.stage];
        let mut attributes = vec![
            model.string("sym_name", name),
            model.string("sym_visibility", "private"),
            model.symbol("divi.device", model.device_name(*device)),
        ];
        if model.staged.plan.objective == Objective::Pipeline {
            attributes.push(model.integer("divi.stage", self.stage as i64));
        }
        // SAFETY: everything is alive and of one context; the state takes ownership of the region, and that of the block.
        unsafe {
            let location = mlirOperationGetLocation(model.operation(tasks[0]));
            let mut state = mlirOperationStateGet(melior::StringRef::new("func.func").to_raw(), location);
            let r#type = mlirFunctionTypeGet(model.context.to_raw(), 0, std::ptr::null(), 0, std::ptr::null());
            attributes.push(named_attribute(model.context, "function_type", mlirTypeAttrGet(r#type)));
            mlirOperationStateAddAttributes(&mut state, attributes.len() as isize, attributes.as_ptr());
            let region = mlirRegionCreate();
            mlirRegionAppendOwnedBlock(region, block);
            mlirOperationStateAddOwnedRegions(&mut state, 1, &region);
            let function = mlirOperationCreate(&mut state);
            let entry = model.function.function;
            mlirBlockInsertOwnedOperationBefore(mlirOperationGetBlock(entry), entry, function);
            set_attribute(function, "function_type", function_type(model.context, function));
            debug_assert_eq!(operation_name(function), "func.func");
            function
        }
    }
}
