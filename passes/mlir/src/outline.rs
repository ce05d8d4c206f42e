//! `divi-outline`: converts a plan of tasks to functions that devices launch, and transfers between them.

mod flow;
mod function;
mod model;
mod parts;

use crate::{
    cost::ModuleProblem,
    decisions::{self, PipelineRules},
    declared::{Outline, OutlineStatistics},
    ir::{Failure, error, warning},
    partition::{Marks, PipelineShape, planned_inputs, read_plan, remove_decisions, write_certificate},
    session::Session,
};
use divi_dialect::Operation;
use divi_planner::plan::Schedule;
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
    let options = StageOptions { min_tasks: min_stage_ops, ports: Some(module_problem.ports()) };
    let proven_for = decisions::problem(&module_problem.problem, &PipelineRules::of_plan(&plan));
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
    // One more than the last.
    let last = staged.stages.iter().filter_map(|stage| stage.number).max();
    let is_batched = matches!(staged.plan.schedule, Schedule::BatchedPipeline { .. });
    let shape =
        PipelineShape { stages: last.map_or(0, |last| last + 1), inputs: if is_batched { staged.inputs } else { 0 } };
    write_certificate(module, &staged.plan, shape, &Marks { problem: Some(proven_for), ..Marks::kept(module) });
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
