//! `divi-outline`: converts a plan of tasks to functions that devices launch, and transfers between them.

mod flow;
mod function;
mod model;
mod parts;

use crate::{
    cost::ModuleProblem,
    decisions,
    declared::{Outline, OutlineStatistics},
    ir::{Failure, error, warning},
    partition::{Marks, planned_inputs, read_plan, remove_decisions, write_certificate},
    session::Session,
};
use divi_dialect::Operation;
use divi_planner::Objective;
use divi_stages::{StageOptions, Staged, stages};
use model::Model;

//===----------------------------------------------------------------------===//
// --divi-outline
//===----------------------------------------------------------------------===//

/// Makes a plan explicit: tasks that a device runs without waiting become a private function (a stage), and the entry
/// function launches stages and transfers tensors. A stage of fewer than `min_stage_ops` tasks is merged into another
/// where that is possible. Constants are copied to every stage that reads them.
///
/// Keeps the devices and orders of the plan, except for merged stages, and updates starts that are out of date. To plan
/// again, start from the module that was planned, or run `divi-inline-stages`.
pub fn outline(
    module: Operation<'_>,
    min_stage_ops: usize,
    session: Option<&mut Session>,
) -> Result<OutlineStatistics, Failure> {
    let Some(inputs) = planned_inputs(module) else {
        error(module, "has no divi.plan with a number of inputs: run divi-partition first");
        return Err(Failure);
    };
    let module_problem = ModuleProblem::build(module, inputs)?;
    let plan = read_plan(module, &module_problem)?;
    let outputs = module_problem.first_task + module_problem.tasks.len()..module_problem.problem.nodes.len();
    let ports = (0..module_problem.first_task).chain(outputs).collect();
    let options = StageOptions { min_tasks: min_stage_ops, ports: Some(ports) };
    let proven_for = decisions::problem(&module_problem.problem, plan.pipeline_cost.as_deref(), plan.shared_devices);
    let staged = stages(&module_problem.problem, &plan, &options).map_err(|wrong| {
        error(module, &wrong.to_string());
        Failure
    })?;
    if staged.small > 0 {
        let message = match staged.small {
            1 => format!("1 stage has fewer than {min_stage_ops} tasks and cannot be merged into another"),
            small => format!("{small} stages have fewer than {min_stage_ops} tasks and cannot be merged into others"),
        };
        warning(module, &message);
    }
    let model = Model::new(module, &module_problem, &staged)?;
    let launched = function::functions(&model)?;
    let moved = flow::rewrite(&model, &launched)?;
    remove_decisions(module_problem.function);
    let pipeline = if staged.plan.objective == Objective::Pipeline { staged.stages.len() } else { 0 };
    write_certificate(module, &staged.plan, pipeline, &Marks { problem: Some(proven_for), ..Marks::kept(module) });
    let Staged { stages, moves, elided, merged, plan, .. } = staged;
    if let Some(session) = session {
        session.staged(plan);
    }
    let counts = [stages.len(), moved, elided + moves.len() - moved, merged].map(|count| count as u64);
    let [num_stages, num_transfers, num_elided, num_merged] = counts;
    Ok(OutlineStatistics { num_stages, num_transfers, num_elided, num_merged })
}

impl Outline {
    pub(crate) fn run(
        &self,
        module: Operation<'_>,
        session: Option<&mut Session>,
    ) -> Result<OutlineStatistics, Failure> {
        let Ok(min_stage_ops) = usize::try_from(self.min_stage_ops) else {
            error(module, &format!("min-stage-ops is {}: it must not be negative", self.min_stage_ops));
            return Err(Failure);
        };
        outline(module, min_stage_ops, session)
    }
}
