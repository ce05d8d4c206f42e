//! Reproductions of papers for comparison: their algorithms, and their evaluation problems (generators of random networks,
//! graphs and chains, and a reader of the graphs that the authors of EfficientMIP published). Used by benchmarks and
//! tests, not by planning.

pub mod convert;
mod diviml;
mod evolve;
pub mod generate;

use divi_planner::Algorithm;
use divi_planner::Objective::{Batch, Latency};

static ALGORITHMS: &[Algorithm] = &[
    Algorithm::new("milp-paper", "DiviML's own integer program, for comparison", &[(Latency, diviml::milp)]),
    Algorithm::new(
        "evolve",
        "the (1+1) evolutionary algorithm from met",
        &[(Latency, evolve::evolve), (Batch, evolve::evolve)],
    ),
];

/// Adds the papers' algorithms to the planner's table.
pub fn register() {
    divi_planner::register(ALGORITHMS);
}
