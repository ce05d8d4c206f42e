//! `divi-bench plan`: the tables of the DiviML paper for our networks, next to the paper's numbers. Those were measured on
//! other networks, devices and machines: compare ratios, not single values.

mod cold;
mod curves;
mod large;
mod models;
mod networks;
mod partition;
mod speedup;
mod svg;
mod tables;

use std::path::PathBuf;

use crate::parts::{in_turn, or_all};
use clap::{Args, ValueEnum};

/// Print the tables of the DiviML paper for our networks next to its numbers
#[derive(Args)]
#[command(args_override_self = true)]
pub(crate) struct Plan {
    /// Parts to run; by default all of them
    #[arg(value_name = "PART")]
    parts: Vec<Part>,
    #[command(flatten)]
    settings: Settings,
}

#[derive(Clone, Copy, PartialEq, ValueEnum)]
enum Part {
    /// Table I: networks of ten modules, one input.
    Latency,
    /// Table III: speedup of milp-split over the paper's MILP until an equally good plan is found.
    Speedup,
    /// Table IV: the same networks, a queue of 16 inputs.
    Throughput,
    /// Figs. 3 and 5: torchvision's models under the preset diviml.
    Models,
    /// Fig. 7: throughput over time, as SVG.
    Curves,
    /// 5,000 tasks on 8 devices against HEFT.
    Large,
    /// divi-opt --partition for every model, machine and objective.
    Partition,
    /// SortingHat's servers: language models whose parameters are still in host memory.
    Cold,
}

// Options of all parts; not a doc comment, which would become help text.
#[derive(Args)]
pub(crate) struct Settings {
    /// Time limit of each search, in seconds
    #[arg(long, value_name = "S", default_value = "5", value_parser = divi_cli::seconds)]
    seconds: f64,
    /// Time limit of each integer program, in seconds
    #[arg(long, value_name = "S", default_value = "60", value_parser = divi_cli::seconds)]
    milp_seconds: f64,
    /// Time limit of each divi-opt --partition, in seconds; by default none
    #[arg(long, value_name = "S", value_parser = divi_cli::seconds)]
    limit: Option<f64>,
    /// File for the curves
    #[arg(long, value_name = "FILE", default_value = "target/bench/plan.svg")]
    svg: PathBuf,
}

impl Plan {
    pub(crate) fn run(self) -> Result<(), String> {
        let settings = &self.settings;
        in_turn(or_all(self.parts), |part| match part {
            Part::Latency => tables::latency(settings),
            Part::Speedup => speedup::run(settings),
            Part::Throughput => tables::throughput(settings),
            Part::Models => models::run_figures(settings),
            Part::Curves => curves::curves(settings),
            Part::Large => large::large(settings),
            Part::Partition => partition::run(settings),
            Part::Cold => cold::run(settings),
        })
    }
}
