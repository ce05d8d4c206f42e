//! `divi-bench`: tables that compare divi with baselines measured in the same run.

mod cost;
mod edge;
mod files;
mod import;
mod models;
mod mpi;
mod nodes;
mod parts;
mod pipeline;
mod plan;
mod python;
mod run;
mod runs;

use clap::{CommandFactory, Parser, Subcommand};
use std::process::ExitCode;

/// Print tables that compare divi with baselines measured in the same run
#[derive(Parser)]
#[command(name = "divi-bench", version, disable_version_flag = true, disable_help_subcommand = true)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
    /// Print the version
    #[arg(long, action = clap::ArgAction::Version)]
    version: Option<bool>,
}

#[derive(Subcommand)]
enum Command {
    Import(import::Import),
    Cost(cost::Cost),
    Plan(plan::Plan),
    Pipeline(pipeline::Pipeline),
    Edge(edge::Edge),
    Nodes(nodes::Nodes),
    Run(run::Run),
    Mpi(mpi::Mpi),
}

fn main() -> ExitCode {
    divi_papers::register();
    let arguments: Arguments = match divi_cli::parse(Arguments::command()) {
        Ok(arguments) => arguments,
        Err(status) => return status,
    };
    let outcome = match arguments.command {
        Command::Import(command) => command.run(),
        Command::Cost(command) => command.run(),
        Command::Plan(command) => command.run(),
        Command::Pipeline(command) => command.run(),
        Command::Edge(command) => command.run(),
        Command::Nodes(command) => command.run(),
        Command::Run(command) => command.run(),
        Command::Mpi(command) => command.run(),
    };
    if let Err(message) = &outcome {
        eprintln!("divi-bench: error: {message}");
    }
    let status = u8::from(outcome.is_err());
    divi_planner::exit_if_solver_detached(status);
    ExitCode::from(status)
}
