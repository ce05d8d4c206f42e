//! `divi-bench mpi`: plans for several hosts, on ranks of MPI compared with one process, and messages compared with a ping-pong.

mod message;
mod pipelines;

use crate::{
    parts::{in_turn, or_all, sorted},
    run::{
        build::{output_of, program},
        launch::Launched,
    },
};
use clap::{ArgAction, Parser, ValueEnum};
use std::{
    path::{Path, PathBuf},
    process::Command,
};

/// Launcher of Open MPI from the virtual environment of the tests; more ranks than cores, and root in containers, are allowed.
const LAUNCHER: &str = ".venv/bin/mpirun --allow-run-as-root --oversubscribe";

/// Compare ranks of MPI with one process, and messages between ranks with a ping-pong
#[derive(Debug, Parser)]
#[command(args_override_self = true)]
pub(crate) struct Mpi {
    /// Parts to run; by default all
    #[arg(value_name = "PART")]
    parts: Vec<Part>,
    /// Models of test/models that are run as pipelines
    #[arg(
        long, value_name = "NAME,...", value_delimiter = ',', action = ArgAction::Set,
        default_values_t = ["googlenet".to_owned(), "resnet50".to_owned()]
    )]
    models: Vec<String>,
    /// Number of ranks of pipelines, each with one core
    #[arg(long, value_name = "N", default_value = "2", value_parser = divi_cli::positive::<usize>)]
    ranks: usize,
    /// Number of rounds, in which one process and ranks alternate
    #[arg(long, value_name = "N", default_value = "7", value_parser = divi_cli::positive::<usize>)]
    rounds: usize,
    /// Time of each measurement in seconds
    #[arg(long, value_name = "S", default_value = "2", value_parser = divi_cli::seconds)]
    seconds: f64,
    /// Folder with profiles of one core, one per model (googlenet.json), instead of measuring them
    #[arg(long, value_name = "DIR")]
    profiles: Option<PathBuf>,
    /// Folder with bundles compiled before: of an earlier run, on a machine without a compiler
    #[arg(long, value_name = "DIR")]
    bundles: Option<PathBuf>,
    /// Launcher with its options; mpicc is beside it
    #[arg(long, value_name = "COMMAND", default_value = LAUNCHER)]
    launcher: String,
}

#[derive(Clone, Copy, Debug, PartialEq, ValueEnum)]
enum Part {
    /// Round trips of a tensor of 1 MiB between two ranks.
    Message,
    /// Throughput of pipelines.
    Pipelines,
}

impl Mpi {
    pub(crate) fn run(self) -> Result<(), String> {
        self.bind()?;
        in_turn(sorted(&or_all(self.parts.clone())), |part| match part {
            Part::Message => message::message(&self),
            Part::Pipelines => pipelines::pipelines(&self),
        })
    }

    /// Builds the binding of `divi-run` to the launcher's implementation of MPI.
    fn bind(&self) -> Result<(), String> {
        let folder = program("divi-run")?;
        let folder = folder.parent().unwrap_or(Path::new("."));
        let mut command = Command::new("tools/mpi-binding");
        command.arg("--mpicc").arg(self.mpicc()).arg("-o").arg(folder);
        output_of(command, "tools/mpi-binding").map(drop)
    }

    /// Returns the compiler beside the launcher.
    fn mpicc(&self) -> PathBuf {
        Path::new(self.launcher.split_whitespace().next().unwrap_or("mpirun")).with_file_name("mpicc")
    }

    /// Returns the command of a program on several ranks.
    fn on_ranks(&self, ranks: usize, program: &Path) -> Command {
        let mut words = self.launcher.split_whitespace();
        let mut command = Command::new(words.next().unwrap_or("mpirun"));
        command.args(words).args(["-n", &ranks.to_string()]).arg(program);
        command
    }

    /// Runs a bundle on several ranks.
    fn launch(&self, ranks: usize, bundle: &Path, options: &[String]) -> Result<Launched, String> {
        Launched::of(self.on_ranks(ranks, &program("divi-run")?), bundle, options)
    }
}
