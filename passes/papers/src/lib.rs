//! Papers, reproduced for comparison: their own algorithms, and the problems that they evaluate on (generators of random
//! networks, graphs and chains, and a reader of the graphs that MTPP's authors have published). Planning does not need them;
//! benchmarks and tests do.

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
