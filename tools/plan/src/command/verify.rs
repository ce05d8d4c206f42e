//! `divi-plan verify`.

use divi_planner::Terms;
use lexopt::Parser;
use serde_json::json;

use super::{parse, value};
use crate::files;

const USAGE: &str = "\
usage: divi-plan verify PROBLEM PLAN [OPTIONS]

Recomputes a plan's value from the two files alone and prints it. Where the plan does not hold, says
what is wrong and exits with 1. The plan is judged under the problem's model, or under what these
options state instead; a plan that was made under another model is refused.

  --objective=NAME     latency, batch or pipeline; by default any
  --inputs=N           how many inputs are queued
  --contention=NAME    what transfers on one bus do to each other: off, exclusive or shared
  --k=N                how many stages a pipeline may have
  --allow-shared-devices
                       a device may have several stages, and takes their sum
  --pipeline-cost=NAME what a stage takes: serial (the default) or overlap
  --splits=N           how often the machine may change from a layer to the next, on an edge network
  --json               the value, the bound and the gap as JSON
";

pub(super) fn run(parser: &mut Parser) -> Result<(), String> {
    let mut as_json = false;
    let mut terms = Terms::default();
    let parsed = parse(parser, USAGE, |name, parser| {
        match name {
            "objective" => terms.objective = Some(value(parser, name)?),
            "inputs" => terms.inputs = Some(value(parser, name)?),
            "contention" => terms.contention = Some(value(parser, name)?),
            "k" => terms.stages = Some(value(parser, name)?),
            "allow-shared-devices" => terms.shared_devices = true,
            "pipeline-cost" => terms.pipeline_cost = Some(value(parser, name)?),
            "splits" => terms.splits = Some(value(parser, name)?),
            "json" => as_json = true,
            _ => return Ok(false),
        }
        Ok(true)
    })?;
    let Some(arguments) = parsed else { return Ok(()) };
    let [problem, plan] = arguments.files(["PROBLEM", "PLAN"])?;
    let (problem, plan) = (files::problem(problem)?, files::plan(plan)?);
    let value = divi_planner::verify_under(&problem, &plan, &terms).map_err(|error| error.to_string())?;
    let text = if as_json {
        json!({"value": value, "bound": plan.bound, "proof": plan.proof.name(), "gap": plan.gap}).to_string()
    } else {
        divi_planner::units::number(value)
    };
    files::write(arguments.output.as_deref(), &format!("{text}\n"))
}
