//! `divi-plan bound`.

use divi_planner::{Instance, Objective, bounds};
use lexopt::Parser;
use serde_json::json;

use super::{parse, value};
use crate::files;

const USAGE: &str = "\
usage: divi-plan bound PROBLEM [--objective=latency|batch] [--json]

Prints lower bounds on every plan's value, in microseconds, one a line by name, the best last.
";

pub(super) fn run(parser: &mut Parser) -> Result<(), String> {
    let mut objective: Option<Objective> = None;
    let mut as_json = false;
    let parsed = parse(parser, USAGE, |name, parser| {
        match name {
            "objective" => objective = Some(value(parser, name)?),
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
    if objective == Objective::Pipeline {
        return Err(
            "there are no bounds for objective pipeline by themselves; solve proves one with its plan".to_owned()
        );
    }
    let instance = Instance::new(&problem, objective).map_err(|error| error.to_string())?;
    let bounds = bounds::all(&instance);
    let best = bounds::best(&instance);
    let text = if as_json {
        let by_name: serde_json::Map<String, serde_json::Value> =
            bounds.into_iter().map(|bound| (bound.by, bound.value.into())).collect();
        json!({"bounds": by_name, "bound": best.value, "bound_by": best.by}).to_string() + "\n"
    } else {
        let line = |name: &str, value: f64| format!("{name:<16} {value:.3}\n");
        let mut text: String = bounds.iter().map(|bound| line(&bound.by, bound.value)).collect();
        text += &line("best", best.value);
        text
    };
    files::write(arguments.output.as_deref(), &text)
}
