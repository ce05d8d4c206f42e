//! `divi-plan verify`.

use std::path::PathBuf;

use divi_planner::plan::LaunchRule;
use divi_planner::problem::Contention;
use divi_planner::{Objective, Terms};
use serde_json::json;

use super::{Pipeline, contentions, launch_rules, objectives};
use crate::files;

/// Recompute the value of a plan from the two files only, and print it
///
/// If the plan is invalid, lists the violated constraints and exits with status 1. The plan is verified under the
/// problem's model, or under the model that these options state. A plan that was made under another model is
/// rejected.
#[derive(clap::Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Verify {
    /// Problem, a divi-problem/1 file
    problem: PathBuf,
    /// Plan for it, a divi-plan/1, divi-plan/2 or divi-plan/3 file
    plan: PathBuf,
    /// File for the value, instead of stdout
    #[arg(short, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Objective that the plan must have; by default any
    #[arg(long, value_name = "NAME", value_parser = objectives())]
    objective: Option<Objective>,
    /// Number of queued inputs
    #[arg(long, value_name = "N")]
    inputs: Option<u32>,
    /// Number of launches of a task on each device of a queue; by default that of the plan
    ///
    /// At most one (one, divi-plan/2), or any number (many, divi-plan/3).
    #[arg(long, value_name = "NAME", value_parser = launch_rules())]
    launches: Option<LaunchRule>,
    /// Contention of transfers on one bus
    ///
    /// Transfers are independent (off), one at a time (exclusive), or share the bandwidth (shared).
    #[arg(long, value_name = "NAME", value_parser = contentions())]
    contention: Option<Contention>,
    #[command(flatten)]
    pipeline: Pipeline,
    /// Print the value, the bound and the gap as JSON
    #[arg(long)]
    json: bool,
}

impl Verify {
    pub(super) fn run(self) -> Result<(), String> {
        let Pipeline { k: stages, allow_shared_devices: shared_devices, pipeline_cost, splits, .. } = self.pipeline;
        let Pipeline { max_batch, replicas: max_replicas, .. } = self.pipeline;
        let Self { objective, inputs, launches, contention, .. } = self;
        let terms = Terms {
            objective,
            inputs,
            launches,
            contention,
            stages,
            shared_devices,
            pipeline_cost,
            splits,
            max_batch,
            max_replicas,
        };
        files::check(&[&self.problem, &self.plan], &[("-o", self.output.as_deref())])?;
        let (problem, plan) = (files::problem(&self.problem)?, files::plan(&self.plan)?);
        let value = divi_planner::verify_under(&problem, &plan, &terms).map_err(|error| error.to_string())?;
        let text = if self.json {
            json!({"value": value, "bound": plan.bound, "proof": plan.proof.name(), "gap": plan.gap}).to_string()
        } else {
            divi_planner::units::number(value)
        };
        files::write(self.output.as_deref(), &format!("{text}\n"))
    }
}
