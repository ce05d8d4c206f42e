//! `divi-bench nodes`: GPT-3 on six nodes of four GPUs, planned as a whole against one node's plan repeated, and what it
//! does to integer programs to tell equal devices and nodes apart (DiviML VI, Table V).

mod symmetry;
mod together;

use crate::arguments::{in_turn, part, seconds};

const USAGE: &str = "\
usage: divi-bench nodes [PART …] [--seconds=S]

parts, by default both:
  together      Table V: GPT-3 on six nodes of four GPUs, one node's plan repeated and all nodes planned together
  symmetry      the criteria by which equal devices and nodes are told apart, in integer programs

  --seconds=S   for each integer program, by default 20
";

type Part = fn(f64) -> Result<(), String>;

const PARTS: &[(&str, Part)] = &[("together", together::run), ("symmetry", symmetry::run)];

pub(crate) fn run(arguments: &[String]) -> Result<(), String> {
    let mut limit = 20.0;
    let mut parts = Vec::new();
    for argument in arguments {
        if let Some(text) = argument.strip_prefix("--seconds=") {
            limit = seconds(argument, text)?;
        } else {
            parts.push(part(PARTS, argument, USAGE)?);
        }
    }
    if parts.is_empty() {
        parts.extend(PARTS);
    }
    in_turn(parts, |part| part(limit))
}
