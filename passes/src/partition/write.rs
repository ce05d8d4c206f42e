//! A plan as attributes of tasks, and its certificate on the module.

use super::{copies, moves};
use crate::{
    cost::Posed,
    decisions,
    fingerprint::fingerprint,
    ir::{
        Failure, array, attribute, dictionary_entry, integer, named_attribute, number, set_attribute, string,
        string_attribute, symbol_reference, text,
    },
    tasks::entry,
};
use divi_dialect::BatchAttribute;
use divi_planner::{
    Objective, Plan,
    plan::{Batch, Limit, Schedule, Stages},
};
use melior::{
    Context, ContextRef, StringRef,
    ir::{AttributeLike, Location},
};
use mlir_sys::*;

/// Attributes of tasks that a plan decides.
const DECISIONS: [&str; 5] = ["divi.device", "divi.start", "divi.stage", "divi.batches", "divi.moves"];

/// Takes away what an earlier plan has decided about a task, or about the arguments of the function that runs the model.
pub(crate) fn remove_decisions(task: MlirOperation) {
    for name in DECISIONS {
        // SAFETY: the operation is alive.
        unsafe { mlirOperationRemoveAttributeByName(task, StringRef::new(name).to_raw()) };
    }
}

/// Writes a plan onto the tasks of the module that poses its problem.
pub(crate) fn write_plan(module: MlirOperation, posed: &Posed, plan: &Plan) -> Result<(), Failure> {
    // SAFETY: the context of a live operation is alive, and outlives the pass.
    let context = unsafe { ContextRef::from_raw(mlirOperationGetContext(module)) };
    // SAFETY: see above.
    let writer = Writer { context: unsafe { context.to_ref() }, posed };
    posed.tasks.iter().chain([&posed.function]).for_each(|&operation| remove_decisions(operation));
    let mut stages = 0;
    match &plan.schedule {
        Schedule::Latency { device, start, .. } => {
            for (task, node) in writer.tasks() {
                writer.device(task, device[node]);
                writer.start(task, start[node]);
            }
        }
        Schedule::Batch { batches, .. } => writer.batches(batches)?,
        Schedule::Pipeline { block, stages: Some(Stages { block_device: Some(devices), order }), .. } => {
            stages = writer.pipeline(block, devices, order.as_deref());
        }
        Schedule::Pipeline { .. } | Schedule::Edge { .. } => {
            crate::ir::error(module, "the plan is for devices that are all alike: plan for those of the module");
            return Err(Failure);
        }
    }
    moves::write_transfers(writer.context, posed, &plan.transfers)?;
    copies::write(writer.context, posed, &plan.copies)?;
    let marks = Marks {
        decisions: Some(decisions::fingerprint(&posed.tasks)),
        // Queued inputs are run in stages of other batches, which compute other things.
        model: if plan.objective == Objective::Batch { None } else { fingerprint(module, entry(module)?) },
        problem: Some(decisions::problem(&posed.problem, plan.pipeline_cost.as_deref(), plan.shared_devices)),
    };
    write_certificate(module, plan, stages, &marks);
    Ok(())
}

/// What tells whether a module is still the one that was planned, and the plan still the one that was made.
pub(crate) struct Marks {
    pub(crate) decisions: Option<String>,
    pub(crate) model: Option<String>,
    /// What the bound was proven for.
    pub(crate) problem: Option<String>,
}

impl Marks {
    /// Those that a plan keeps when it is made explicit: stages compute what the model does, and tasks decide nothing any
    /// more.
    pub(crate) fn kept(module: MlirOperation) -> Self {
        let plan = attribute(module, "divi.plan");
        let mark = |name| plan.and_then(|plan| dictionary_entry(plan, name)).and_then(string_attribute);
        let kept = |name| mark(name).map(str::to_owned);
        Self { decisions: None, model: kept("model"), problem: kept("problem") }
    }
}

/// Puts what is proven about a plan on the module, and what it is proven for. A pipeline has so many stages.
pub(crate) fn write_certificate(module: MlirOperation, plan: &Plan, stages: usize, marks: &Marks) {
    // SAFETY: the context of a live operation is alive, and outlives the pass.
    let context = unsafe { ContextRef::from_raw(mlirOperationGetContext(module)) };
    // SAFETY: see above.
    let context = unsafe { context.to_ref() };
    let mut entries = vec![
        ("objective", string(context, plan.objective.name())),
        ("value", number(context, plan.value)),
        ("bound", number(context, plan.bound)),
        ("gap", number(context, plan.gap)),
        ("bound_by", string(context, &plan.bound_by)),
        ("proof", string(context, plan.proof.name())),
        ("algorithm", string(context, &plan.algorithm)),
        ("seed", integer(context, i64::try_from(plan.seed).unwrap_or(i64::MAX))),
    ];
    entries.extend(plan.verified_bound.map(|verified| ("verified_bound", number(context, verified))));
    entries.extend(marks.decisions.as_ref().map(|decisions| ("decisions", string(context, decisions))));
    entries.extend(marks.model.as_ref().map(|model| ("model", string(context, model))));
    entries.extend(marks.problem.as_ref().map(|problem| ("problem", string(context, problem))));
    let contention = attribute(module, "divi.contention").and_then(string_attribute).filter(|name| *name != "off");
    // SAFETY: the context is alive.
    let unit = unsafe { mlirUnitAttrGet(context.to_raw()) };
    entries.extend(attribute(module, "divi.cold").map(|_| ("cold", unit)));
    entries.extend(contention.map(|contention| ("contention", string(context, contention))));
    match plan.limit {
        Some(Limit::Iterations(count)) => {
            entries.push(("iterations", integer(context, i64::try_from(count).unwrap_or(i64::MAX))));
        }
        Some(Limit::Seconds(seconds)) => entries.push(("seconds", number(context, seconds))),
        None => {}
    }
    match &plan.schedule {
        Schedule::Batch { batches, .. } => {
            let inputs = batches.iter().flat_map(|batch| &batch.inputs).max().map_or(1, |last| last + 1);
            entries.push(("inputs", integer(context, inputs.into())));
        }
        Schedule::Pipeline { .. } => {
            entries.push(("k", integer(context, stages as i64)));
            entries.push(("pipeline_cost", string(context, plan.pipeline_cost.as_deref().unwrap_or("serial"))));
            if plan.shared_devices {
                entries.push(("shared_devices", unit));
            }
        }
        Schedule::Latency { .. } | Schedule::Edge { .. } => {}
    }
    let named: Vec<_> = entries.into_iter().map(|(name, value)| named_attribute(context, name, value)).collect();
    // SAFETY: names and values are alive.
    let dictionary = unsafe { mlirDictionaryAttrGet(context.to_raw(), named.len() as isize, named.as_ptr()) };
    set_attribute(module, "divi.plan", dictionary);
}

/// Puts marks into a certificate that is there, in place of those that it has.
pub(crate) fn mark(module: MlirOperation, marks: &[(&str, &str)]) {
    let Some(plan) = attribute(module, "divi.plan") else { return };
    // SAFETY: the context of a live operation is alive, and outlives the pass.
    let context = unsafe { ContextRef::from_raw(mlirOperationGetContext(module)) };
    // SAFETY: see above; a verified certificate is a dictionary, and indices are below the count.
    let (context, mut entries) = unsafe {
        let entries = (0..mlirDictionaryAttrGetNumElements(plan)).map(|i| mlirDictionaryAttrGetElement(plan, i));
        (context.to_ref(), entries.collect::<Vec<_>>())
    };
    // SAFETY: names live as long as the context.
    entries.retain(|entry| marks.iter().all(|(name, _)| unsafe { text(mlirIdentifierStr(entry.name)) } != *name));
    entries.extend(marks.iter().map(|(name, value)| named_attribute(context, name, string(context, value))));
    // SAFETY: names and values are alive.
    let dictionary = unsafe { mlirDictionaryAttrGet(context.to_raw(), entries.len() as isize, entries.as_ptr()) };
    set_attribute(module, "divi.plan", dictionary);
}

struct Writer<'a> {
    context: &'a Context,
    posed: &'a Posed,
}

impl Writer<'_> {
    /// Each task with its node.
    fn tasks(&self) -> impl Iterator<Item = (MlirOperation, usize)> {
        self.posed.tasks.iter().copied().zip(self.posed.first_task..)
    }

    fn device(&self, task: MlirOperation, device: usize) {
        let name = &self.posed.problem.devices[device].name;
        set_attribute(task, "divi.device", symbol_reference(self.context, name));
    }

    fn start(&self, task: MlirOperation, start: f64) {
        set_attribute(task, "divi.start", number(self.context, start));
    }

    fn batches(&self, batches: &[Batch]) -> Result<(), Failure> {
        let mut of: Vec<Vec<&Batch>> = vec![vec![]; self.posed.problem.nodes.len()];
        batches.iter().for_each(|batch| of[batch.node].push(batch));
        for (task, node) in self.tasks() {
            of[node].sort_by(|a, b| a.start.total_cmp(&b.start).then(a.device.cmp(&b.device)));
            // SAFETY: the operation is alive.
            let location = unsafe { Location::from_raw(mlirOperationGetLocation(task)) };
            let mut list = vec![];
            for batch in &of[node] {
                let mut inputs: Vec<i64> = batch.inputs.iter().map(|&input| input.into()).collect();
                inputs.sort_unstable();
                let device = &self.posed.problem.devices[batch.device].name;
                let batch = BatchAttribute::new(location, device, batch.start, &inputs).ok_or(Failure)?;
                list.push(batch.as_attribute().to_raw());
            }
            set_attribute(task, "divi.batches", array(self.context, &list));
        }
        Ok(())
    }

    /// Stages are numbered as data flow through them; starts count from the beginning of the stage. How many there are.
    fn pipeline(&self, block: &[usize], devices: &[usize], order: Option<&[Vec<usize>]>) -> usize {
        let mut stage_of = vec![None; devices.len()];
        let stages = self.stage_order(block, devices.len());
        for (stage, &block) in stages.iter().enumerate() {
            stage_of[block] = Some(stage);
        }
        let mut clock = vec![0.0; devices.len()];
        let mut start = vec![0.0; block.len()];
        let mut run = |node: usize| {
            let time = self.posed.problem.nodes[node].time.get(&1).and_then(|times| times[devices[block[node]]]);
            start[node] = clock[block[node]];
            clock[block[node]] += time.unwrap_or(0.0);
        };
        match order {
            Some(order) => order.iter().flatten().for_each(|&node| run(node)),
            // The nodes of a module are in an order that they can run in.
            None => (0..block.len()).for_each(run),
        }
        for (task, node) in self.tasks() {
            self.device(task, devices[block[node]]);
            self.start(task, start[node]);
            let stage = stage_of[block[node]].expect("a block with tasks is a stage");
            set_attribute(task, "divi.stage", integer(self.context, stage as i64));
        }
        stages.len()
    }

    /// The blocks that have tasks, each behind those that it reads from; of those that could come next, the one whose
    /// first task comes first in the module.
    fn stage_order(&self, block: &[usize], count: usize) -> Vec<usize> {
        let mut readers = vec![vec![]; count];
        let mut waits_for = vec![0usize; count];
        for tensor in self.posed.problem.all_tensors() {
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
