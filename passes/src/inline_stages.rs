//! `divi-inline-stages`: takes stages away, and leaves their tasks where they were launched.

use crate::{
    cost::Posed,
    decisions::{fingerprint, has_names, problem},
    declared::{InlineStages, InlineStagesStatistics},
    ir::{
        Failure, attribute, blocks, describe, dictionary_entry, error, float_attribute, number, operands,
        operation_name, operations, read_instead, results, set_attribute, string_attribute, symbol_attribute,
        symbol_reference, walk, warning,
    },
    partition::{Marks, Moved, mark, read_plan, write_certificate, write_moves},
    tasks::{Tasks, entry, is_constant, moves_of},
};
use divi_dialect::CostAttribute;
use divi_planner::units::short_number;
use melior::{Context, ContextRef, ir::Attribute};
use mlir_sys::*;
use rustc_hash::{FxHashMap, FxHashSet};
use std::ffi::c_void;

//===----------------------------------------------------------------------===//
// --divi-inline-stages
//===----------------------------------------------------------------------===//

/// Undoes `divi-outline`: launches become the tasks of their stage, transfers go, and the stages' functions with them. Every
/// task says again where and when it runs, so that the plan can be changed and outlined anew. Returns how many stages there
/// were. Constants that stages had copies of are one again.
///
/// Stages of queued inputs stay: at each number of inputs they are other functions, which cannot be made one.
pub fn inline_stages(module: MlirOperation) -> Result<u64, Failure> {
    let function = entry(module)?;
    let Some(&block) = blocks(function).first() else { return Ok(0) };
    let count = inline(module, function, block)?;
    renew_certificate(module, &Tasks::of(function)?.operations)?;
    Ok(count)
}

/// Looks at a copy of a module without its stages, whose certificate is still that of the stages.
pub(crate) fn with_inlined<T>(module: MlirOperation, look: impl FnOnce(MlirOperation) -> T) -> Result<T, Failure> {
    // SAFETY: the module is alive.
    let copy = unsafe { mlirOperationClone(module) };
    let inlined = entry(copy).and_then(|function| match blocks(function).first() {
        Some(&block) => inline(copy, function, block),
        None => Ok(0),
    });
    let seen = inlined.map(|_| look(copy));
    // SAFETY: it was made here, and whoever looked at it is done.
    unsafe { mlirOperationDestroy(copy) };
    seen
}

/// Returns how many stages there were.
fn inline(module: MlirOperation, function: MlirOperation, block: MlirBlock) -> Result<u64, Failure> {
    // SAFETY: the context of a live operation is alive, and outlives the pass.
    let context = unsafe { ContextRef::from_raw(mlirOperationGetContext(module)) };
    let functions = blocks(module).into_iter().flat_map(operations);
    let functions: FxHashMap<&str, MlirOperation> = functions
        .filter(|&operation| operation_name(operation) == "func.func")
        .filter_map(|operation| Some((attribute(operation, "sym_name").and_then(string_attribute)?, operation)))
        .collect();
    let (mut launches, mut transfers) = (vec![], vec![]);
    for step in operations(block) {
        let queued = attribute(step, "divi.inputs").is_some();
        match operation_name(step) {
            "divi.slice" | "divi.gather" => return Err(refuse(step)),
            "divi.launch" if queued => return Err(refuse(step)),
            "divi.launch" => {
                let callee = attribute(step, "callee").and_then(symbol_attribute);
                let stage = callee.and_then(|callee| functions.get(callee)).filter(|stage| !blocks(**stage).is_empty());
                let Some(&stage) = stage else {
                    error(step, &format!("{} launches a function that has no body", describe(step)));
                    return Err(Failure);
                };
                launches.push((step, stage));
            }
            "divi.transfer" => transfers.push(step),
            _ => {}
        }
    }
    // SAFETY: see above.
    let mut inliner = Inliner { context: unsafe { context.to_ref() }, constants: FxHashMap::default() };
    let mut rows = vec![];
    launches.iter().for_each(|&(launch, stage)| rows.extend(inliner.inline(launch, stage)));
    // Each is named by what computes the value, now that no stage is around it.
    let moves = transfers.iter().filter_map(|&transfer| {
        let time = |name| attribute(transfer, name).and_then(float_attribute);
        let device = |name| attribute(transfer, name).and_then(symbol_attribute);
        let (start, end) = (time("divi.start")?, time("divi.end")?);
        Some(Moved { value: operands(transfer)[0], from: device("from")?, to: device("to")?, start, end })
    });
    // SAFETY: see above.
    write_moves(unsafe { context.to_ref() }, function, moves)?;
    for transfer in transfers {
        // SAFETY: a transfer has one operand and one result, and nobody reads what is destroyed.
        unsafe {
            mlirValueReplaceAllUsesOfWith(results(transfer)[0], operands(transfer)[0]);
            mlirOperationDestroy(transfer);
        }
    }
    remove_functions(module, &launches);
    if attribute(module, "divi.cold").is_some() {
        // SAFETY: see above.
        restart(unsafe { context.to_ref() }, &Posed::by(module, 1)?, &rows);
    }
    Ok(launches.len() as u64)
}

/// What a stage ran, and when it started.
type Row = (f64, Vec<MlirOperation>);

/// Starts tasks one after the other again where parameters come with the input: one that reads them in the host's memory takes
/// longer than it says.
fn restart(context: &Context, posed: &Posed, rows: &[Row]) {
    let nodes: FxHashMap<_, usize> = posed.tasks.iter().map(|task| task.ptr).zip(posed.first_task..).collect();
    for (start, tasks) in rows {
        let mut now = *start;
        for task in tasks {
            set_attribute(*task, "divi.start", number(context, now));
            let name = attribute(*task, "divi.device").and_then(symbol_attribute).unwrap_or_default();
            if let (Some(device), Some(&node)) = (posed.device(name), nodes.get(&task.ptr)) {
                let is_copied = moves_of(*task, "divi.copies").iter().any(|copy| copy.to() == name);
                now += posed.micros(node, device, 1, is_copied);
            }
        }
    }
}

/// Says which decisions the plan is made of. It is still for the same problem, whose tasks are in another order now, unless
/// somebody has changed that: then its bound is what is known at once. Without its stage, what a task computes leaves as soon as
/// it is there, so that the plan may take less time than the stages did.
fn renew_certificate(module: MlirOperation, tasks: &[MlirOperation]) -> Result<(), Failure> {
    let decided = fingerprint(tasks);
    mark(module, &[("decisions", &decided)]);
    let Some(plan) = attribute(module, "divi.plan") else { return Ok(()) };
    let entry = |name| dictionary_entry(plan, name);
    let has_costs = tasks.iter().all(|&task| attribute(task, "divi.cost").is_some());
    if !has_costs || tasks.is_empty() {
        return Ok(());
    }
    let posed = Posed::by(module, 1)?;
    let cost = entry("pipeline_cost").and_then(string_attribute);
    let posed_now = problem(&posed.problem, cost, entry("shared_devices").is_some());
    let proven_for = entry("problem").and_then(string_attribute).map(str::to_owned);
    let is_changed = proven_for.as_ref().is_some_and(|mark| *mark != posed_now);
    if is_changed && !has_names(&posed.problem) {
        // The order alone makes it another: there is no telling.
        mark(module, &[("problem", &posed_now)]);
    }
    if entry("objective").and_then(string_attribute) == Some("latency") {
        let plan = read_plan(module, &posed)?;
        let problem = proven_for.map(|_| posed_now);
        let marks = Marks { decisions: Some(decided), problem, ..Marks::kept(module) };
        write_certificate(module, &plan, 0, &marks);
        if is_changed && has_names(&posed.problem) {
            let message = format!(
                "costs, devices or constraints were changed since it was planned: what was proven does not count any more, the \
                 bound is {} us now",
                short_number(plan.bound)
            );
            warning(module, &message);
        }
    }
    Ok(())
}

fn refuse(step: MlirOperation) -> Failure {
    let message = format!(
        "{} belongs to a plan of queued inputs, whose stages have batches of their own and cannot be made one function: \
         start from the module that was planned",
        describe(step)
    );
    error(step, &message);
    Failure
}

/// Takes away private functions that nothing names any more.
fn remove_functions(module: MlirOperation, launches: &[(MlirOperation, MlirOperation)]) {
    let mut named: FxHashSet<&str> = FxHashSet::default();
    walk(module, &mut |operation| {
        named.extend(attribute(operation, "callee").and_then(symbol_attribute));
    });
    let mut removed = FxHashSet::default();
    for &(_, stage) in launches {
        // What is gone is not looked at again.
        if !removed.insert(stage.ptr) {
            continue;
        }
        let name = attribute(stage, "sym_name").and_then(string_attribute).unwrap_or_default();
        let is_private = attribute(stage, "sym_visibility").and_then(string_attribute) == Some("private");
        if is_private && !named.contains(name) {
            // SAFETY: nothing names the function.
            unsafe { mlirOperationDestroy(stage) };
        }
    }
}

struct Inliner<'a> {
    context: &'a Context,
    /// The constants that are there, by what they say.
    constants: FxHashMap<Vec<*const c_void>, MlirOperation>,
}

impl Inliner<'_> {
    /// Puts copies of a stage's tasks in the place of a launch. Returns them, with the start of all.
    fn inline(&mut self, launch: MlirOperation, function: MlirOperation) -> Option<Row> {
        let body = blocks(function)[0];
        let mut tasks = operations(body);
        let end = tasks.pop()?;
        let mut copies = vec![];
        let mut outside: FxHashMap<*const c_void, MlirValue> = FxHashMap::default();
        for (argument, operand) in crate::ir::arguments_of(body).into_iter().zip(operands(launch)) {
            outside.insert(argument.ptr, operand);
        }
        let device = attribute(launch, "device").and_then(symbol_attribute).unwrap_or_default();
        let stage = attribute(launch, "divi.stage");
        let start = attribute(launch, "divi.start").and_then(float_attribute);
        // In a pipeline, times count from the beginning of the stage.
        let mut now = if stage.is_some() { 0.0 } else { start.unwrap_or(0.0) };
        for task in tasks {
            let copy = self.copy(task, launch, &outside);
            for (before, after) in results(task).into_iter().zip(results(copy)) {
                outside.insert(before.ptr, after);
            }
            if is_constant(task) {
                continue;
            }
            copies.push(copy);
            set_attribute(copy, "divi.device", symbol_reference(self.context, device));
            stage.into_iter().for_each(|stage| set_attribute(copy, "divi.stage", stage));
            if start.is_some() {
                set_attribute(copy, "divi.start", number(self.context, now));
            }
            now += micros_on(task, device);
        }
        for (value, result) in operands(end).into_iter().zip(results(launch)) {
            let value = outside.get(&value.ptr).copied();
            // SAFETY: both values are alive.
            value.into_iter().for_each(|value| unsafe { mlirValueReplaceAllUsesOfWith(result, value) });
        }
        // SAFETY: what read the launch reads the tasks now.
        unsafe { mlirOperationDestroy(launch) };
        Some((start?, copies))
    }

    /// A copy of an operation in front of a launch that reads what is outside; of a constant, the one that says the same.
    fn copy(
        &mut self,
        operation: MlirOperation,
        launch: MlirOperation,
        outside: &FxHashMap<*const c_void, MlirValue>,
    ) -> MlirOperation {
        let known = is_constant(operation) && operands(operation).is_empty();
        let key = known.then(|| contents(operation));
        if let Some(&constant) = key.as_ref().and_then(|key| self.constants.get(key)) {
            return constant;
        }
        // SAFETY: everything is alive; the block takes ownership of the copy.
        let copy = unsafe {
            let copy = mlirOperationClone(operation);
            mlirBlockInsertOwnedOperationBefore(mlirOperationGetBlock(launch), launch, copy);
            copy
        };
        read_instead(copy, outside);
        key.into_iter().for_each(|key| {
            self.constants.insert(key, copy);
        });
        copy
    }
}

/// What a constant says: its name, attributes and types, each of which there is once.
fn contents(constant: MlirOperation) -> Vec<*const c_void> {
    // SAFETY: the operation is alive, and indices are below the count.
    unsafe {
        let name = mlirIdentifierStr(mlirOperationGetName(constant)).data.cast();
        let count = mlirOperationGetNumAttributes(constant);
        let attributes = (0..count).map(|i| mlirOperationGetAttribute(constant, i));
        let pairs = attributes.flat_map(|named| [named.name.ptr, named.attribute.ptr]);
        let types = results(constant).into_iter().map(|result| crate::ir::type_of(result).ptr);
        [name].into_iter().chain(pairs).chain(types).collect()
    }
}

/// How long a task takes on a device for one input; nothing where nobody says.
fn micros_on(task: MlirOperation, device: &str) -> f64 {
    // SAFETY: the attribute lives as long as its context.
    let cost = attribute(task, "divi.cost").map(|cost| unsafe { Attribute::from_raw(cost) });
    let entries = cost.and_then(CostAttribute::from_attribute).map(|cost| cost.entries()).unwrap_or_default();
    entries.iter().find(|entry| entry.device == device && entry.batch == 1).map_or(0.0, |entry| entry.micros)
}

impl InlineStages {
    pub(crate) fn run(&self, module: MlirOperation) -> Result<InlineStagesStatistics, Failure> {
        Ok(InlineStagesStatistics { num_inlined: inline_stages(module)? })
    }
}
