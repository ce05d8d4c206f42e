//! Launches, and the functions that they run.

use crate::{
    ir::describe,
    tasks::{is_constant, reads, task_name},
    verify_plan::{
        Findings,
        certificate::{Certificate, Objective},
        machine::Machine,
        task::Task,
    },
};
use divi_dialect::{Block, Operation, Value, attr, op};
use divi_onnx::Op;
use divi_planner::units::Micros;
use rustc_hash::FxHashMap;

/// Task of a stage, with its times.
pub(super) struct Step<'m> {
    pub(super) task: Task<'m>,
    /// Name of the task in the model.
    pub(super) name: String,
    /// True if the step takes no time: an operator that only rearranges inputs, or a further part of the unrolled task
    /// of the step before.
    pub(super) is_auxiliary: bool,
    pub(super) start: Micros,
    pub(super) end: Micros,
}

/// Launch of a stage, whose tasks run one after the other.
pub(super) struct Stage<'m> {
    pub(super) launch: Operation<'m>,
    pub(super) function: Operation<'m>,
    pub(super) device: usize,
    /// In the order of `divi.inputs`.
    pub(super) inputs: Vec<i64>,
    /// Number of the stage in a pipeline.
    pub(super) number: Option<i64>,
    pub(super) start: Micros,
    pub(super) end: Micros,
    pub(super) steps: Vec<Step<'m>>,
    pub(super) arguments: Vec<Value<'m>>,
    pub(super) returned: Vec<Value<'m>>,
}

/// Functions of a module by name.
pub(super) type Functions<'m> = FxHashMap<&'m str, Operation<'m>>;

impl<'m> Stage<'m> {
    /// Reads a launch; `None` if it is incomplete.
    pub(super) fn of(
        launch: Operation<'m>,
        functions: &Functions<'m>,
        machine: &Machine,
        certificate: &Certificate<'_>,
        findings: &mut Findings,
    ) -> Option<Self> {
        let callee = launch.get(attr::CALLEE)?;
        let function = *functions.get(callee)?;
        let device = launch.get(attr::LAUNCH_DEVICE).and_then(|name| machine.find(name))?;
        if !function.has(attr::DEVICE) {
            let message = format!("@{callee} has no divi.device, but is launched: outline again");
            findings.add(function, &message);
        }
        let what = format!("launch of @{callee}");
        let number = stage_number(launch, function, callee, certificate, findings);
        let inputs = inputs(launch, &what, certificate, findings);
        let start = launch.get(attr::START).map(Micros).filter(|start| start.is_finite());
        if start.is_none() {
            findings.add(launch, &format!("the {what} has no divi.start: outline again"));
        }
        let &[body] = &function.blocks()[..] else {
            findings.add(function, &format!("@{callee} does not have one block, but is launched: outline again"));
            return None;
        };
        let mut stage = Self {
            launch,
            function,
            device,
            inputs,
            number,
            start: start?,
            end: start?,
            steps: vec![],
            arguments: body.arguments(),
            returned: vec![],
        };
        stage.read(body, machine, findings);
        Some(stage)
    }

    fn read(&mut self, body: Block<'m>, machine: &Machine, findings: &mut Findings) {
        let mut tasks = vec![];
        for operation in body.operations() {
            match operation.name() {
                _ if is_constant(operation) => {}
                op::RETURN | "onnx.Return" => self.returned = operation.operands(),
                op::LAUNCH | op::TRANSFER | op::SLICE | op::GATHER | op::CALL => {
                    let message = format!(
                        "{} is in a stage, which may contain only tasks, constants and a return: outline again",
                        describe(operation)
                    );
                    findings.add(operation, &message);
                }
                _ => tasks.push(operation),
            }
        }
        let mut next = 0;
        while next < tasks.len() {
            let same = unrolled(&tasks[next..], self.inputs.len());
            for (i, &operation) in tasks[next..next + same].iter().enumerate() {
                self.step(operation, same > 1, i > 0, machine, findings);
            }
            next += same;
        }
    }

    /// Adds a step. The time of an unrolled task is charged to its first step.
    fn step(
        &mut self,
        operation: Operation<'m>,
        is_unrolled: bool,
        is_further_part: bool,
        machine: &Machine,
        findings: &mut Findings,
    ) {
        if let Some(other) = operation.get(attr::DEVICE)
            && other != machine.devices[self.device].name
        {
            let message = format!(
                "{} has divi.device @{other}, but is in a stage on {}: outline again",
                describe(operation),
                machine.label(self.device)
            );
            findings.add(operation, &message);
        }
        let is_auxiliary = is_further_part || (self.inputs.len() > 1 && is_auxiliary(operation));
        let (task, start) =
            (if is_auxiliary { Task::free(operation) } else { Task::of(operation, findings) }, self.end);
        if !is_auxiliary {
            self.end += task.time(machine, self.device, self.inputs.len(), findings);
        }
        let name = task_name(operation);
        let name = if is_unrolled { name.rsplit_once('#').map_or(name, |(name, _)| name) } else { name };
        self.steps.push(Step { task, name: name.to_owned(), is_auxiliary, start, end: self.end });
    }

    /// Returns true if another stage has the same tasks.
    pub(super) fn is_same(&self, other: &Self) -> bool {
        let steps = |stage: &Self| {
            let named = stage.steps.iter().map(|step| (step.name.clone(), step.task.operation.name().to_owned()));
            named.collect::<Vec<_>>()
        };
        steps(self) == steps(other)
    }

    pub(super) fn name(&self) -> &str {
        self.function.symbol_name().unwrap_or_default()
    }
}

/// Returns the number of leading operators that form one task: a task that mixes inputs is unrolled into one operator
/// per input.
fn unrolled(tasks: &[Operation<'_>], inputs: usize) -> usize {
    let Some(same) = tasks.get(..inputs).filter(|_| inputs > 1) else { return 1 };
    let first_name = same[0].get(attr::NODE_NAME);
    let is_one = same.iter().enumerate().all(|(i, &operation)| {
        let is_named = match (first_name.and_then(|name| name.strip_suffix("#0")), operation.get(attr::NODE_NAME)) {
            (Some(all), Some(own)) => own.strip_prefix(all) == Some(&format!("#{i}")),
            // Clusters are identified by their members: neighbors may happen to have the same cost.
            (None, None) => first_name.is_none() && task_name(operation) == task_name(same[0]),
            _ => false,
        };
        let reads_another =
            || same.iter().flat_map(|&other| other.results()).any(|result| reads(operation).contains(&result));
        is_named
            && operation.name() == same[0].name()
            && operation.has(attr::COST)
            && operation.attribute(attr::COST.name()) == same[0].attribute(attr::COST.name())
            && !reads_another()
    });
    if is_one { inputs } else { 1 }
}

/// Returns true if an operator only slices, concatenates or repeats inputs, and is not a task of the model.
fn is_auxiliary(operation: Operation<'_>) -> bool {
    let is_kind = matches!(operation.op(), Some(Op::Slice | Op::Concat | Op::Reshape | Op::Unsqueeze | Op::Tile));
    let name = operation.get(attr::NODE_NAME);
    is_kind && !operation.has(attr::COST) && name.is_none_or(|name| name.contains('#'))
}

/// Returns the stage of a launch in a pipeline, which must be that of the function.
fn stage_number(
    launch: Operation<'_>,
    function: Operation<'_>,
    callee: &str,
    certificate: &Certificate<'_>,
    findings: &mut Findings,
) -> Option<i64> {
    if certificate.objective != Objective::Pipeline {
        return None;
    }
    match (launch.get(attr::STAGE), function.get(attr::STAGE)) {
        (Some(launched), Some(declared)) if launched != declared => {
            let message = format!(
                "the launch of @{callee} is stage {launched}, but the function is stage {declared}: outline again"
            );
            findings.add(launch, &message);
            Some(launched)
        }
        (Some(launched), Some(_)) => Some(launched),
        (launched, _) => {
            let (operation, what) = if launched.is_none() { (launch, "launch of ") } else { (function, "function ") };
            findings.add(operation, &format!("the {what}@{callee} has no divi.stage: outline again"));
            launched
        }
    }
}

/// Returns the inputs of a launch: those of `divi.inputs` if there are several, otherwise the only one.
fn inputs(launch: Operation<'_>, what: &str, certificate: &Certificate<'_>, findings: &mut Findings) -> Vec<i64> {
    if !certificate.is_queued {
        return vec![0];
    }
    let Some(inputs) = launch.get(attr::INPUTS) else {
        findings.add(launch, &format!("the {what} has no divi.inputs, though inputs are queued: outline again"));
        return (0..certificate.inputs).collect();
    };
    let queued = certificate.inputs;
    if let Some(beyond) = inputs.iter().find(|&&input| input < 0 || input >= queued) {
        findings.add(launch, &format!("the {what} is for input {beyond}, but {queued} are queued, counted from 0"));
    }
    inputs
}
