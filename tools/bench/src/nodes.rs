//! `divi-bench nodes`: GPT-3 on six nodes of four GPUs, planned jointly and with one node's plan replicated, and the effect
//! of symmetry breaking on integer programs (DiviML VI, Table V).

mod symmetry;
mod together;

use crate::parts::{in_turn, or_all};
use clap::{Args, ValueEnum};

/// Plan GPT-3 on six nodes of four GPUs, and compare symmetry-breaking criteria
#[derive(Args)]
#[command(args_override_self = true)]
pub(crate) struct Nodes {
    /// Parts to run; by default both
    #[arg(value_name = "PART")]
    parts: Vec<Part>,
    /// Time limit of each integer program, in seconds
    #[arg(long, value_name = "S", default_value = "20", value_parser = divi_cli::seconds)]
    seconds: f64,
}

#[derive(Clone, Copy, PartialEq, ValueEnum)]
enum Part {
    /// Table V: GPT-3 on six nodes of four GPUs, one node's plan replicated and all nodes planned jointly.
    Together,
    /// Criteria by which integer programs break symmetries of equal devices and nodes.
    Symmetry,
}

impl Nodes {
    pub(crate) fn run(self) -> Result<(), String> {
        in_turn(or_all(self.parts), |part| match part {
            Part::Together => together::run(self.seconds),
            Part::Symmetry => symmetry::run(self.seconds),
        })
    }
}
