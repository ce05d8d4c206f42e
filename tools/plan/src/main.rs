//! `divi-plan`: planning problems and plans without a compiler around them.

mod command;
mod files;
mod heatmap;

use std::process::ExitCode;

const USAGE: &str = "\
usage: divi-plan COMMAND [ARGUMENTS]

commands:
  solve PROBLEM          a plan for a problem, with a proven bound
  verify PROBLEM PLAN    whether a plan holds for a problem; prints its value
  bound PROBLEM          lower bounds alone
  convert GRAPH          a problem from a graph of EfficientMIP
  generate KIND          a problem from a seed: rwnn, regal or chain; or GPT-3 on many nodes: gpt3
  region PROBLEM         whether partitioning can help on an edge network, and from which link speed on

A file named - is stdin or stdout. 'divi-plan COMMAND --help' says more.
";

fn main() -> ExitCode {
    // Without it, the next run for the same output removes what is left.
    let _ = divi_files::clean_up_on_signals();
    let mut arguments = lexopt::Parser::from_env();
    let outcome = run(&mut arguments);
    if let Err(message) = &outcome {
        eprintln!("divi-plan: error: {message}");
    }
    let status = u8::from(outcome.is_err());
    divi_planner::exit_past_solvers(status);
    ExitCode::from(status)
}

fn run(arguments: &mut lexopt::Parser) -> Result<(), String> {
    use lexopt::prelude::{Long, Short, Value};
    match arguments.next().map_err(|error| error.to_string())? {
        Some(Value(name)) => command::run(&name.to_string_lossy(), arguments),
        Some(Short('h') | Long("help")) => files::print(USAGE),
        Some(Long("version")) => {
            files::print(&format!("divi-plan {}\nHiGHS {}\n", env!("CARGO_PKG_VERSION"), divi_planner::highs_version()))
        }
        Some(other) => Err(format!("{}; see divi-plan --help", other.unexpected())),
        None => Err(format!("no command\n{USAGE}")),
    }
}
