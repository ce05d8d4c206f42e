//! `divi-inline-stages`: replaces launches by the tasks of their stages.

use crate::{
    cost::ModuleProblem,
    decisions::{PipelineRules, fingerprint, has_names, problem},
    declared::{InlineStages, InlineStagesStatistics},
    ir::{Failure, describe, error, warning},
    partition::{Marks, Moved, PipelineShape, mark, read_plan, write_certificate, write_moves},
    tasks::{Tasks, entry, is_constant, moves_of},
};
use divi_dialect::{Block, Operation, Value, attr, op};
use divi_planner::units::{Micros, short_number};
use melior::ir::{Attribute, Type};
use rustc_hash::{FxHashMap, FxHashSet};

//===----------------------------------------------------------------------===//
// --divi-inline-stages
//===----------------------------------------------------------------------===//

/// Undoes `divi-outline`: launches become the tasks of their stage, and transfers and the stages' functions are
/// removed. Every task gets its device and start again, so that the plan can be changed and outlined again. Returns the
/// number of stages. Copies of a constant in several stages are merged.
///
/// Fails for queued inputs and pipelines of batches: at each number of inputs, stages are different functions, which cannot be merged.
pub fn inline_stages(module: Operation<'_>) -> Result<u64, Failure> {
    let function = entry(module)?;
    let Some(&block) = function.blocks().first() else { return Ok(0) };
    let count = inline(module, function, block)?;
    renew_certificate(module, &Tasks::of(function)?.operations)?;
    Ok(count)
}

/// Calls `look` with a copy of a module without its stages, which still has the certificate of the stages.
pub(crate) fn with_inlined<T>(module: Operation<'_>, look: impl FnOnce(Operation<'_>) -> T) -> Result<T, Failure> {
    let copy = module.clone_detached();
    let inlined = entry(copy).and_then(|function| match function.blocks().first() {
        Some(&block) => inline(copy, function, block),
        None => Ok(0),
    });
    let seen = inlined.map(|_| look(copy));
    copy.erase();
    seen
}

/// Inlines all stages and returns their number.
fn inline<'m>(module: Operation<'m>, function: Operation<'m>, block: Block<'m>) -> Result<u64, Failure> {
    let functions = module.children().into_iter().filter(|operation| operation.name() == op::FUNC);
    let functions: FxHashMap<&str, Operation<'_>> =
        functions.filter_map(|operation| Some((operation.symbol_name()?, operation))).collect();
    let (mut launches, mut transfers) = (vec![], vec![]);
    for step in block.operations() {
        let queued = step.has(attr::INPUTS);
        match step.name() {
            op::SLICE | op::GATHER => return Err(refuse(step)),
            op::LAUNCH if queued => return Err(refuse(step)),
            op::LAUNCH => {
                let callee = step.get(attr::CALLEE);
                let stage = callee.and_then(|callee| functions.get(callee)).filter(|stage| !stage.blocks().is_empty());
                let Some(&stage) = stage else {
                    error(step, &format!("{} launches a function that has no body", describe(step)));
                    return Err(Failure);
                };
                launches.push((step, stage));
            }
            op::TRANSFER => transfers.push(step),
            _ => {}
        }
    }
    let mut inliner = Inliner::default();
    let mut rows = vec![];
    launches.iter().for_each(|&(launch, stage)| rows.extend(inliner.inline(launch, stage)));
    // The operand is now the value that a task computes, no longer the result of a launch.
    let moves = transfers.iter().filter_map(|&transfer| {
        let (from, to) = (transfer.get(attr::FROM)?, transfer.get(attr::TO)?);
        let (start, end) = (Micros(transfer.get(attr::START)?), Micros(transfer.get(attr::END)?));
        Some(Moved { value: transfer.operand(0), from, to, start, end, inputs: vec![] })
    });
    write_moves(function, moves)?;
    for transfer in transfers {
        transfer.result(0).replace_all_uses_with(transfer.operand(0));
        transfer.erase();
    }
    remove_functions(module, &launches);
    if module.has(attr::COLD) {
        restart(&ModuleProblem::build(module, 1)?, &rows);
    }
    Ok(launches.len() as u64)
}

/// Start of a stage, and its tasks.
type Row<'m> = (Micros, Vec<Operation<'m>>);

/// Recomputes the starts of tasks in a cold start: a task that reads its parameters from the host's memory takes longer
/// than its cost.
fn restart<'m>(module_problem: &ModuleProblem<'m>, rows: &[Row<'m>]) {
    let nodes: FxHashMap<_, usize> = module_problem.tasks.iter().copied().zip(module_problem.first_task..).collect();
    for (start, tasks) in rows {
        let mut now = *start;
        for task in tasks {
            task.set(attr::START, now.0);
            let name = task.get(attr::DEVICE).unwrap_or_default();
            if let (Some(device), Some(&node)) = (module_problem.device(name), nodes.get(task)) {
                let is_copied = moves_of(*task, attr::COPIES).iter().any(|copy| copy.to() == name);
                now += module_problem.micros(node, device, 1, is_copied);
            }
        }
    }
}

/// Updates the fingerprint of the decisions. The problem is still the same, with tasks in another order, unless it was
/// edited: then the bound is recomputed. Without a stage, results leave their device as soon as they are computed, so
/// the makespan may be shorter than that of the stages.
fn renew_certificate(module: Operation<'_>, tasks: &[Operation<'_>]) -> Result<(), Failure> {
    let decided = fingerprint(tasks);
    mark(module, &[("decisions", &decided)]);
    let Some(plan) = module.get(attr::PLAN) else { return Ok(()) };
    let entry = |name| attr::entry(plan, name);
    let has_costs = tasks.iter().all(|&task| task.has(attr::COST));
    if !has_costs || tasks.is_empty() {
        return Ok(());
    }
    let module_problem = ModuleProblem::build(module, 1)?;
    let problem_now = problem(&module_problem.problem, &PipelineRules::of_certificate(plan));
    let proven_for = entry("problem").and_then(attr::as_string).map(str::to_owned);
    let is_changed = proven_for.as_ref().is_some_and(|mark| *mark != problem_now);
    if is_changed && !has_names(&module_problem.problem) {
        // Without unique names, a changed order and a changed problem cannot be distinguished.
        mark(module, &[("problem", &problem_now)]);
    }
    if entry("objective").and_then(attr::as_string) == Some("latency") {
        let plan = read_plan(module, &module_problem)?;
        let problem = proven_for.map(|_| problem_now);
        let marks = Marks { decisions: Some(decided), problem, ..Marks::kept(module) };
        write_certificate(module, &plan, PipelineShape::default(), &marks);
        if is_changed && has_names(&module_problem.problem) {
            let message = format!(
                "costs, devices or constraints have changed since planning: the proven bound no longer holds, the \
                 bound is now {} us",
                short_number(plan.bound)
            );
            warning(module, &message);
        }
    }
    Ok(())
}

fn refuse(step: Operation<'_>) -> Failure {
    let message = format!(
        "{} belongs to a plan of queued inputs or of a pipeline of batches, whose stages differ in batch size and cannot be \
         merged: start from the module that was planned",
        describe(step)
    );
    error(step, &message);
    Failure
}

/// Removes private functions without references.
fn remove_functions<'m>(module: Operation<'m>, launches: &[(Operation<'m>, Operation<'m>)]) {
    let mut named: FxHashSet<&str> = FxHashSet::default();
    module.walk(|operation| {
        named.extend(operation.get(attr::CALLEE));
    });
    let mut removed = FxHashSet::default();
    for &(_, stage) in launches {
        // A function may be launched several times.
        if !removed.insert(stage) {
            continue;
        }
        if stage.is_private() && !named.contains(stage.symbol_name().unwrap_or_default()) {
            stage.erase();
        }
    }
}

#[derive(Default)]
struct Inliner<'m> {
    constants: FxHashMap<Contents<'m>, Operation<'m>>,
}

impl<'m> Inliner<'m> {
    /// Replaces a launch by copies of its stage's tasks. Returns them, with the start of the launch.
    fn inline(&mut self, launch: Operation<'m>, function: Operation<'m>) -> Option<Row<'m>> {
        let body = function.blocks()[0];
        let mut tasks = body.operations();
        let end = tasks.pop()?;
        let mut copies = vec![];
        let mut outside: FxHashMap<Value<'m>, Value<'m>> = FxHashMap::default();
        for (argument, operand) in body.arguments().into_iter().zip(launch.operands()) {
            outside.insert(argument, operand);
        }
        let device = launch.get(attr::LAUNCH_DEVICE).unwrap_or_default();
        let stage = launch.get(attr::STAGE);
        let start = launch.get(attr::START).map(Micros);
        // In a pipeline, starts are relative to the beginning of the stage.
        let mut now = if stage.is_some() { Micros::ZERO } else { start.unwrap_or_default() };
        for task in tasks {
            let copy = self.copy(task, launch, &outside);
            for (before, after) in task.results().into_iter().zip(copy.results()) {
                outside.insert(before, after);
            }
            if is_constant(task) {
                continue;
            }
            copies.push(copy);
            copy.set(attr::DEVICE, device);
            stage.into_iter().for_each(|stage| copy.set(attr::STAGE, stage));
            if start.is_some() {
                copy.set(attr::START, now.0);
            }
            now += micros_on(task, device);
        }
        for (value, result) in end.operands().into_iter().zip(launch.results()) {
            let value = outside.get(&value).copied();
            value.into_iter().for_each(|value| result.replace_all_uses_with(value));
        }
        launch.erase();
        Some((start?, copies))
    }

    /// Copies an operation to the position of a launch, with its operands replaced; an equal constant is reused.
    fn copy(
        &mut self,
        operation: Operation<'m>,
        launch: Operation<'m>,
        outside: &FxHashMap<Value<'m>, Value<'m>>,
    ) -> Operation<'m> {
        let known = is_constant(operation) && operation.operands().is_empty();
        let key = known.then(|| contents(operation));
        if let Some(&constant) = key.as_ref().and_then(|key| self.constants.get(key)) {
            return constant;
        }
        let copy = operation.clone_detached().insert_before(launch);
        copy.replace_operands(outside);
        key.into_iter().for_each(|key| {
            self.constants.insert(key, copy);
        });
        copy
    }
}

/// Name, attributes and result types of a constant.
type Contents<'m> = (&'m str, Vec<(&'m str, Attribute<'m>)>, Vec<Type<'m>>);

fn contents(constant: Operation<'_>) -> Contents<'_> {
    let types = constant.results().into_iter().map(Value::r#type).collect();
    (constant.name(), constant.attributes(), types)
}

/// Returns the time of a task on a device for one input; 0 if it is unknown.
fn micros_on(task: Operation<'_>, device: &str) -> Micros {
    let entries = task.get(attr::COST).map(|cost| cost.entries()).unwrap_or_default();
    entries
        .iter()
        .find(|entry| entry.device == device && entry.batch == 1)
        .map_or(Micros::ZERO, |entry| Micros(entry.micros))
}

impl InlineStages {
    pub(crate) fn run(&self, module: Operation<'_>) -> Result<InlineStagesStatistics, Failure> {
        Ok(InlineStagesStatistics { num_inlined: inline_stages(module)? })
    }
}
