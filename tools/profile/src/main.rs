//! `divi-profile`: measurement of devices and models, as profiles and as coefficients of the cost model.

mod calibrate;
mod cluster;
mod convert;
mod device;
mod files;
mod fit;
mod measure;

use clap::{CommandFactory, Parser, Subcommand};
use std::process::ExitCode;

/// Measure devices and models, and fit the cost model; a file named - is stdin or stdout
#[derive(Parser)]
#[command(name = "divi-profile", version, disable_version_flag = true, disable_help_subcommand = true)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
    /// Print the version
    #[arg(long, action = clap::ArgAction::Version)]
    version: Option<bool>,
}

#[derive(Subcommand)]
enum Command {
    Calibrate(calibrate::Calibrate),
    Convert(convert::Convert),
    Fit(fit::Fit),
    Measure(measure::Measure),
}

fn main() -> ExitCode {
    // On failure, temporary files are left; the next run for the same output removes them.
    let _ = divi_files::clean_up_on_signals();
    let arguments: Arguments = match divi_cli::parse(Arguments::command()) {
        Ok(arguments) => arguments,
        Err(status) => return status,
    };
    let outcome = match arguments.command {
        Command::Calibrate(command) => command.run(),
        Command::Convert(command) => command.run(),
        Command::Fit(command) => command.run(),
        Command::Measure(command) => command.run(),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("divi-profile: error: {message}");
            ExitCode::FAILURE
        }
    }
}
