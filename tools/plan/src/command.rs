//! Commands of the tool.

mod bound;
mod convert;
mod generate;
mod region;
mod simulate;
mod solve;
mod verify;

use clap::builder::TypedValueParser;
use clap::{Args, Subcommand};
use divi_planner::plan::LaunchRule;
use divi_planner::problem::Contention;
use divi_planner::{Objective, PipelineCost};

#[derive(Subcommand)]
pub(crate) enum Command {
    Solve(solve::Solve),
    Verify(verify::Verify),
    Bound(bound::Bound),
    Convert(convert::Convert),
    Generate(generate::Generate),
    Region(region::Region),
    Simulate(simulate::Simulate),
}

impl Command {
    pub(crate) fn run(self) -> Result<(), String> {
        match self {
            Self::Solve(command) => command.run(),
            Self::Verify(command) => command.run(),
            Self::Bound(command) => command.run(),
            Self::Convert(command) => command.run(),
            Self::Generate(command) => command.run(),
            Self::Region(command) => command.run(),
            Self::Simulate(command) => command.run(),
        }
    }
}

/// Options of pipelines.
#[derive(Args)]
struct Pipeline {
    /// Maximum number of pipeline stages, instead of the problem's
    #[arg(short, long = "k", value_name = "N")]
    k: Option<u32>,
    /// Allow several stages on one device, whose times add up
    #[arg(long)]
    allow_shared_devices: bool,
    /// Cost of a pipeline stage; by default serial
    ///
    /// The sum of receiving, computing and sending (serial), or the maximum of computing and transfers (overlap).
    #[arg(long, value_name = "NAME", value_parser = divi_cli::named::<PipelineCost>(PipelineCost::ALL.map(PipelineCost::name)))]
    pipeline_cost: Option<PipelineCost>,
    /// Maximum number of split points on an edge network, instead of the problem's
    #[arg(long, value_name = "N")]
    splits: Option<u32>,
    /// Maximum number of inputs that a stage takes at once; by default the least that all tasks have times for
    ///
    /// A stage takes one of the batch sizes of its device. Without this option, one input if there are times for one.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    max_batch: Option<u32>,
    /// Maximum number of equal devices of a stage, which take turns; by default 1
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    replicas: Option<u32>,
}

fn objectives() -> impl TypedValueParser<Value = Objective> {
    divi_cli::named(Objective::ALL.map(Objective::name))
}

fn launch_rules() -> impl TypedValueParser<Value = LaunchRule> {
    divi_cli::named(LaunchRule::ALL.map(LaunchRule::name))
}

fn contentions() -> impl TypedValueParser<Value = Contention> {
    divi_cli::named(["off", "exclusive", "shared"])
}
