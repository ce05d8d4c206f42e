//! `divi-plan bound`.

use divi_planner::plan::{Bound, Limit, Proof};
use divi_planner::{Objective, Options};
use lexopt::Parser;
use serde_json::json;

use super::{parse, value};
use crate::files;

const USAGE: &str = "\
usage: divi-plan bound PROBLEM [OPTIONS]

Prints lower bounds on every plan's value, in microseconds, one a line by name, the best last.

  --objective=NAME     latency, batch or pipeline; by default batch where the problem queues
                       several inputs, else latency
  --k=N                how many stages a pipeline may have, instead of what the problem says
  --allow-shared-devices
                       a device may have several stages, and takes their sum
  --splits=N           how often the machine may change from a layer to the next, on an edge network
  --pipeline-cost=NAME what a stage takes: serial or overlap
  --time-limit=S       how long integer programs for pipelines may take, by default 10 seconds
  --json               as JSON
";

pub(super) fn run(parser: &mut Parser) -> Result<(), String> {
    let mut objective: Option<Objective> = None;
    let mut as_json = false;
    let mut options = Options { limit: Some(Limit::Seconds(10.0)), ..Options::default() };
    let parsed = parse(parser, USAGE, |name, parser| {
        match name {
            "objective" => objective = Some(value(parser, name)?),
            "k" => options.stages = Some(value(parser, name)?),
            "allow-shared-devices" => options.shared_devices = true,
            "splits" => options.splits = Some(value(parser, name)?),
            "pipeline-cost" => options.pipeline_cost = Some(value(parser, name)?),
            "time-limit" => options.limit = Some(seconds(value(parser, name)?)?),
            "json" => as_json = true,
            _ => return Ok(false),
        }
        Ok(true)
    })?;
    let Some(arguments) = parsed else { return Ok(()) };
    let [problem] = arguments.files(["PROBLEM"])?;
    let problem = files::problem(problem)?;
    let by_default = if problem.inputs > 1 { Objective::Batch } else { Objective::Latency };
    let objective = objective.unwrap_or(by_default);
    let bounds = divi_planner::api::bounds(&problem, objective, &options).map_err(|error| error.to_string())?;
    let best = bounds.iter().cloned().fold(Bound::none(), Bound::or);
    let text = if as_json {
        let by_name: serde_json::Map<String, serde_json::Value> =
            bounds.into_iter().map(|bound| (bound.by, bound.value.into())).collect();
        let proof = best.proof.name();
        json!({"bounds": by_name, "bound": best.value, "bound_by": best.by, "proof": proof}).to_string() + "\n"
    } else {
        let remark = |bound: &Bound| match (bound.proof, &bound.verified) {
            (Proof::Solver, Some(verified)) => {
                format!(" ({}; verified: {:.3})", bound.proof.describe(), verified.value)
            }
            (Proof::Solver, None) => format!(" ({})", bound.proof.describe()),
            _ => String::new(),
        };
        let line = |name: &str, bound: &Bound| format!("{name:<16} {:.3}{}\n", bound.value, remark(bound));
        let mut text: String = bounds.iter().map(|bound| line(&bound.by, bound)).collect();
        text += &line("best", &best);
        text
    };
    files::write(arguments.output.as_deref(), &text)
}

fn seconds(seconds: f64) -> Result<Limit, String> {
    if seconds.is_finite() && seconds >= 0.0 {
        Ok(Limit::Seconds(seconds))
    } else {
        Err("--time-limit must be a number of seconds from 0 on".to_owned())
    }
}
