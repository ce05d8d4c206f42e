//! Replays a plan from a file on the model that it was made for, or reports the differences.

use super::Options;
use crate::{
    cost::ModuleProblem,
    ir::{Failure, error},
};
use divi_dialect::Operation;
use divi_planner::{Objective, PipelineCost, Plan, Problem, Terms, plan::Schedule, problem::Contention, verify_under};
use rustc_hash::FxHashSet;
use std::{fs, path::Path};

/// Maximum number of names in a message.
const SHOWN: usize = 8;

/// Reads a plan's file. Errors are emitted on the module.
pub(super) fn read(module: Operation<'_>, file: &Path) -> Result<Plan, Failure> {
    let fail = |message: String| {
        error(module, &format!("plan '{}': {message}", file.display()));
        Failure
    };
    let text = fs::read_to_string(file).map_err(|error| fail(error.to_string()))?;
    Plan::read(&text).map_err(|error| fail(error.to_string()))
}

/// Returns objective and number of inputs of a plan. The error names an option that contradicts the plan.
pub(super) fn asked(plan: &Plan, options: &Options) -> Result<(Objective, u32), String> {
    let inputs = inputs(plan);
    if let Some(other) = options.objective.filter(|other| *other != plan.objective) {
        return Err(format!("the plan is for objective {}, not {other}: leave the objective out", plan.objective));
    }
    if let Some(other) = options.planner.inputs.filter(|other| *other != inputs) {
        return Err(format!("the plan is for {inputs} inputs, not {other}: leave the inputs out"));
    }
    if let Some(other) = options.launches.filter(|other| *other != plan.launches && plan.objective == Objective::Batch)
    {
        let own = plan.launches;
        return Err(format!("the plan is for launches={own}, not {other}: leave the launches out"));
    }
    if let (Some(own), Some(other)) = (plan.contention, options.contention)
        && own != other
    {
        return Err(format!("the plan is for contention {own}, not {other}: leave the contention out"));
    }
    let own = plan.pipeline_cost.as_deref().unwrap_or(PipelineCost::Serial.name());
    if let Some(other) = options.planner.pipeline_cost.filter(|other| other.name() != own) {
        return Err(format!("the plan is for pipeline cost {own}, not {}: leave the pipeline cost out", other.name()));
    }
    let of_stages = [
        ("maximum batch size", plan.max_batch, options.planner.max_batch, "max-batch"),
        ("replicas", plan.max_replicas, options.planner.max_replicas, "replicas"),
    ];
    for (what, own, other, option) in of_stages {
        if let Some(other) = other.filter(|other| *other != own.unwrap_or(1)) {
            let own = own.map_or_else(|| "the default".to_owned(), |own| own.to_string());
            return Err(format!("the plan is for {what} {own}, not {other}: leave {option} out"));
        }
    }
    Ok((plan.objective, inputs))
}

/// Returns the number of inputs that a plan is for.
fn inputs(plan: &Plan) -> u32 {
    match &plan.schedule {
        Schedule::Batch { batches, .. } => {
            let last = batches.iter().flat_map(|batch| &batch.inputs).max();
            last.map_or(1, |last| last.saturating_add(1))
        }
        Schedule::Latency { .. }
        | Schedule::Pipeline { .. }
        | Schedule::BatchedPipeline { .. }
        | Schedule::Edge { .. } => 1,
    }
}

/// Sets the contention of the problem to that of the plan. Returns it if it is a different one.
pub(super) fn adopt_contention(module_problem: &mut ModuleProblem<'_>, plan: &mut Plan) -> Option<Contention> {
    let own = module_problem.problem.hash();
    let contention = plan.contention.filter(|contention| *contention != module_problem.problem.contention)?;
    module_problem.problem.contention = contention;
    let asked = module_problem.problem.hash();
    // The contention may come from an option, so that the plan has the hash of the problem without it.
    if plan.problem == own {
        plan.problem = asked;
    }
    Some(contention)
}

/// Returns the plan if it is valid for the module. The error lists new and missing tasks, or the findings of the
/// verifier.
pub(super) fn fit(module: Operation<'_>, module_problem: &ModuleProblem<'_>, plan: Plan) -> Result<Plan, Failure> {
    let problem = &module_problem.problem;
    if plan.problem != problem.hash() {
        error(module, &format!("the plan is for another problem: {}", differences(problem, &plan)));
        return Err(Failure);
    }
    // The plan's own terms apply; options that contradict them have been rejected.
    match verify_under(problem, &plan, &Terms::stated_by(&plan)) {
        Ok(_) => Ok(plan),
        Err(findings) => {
            error(module, &findings.to_string());
            Err(Failure)
        }
    }
}

/// Describes the differences between a model and the one that was planned.
fn differences(problem: &Problem, plan: &Plan) -> String {
    const REMEDY: &str = "plan it again";
    let Some(planned) = &plan.names else {
        return format!("it does not name its tasks, so the change cannot be identified; {REMEDY}");
    };
    let present: Vec<&str> = problem.nodes.iter().map(|node| node.name.as_deref().unwrap_or_default()).collect();
    let before: FxHashSet<&str> = planned.iter().map(String::as_str).collect();
    let after: FxHashSet<&str> = present.iter().copied().collect();
    let new: Vec<&str> = present.iter().copied().filter(|name| !before.contains(name)).collect();
    let gone: Vec<&str> = planned.iter().map(String::as_str).filter(|name| !after.contains(name)).collect();
    if new.is_empty() && gone.is_empty() {
        let order = if planned.iter().map(String::as_str).eq(present.iter().copied()) {
            "the tasks are the same, but times, sizes, devices, links or constraints are not"
        } else {
            "the tasks are the same, but not in the same order"
        };
        return format!("{order}: use the system and options that it was planned with, or {REMEDY}");
    }
    let parts: Vec<String> = [("new", new), ("gone", gone)]
        .into_iter()
        .filter(|(_, names)| !names.is_empty())
        .map(|(what, names)| format!("{} {what}: {}", count(names.len()), listed(&names)))
        .collect();
    format!("{}; {REMEDY}", parts.join("; "))
}

fn count(tasks: usize) -> String {
    if tasks == 1 { "1 task is".into() } else { format!("{tasks} tasks are") }
}

fn listed(names: &[&str]) -> String {
    let shown: Vec<String> = names.iter().take(SHOWN).map(|name| format!("'{name}'")).collect();
    let rest = if names.len() > SHOWN { ", …" } else { "" };
    format!("{}{rest}", shown.join(", "))
}
