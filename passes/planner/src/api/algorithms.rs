//! Table of algorithms by the names that users type.

use std::sync::{PoisonError, RwLock};

use crate::model::error::Error;
use crate::model::plan::Objective::{self, Batch, Latency, Pipeline};
use crate::model::problem::ViewKind;
use crate::portfolio;
use crate::solvers::{
    Algorithm, DevicePipelines, Solver, baseline, edge, exact, milp, pipeline, search, sortinghat, split,
};

/// Default algorithm.
pub const DEFAULT_ALGORITHM: &str = "auto";

static ALGORITHMS: &[Algorithm] = &[
    Algorithm::new(
        DEFAULT_ALGORITHM,
        "the best plan of a portfolio of those below",
        &[(Latency, portfolio::latency), (Batch, portfolio::queue), (Pipeline, portfolio::pipeline)],
    )
    .on_views(&ViewKind::ALL, DevicePipelines::All)
    .with_transfers(portfolio::contention::auto)
    .with_batches()
    .with_many_launches()
    .portfolio(),
    Algorithm::new(
        "single",
        "all that it can run on the best single device",
        &[(Latency, baseline::single), (Batch, baseline::single)],
    )
    .fixed(),
    Algorithm::new(
        "met",
        "each task where it runs fastest, breadth-first",
        &[(Latency, baseline::met), (Batch, baseline::met)],
    )
    .fixed(),
    Algorithm::new(
        "greedy",
        "each task where it ends first, breadth-first",
        &[(Latency, baseline::greedy), (Batch, baseline::greedy)],
    )
    .fixed(),
    Algorithm::new(
        "heft",
        "each task where it ends first, by upward rank, in gaps",
        &[(Latency, baseline::heft), (Batch, baseline::heft)],
    )
    .fixed(),
    Algorithm::new("priced", "each task where it ends first, with a price on memory", &[(Batch, portfolio::priced)])
        .with_many_launches()
        .fixed(),
    Algorithm::new(
        "replicated",
        "one node's plan on every node, for a part of the network or of the inputs",
        &[(Batch, portfolio::replicated)],
    )
    .with_many_launches(),
    Algorithm::new(
        "milp-split",
        "modules between cuts, joined by a dynamic program",
        &[(Latency, split::milp_split), (Batch, search::split_queue)],
    ),
    Algorithm::new(
        "milp",
        "an integer program of the whole problem (HiGHS)",
        &[(Latency, milp::milp), (Batch, milp::milp), (Pipeline, pipeline::milp)],
    ),
    Algorithm::new(
        "exact",
        "a dynamic program over partial schedules, with dominance and bounds",
        &[(Latency, exact::exact)],
    ),
    Algorithm::new(
        "anneal",
        "simulated annealing from the best of these",
        &[(Latency, search::anneal), (Batch, search::anneal), (Pipeline, pipeline::anneal)],
    ),
    Algorithm::new(
        "lns",
        "large neighborhood search from the best of these",
        &[(Latency, search::neighbourhoods), (Batch, search::neighbourhoods)],
    ),
    Algorithm::new(
        "slicegraph",
        "orders of the tasks, each cut into stages optimally",
        &[(Pipeline, pipeline::slicegraph)],
    ),
    Algorithm::new(
        "sortinghat",
        "pieces between dominators, with buses and parameter copies",
        &[(Latency, sortinghat::sortinghat)],
    )
    .with_transfers(portfolio::contention::sortinghat),
    Algorithm::new(
        edge::NAME,
        "branch and bound over the placements on an edge network",
        &[(Pipeline, edge::branch_and_bound)],
    )
    .on_views(edge::VIEWS, DevicePipelines::SharedOverlap),
];

/// Algorithms that other crates have registered.
static REGISTERED: RwLock<Vec<&'static Algorithm>> = RwLock::new(Vec::new());

/// Adds algorithms of another crate to the table. Skips names that exist already, so that a program may register a
/// crate's algorithms twice.
pub fn register(rows: &'static [Algorithm]) {
    let mut registered = REGISTERED.write().unwrap_or_else(PoisonError::into_inner);
    for row in rows {
        if ALGORITHMS.iter().chain(registered.iter().copied()).all(|known| known.name != row.name) {
            registered.push(row);
        }
    }
}

/// Returns all algorithms in the order of the help text: the planner's own, then registered ones.
pub fn algorithms() -> Vec<&'static Algorithm> {
    let registered = REGISTERED.read().unwrap_or_else(PoisonError::into_inner);
    ALGORITHMS.iter().chain(registered.iter().copied()).collect()
}

/// Returns the algorithm of that name with its solver for the objective.
pub fn algorithm(name: &str, objective: Objective) -> Result<(&'static Algorithm, Solver), Error> {
    let all = algorithms();
    let Some(algorithm) = all.iter().find(|algorithm| algorithm.name == name) else {
        let names: Vec<&str> = all.iter().map(|algorithm| algorithm.name).collect();
        return Err(Error::Unsupported(format!("unknown algorithm '{name}'; expected one of {}", names.join(", "))));
    };
    if let Some(solver) = algorithm.solver(objective) {
        return Ok((algorithm, solver));
    }
    let others = all.iter().filter(|other| other.solver(objective).is_some());
    let names: Vec<&str> = others.map(|other| other.name).collect();
    let others = if names.is_empty() { "no algorithm has".to_owned() } else { format!("{} have", names.join(", ")) };
    Err(Error::Unsupported(format!("algorithm '{name}' has no objective {objective}; {others}")))
}
