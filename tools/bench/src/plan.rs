//! `divi-bench plan`: the tables of the DiviML paper for our networks, beside the paper's own numbers, which were measured
//! on other networks, devices and machines: to be compared by their ratios, not one by one.

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

use crate::arguments::{in_turn, part, seconds};

const USAGE: &str = "\
usage: divi-bench plan [PART …] [--seconds=S] [--milp-seconds=S] [--limit=S] [--svg=FILE]

parts, by default all of them:
  latency       Table I: networks of ten modules, one input
  speedup       Table III: how much sooner milp-split has its plan than the paper's MILP
  throughput    Table IV: the same networks, a queue of 16 inputs
  models        Figs. 3 and 5: torchvision's models under the preset diviml
  curves        Fig. 7: throughput over time, as SVG
  large         5,000 tasks on 8 devices against HEFT
  partition     divi-opt --partition for every model, machine and objective
  cold          SortingHat's servers: language models whose parameters are still in the host's memory

  --seconds=S       for each search, by default 5
  --milp-seconds=S  for each integer program, by default 60
  --limit=S         of each divi-opt --partition, by default none
  --svg=FILE        where the curves go, by default target/bench/plan.svg
";

/// What the command line asks for.
pub(crate) struct Settings {
    seconds: f64,
    milp_seconds: f64,
    limit: Option<f64>,
    svg: PathBuf,
}

type Part = fn(&Settings) -> Result<(), String>;

const PARTS: &[(&str, Part)] = &[
    ("latency", tables::latency),
    ("speedup", speedup::run),
    ("throughput", tables::throughput),
    ("models", models::run_figures),
    ("curves", curves::curves),
    ("large", large::large),
    ("partition", partition::run),
    ("cold", cold::run),
];

pub(crate) fn run(arguments: &[String]) -> Result<(), String> {
    let svg = PathBuf::from("target/bench/plan.svg");
    let mut settings = Settings { seconds: 5.0, milp_seconds: 60.0, limit: None, svg };
    let mut parts = Vec::new();
    for argument in arguments {
        if let Some(text) = argument.strip_prefix("--seconds=") {
            settings.seconds = seconds(argument, text)?;
        } else if let Some(text) = argument.strip_prefix("--milp-seconds=") {
            settings.milp_seconds = seconds(argument, text)?;
        } else if let Some(text) = argument.strip_prefix("--limit=") {
            settings.limit = Some(seconds(argument, text)?);
        } else if let Some(text) = argument.strip_prefix("--svg=") {
            settings.svg = PathBuf::from(text);
        } else {
            parts.push(part(PARTS, argument, USAGE)?);
        }
    }
    if parts.is_empty() {
        parts.extend(PARTS);
    }
    in_turn(parts, |part| part(&settings))
}
