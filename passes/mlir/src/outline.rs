//! `divi-outline`: from a plan of tasks to functions that devices launch, and tensors that move between them.

mod flow;
mod function;
mod model;
mod parts;

use crate::{
    cost::Posed,
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

/// Makes a plan explicit: what a device runs without waiting becomes a private function, a stage, and the function that runs
/// the model launches stages and moves tensors. A stage of fewer than `min_stage_ops` tasks becomes part of another where
/// that is possible. Constants go to every stage that reads them.
///
/// Plans nothing anew but for such stages: devices and orders are those of the plan, and starts that are out of date are
/// brought up to date. Whoever wants another plan starts from the module that was planned, or from `divi-inline-stages`.
pub fn outline(
    module: Operation<'_>,
    min_stage_ops: usize,
    session: Option<&mut Session>,
) -> Result<OutlineStatistics, Failure> {
    let Some(inputs) = planned_inputs(module) else {
        error(module, "has no divi.plan that says for how many inputs it is: run divi-partition first");
        return Err(Failure);
    };
    let posed = Posed::by(module, inputs)?;
    let plan = read_plan(module, &posed)?;
    let outputs = posed.first_task + posed.tasks.len()..posed.problem.nodes.len();
    let ports = (0..posed.first_task).chain(outputs).collect();
    let options = StageOptions { min_tasks: min_stage_ops, ports: Some(ports) };
    let proven_for = decisions::problem(&posed.problem, plan.pipeline_cost.as_deref(), plan.shared_devices);
    let staged = stages(&posed.problem, &plan, &options).map_err(|wrong| {
        error(module, &wrong.to_string());
        Failure
    })?;
    if staged.small > 0 {
        let message = match staged.small {
            1 => format!("1 stage has fewer than {min_stage_ops} tasks: no other stage can take it in"),
            small => format!("{small} stages have fewer than {min_stage_ops} tasks: no other stage can take them in"),
        };
        warning(module, &message);
    }
    let model = Model::new(module, &posed, &staged)?;
    let launched = function::functions(&model)?;
    let moved = flow::rewrite(&model, &launched)?;
    remove_decisions(posed.function);
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
