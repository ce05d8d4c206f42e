//! `divi-plan verify`.

use lexopt::Parser;
use serde_json::json;

use super::parse;
use crate::files;

const USAGE: &str = "\
usage: divi-plan verify PROBLEM PLAN [--json]

Recomputes a plan's value from the two files alone and prints it. Where the plan does not hold, says
what is wrong and exits with 1.
";

pub(super) fn run(parser: &mut Parser) -> Result<(), String> {
    let mut as_json = false;
    let parsed = parse(parser, USAGE, |name, _| {
        as_json |= name == "json";
        Ok(name == "json")
    })?;
    let Some(arguments) = parsed else { return Ok(()) };
    let [problem, plan] = arguments.files(["PROBLEM", "PLAN"])?;
    let (problem, plan) = (files::problem(problem)?, files::plan(plan)?);
    let value = divi_planner::verify(&problem, &plan).map_err(|error| error.to_string())?;
    let text = if as_json {
        json!({"value": value, "bound": plan.bound, "proof": plan.proof.name(), "gap": plan.gap}).to_string()
    } else {
        divi_planner::units::number(value)
    };
    files::write(arguments.output.as_deref(), &format!("{text}\n"))
}
