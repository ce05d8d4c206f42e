//! `divi-plan`: planning problems and plans, independent of the compiler.

mod command;
mod files;
mod heatmap;

use std::process::ExitCode;
use std::sync::LazyLock;

use clap::{CommandFactory, Parser};

use command::Command;

static VERSION: LazyLock<String> =
    LazyLock::new(|| format!("{}\nHiGHS {}", env!("CARGO_PKG_VERSION"), divi_planner::highs_version()));

/// Solve, verify, convert and generate planning problems; a file named - is stdin or stdout
#[derive(Parser)]
#[command(name = "divi-plan", version, long_version = VERSION.as_str(), disable_version_flag = true, disable_help_subcommand = true)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
    /// Print the versions of this tool and of HiGHS
    #[arg(long, action = clap::ArgAction::Version)]
    version: Option<bool>,
}

/// Returns the definition of the command line. The last value of a repeated option counts; search limits may be given once.
fn definition() -> clap::Command {
    let repeat = |arg: clap::Arg| match arg.get_id().clone() {
        id if id == "iterations" || id == "time_limit" => arg,
        id => arg.overrides_with(id),
    };
    let with_repeats = |command: clap::Command| match command.get_name() {
        "solve" => command.mut_args(repeat),
        _ => command.args_override_self(true),
    };
    Arguments::command().mut_subcommands(with_repeats)
}

fn main() -> ExitCode {
    // On failure, temporary files are left; the next run for the same output removes them.
    let _ = divi_files::clean_up_on_signals();
    divi_papers::register();
    let arguments: Arguments = match divi_cli::parse(definition()) {
        Ok(arguments) => arguments,
        Err(status) => return status,
    };
    let outcome = arguments.command.run();
    if let Err(message) = &outcome {
        eprintln!("divi-plan: error: {message}");
    }
    let status = u8::from(outcome.is_err());
    divi_planner::exit_if_solver_detached(status);
    ExitCode::from(status)
}
