//! `divi-plan bound`.

use std::path::PathBuf;

use divi_planner::plan::{self, LaunchRule, Limit, Proof};
use divi_planner::{Objective, Options};
use serde_json::json;

use super::{Pipeline, launch_rules, objectives};
use crate::files;

/// Print lower bounds on the value of every plan, in microseconds, the best last
#[derive(clap::Args)]
pub(crate) struct Bound {
    /// Problem to bound, a divi-problem/1 file
    problem: PathBuf,
    /// File for the bounds, instead of stdout
    #[arg(short, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Objective; by default batch if the problem queues several inputs, else latency
    #[arg(long, value_name = "NAME", value_parser = objectives())]
    objective: Option<Objective>,
    /// Number of launches of a task on each device of a queue
    ///
    /// At most one (one, as in the DiviML paper), or any number (many).
    #[arg(long, value_name = "NAME", default_value = LaunchRule::Many.name(), value_parser = launch_rules())]
    launches: LaunchRule,
    #[command(flatten)]
    pipeline: Pipeline,
    /// Time limit of integer programs for pipelines, in seconds
    #[arg(long, value_name = "S", default_value = "10", value_parser = divi_cli::seconds)]
    time_limit: f64,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

impl Bound {
    pub(super) fn run(self) -> Result<(), String> {
        let Pipeline { k: stages, allow_shared_devices: shared_devices, pipeline_cost, splits, .. } = self.pipeline;
        let Pipeline { max_batch, replicas: max_replicas, .. } = self.pipeline;
        let limit = Some(Limit::Seconds(self.time_limit));
        let options = Options {
            limit,
            launches: self.launches,
            stages,
            shared_devices,
            pipeline_cost,
            splits,
            max_batch,
            max_replicas,
            ..Options::default()
        };
        files::check(&[&self.problem], &[("-o", self.output.as_deref())])?;
        let problem = files::problem(&self.problem)?;
        let by_default = problem.default_objective();
        let objective = self.objective.unwrap_or(by_default);
        let bounds = divi_planner::api::bounds(&problem, objective, &options).map_err(|error| error.to_string())?;
        let best = bounds.iter().cloned().fold(plan::Bound::none(), plan::Bound::or);
        let text = if self.json {
            let by_name: serde_json::Map<String, serde_json::Value> =
                bounds.into_iter().map(|bound| (bound.by, bound.value.0.into())).collect();
            let proof = best.proof.name();
            json!({"bounds": by_name, "bound": best.value, "bound_by": best.by, "proof": proof}).to_string() + "\n"
        } else {
            let remark = |bound: &plan::Bound| match (bound.proof, &bound.verified) {
                (Proof::Solver, Some(verified)) => {
                    format!(" ({}; verified: {:.3})", bound.proof.describe(), verified.value)
                }
                (Proof::Solver, None) => format!(" ({})", bound.proof.describe()),
                _ => String::new(),
            };
            let line = |name: &str, bound: &plan::Bound| format!("{name:<16} {:.3}{}\n", bound.value, remark(bound));
            let mut text: String = bounds.iter().map(|bound| line(&bound.by, bound)).collect();
            text += &line("best", &best);
            text
        };
        files::write(self.output.as_deref(), &text)
    }
}
