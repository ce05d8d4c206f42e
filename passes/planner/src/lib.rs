//! Planning core: computes a verified plan with a lower bound from a problem. No MLIR here: problems and plans are JSON,
//! so that every solver can be tested and measured without a compiler around it.
//!
//! Layers, each of which imports only those before it:
//!
//! - [`model`]: [`Problem`] is the file, [`Instance`] the dense form that solvers work on, [`Plan`] the result;
//! - [`mip`]: integer programs through HiGHS;
//! - `verify`: checks that a plan is valid and shares no code with a solver; [`bounds`]: lower bounds on every plan;
//! - [`solvers`]: one module for each family of algorithms;
//! - [`infeasible`]: changes that make an infeasible problem feasible;
//! - `portfolio`: `auto`, which runs several solvers;
//! - [`api`]: the table of algorithms, and [`solve`].

pub mod api;
pub mod bounds;
pub mod infeasible;
pub mod mip;
pub mod model;
mod portfolio;
pub mod random;
pub mod solvers;
#[cfg(test)]
mod testing;
mod verify;

pub use api::{DEFAULT_ALGORITHM, algorithm, algorithms, check, register, solve};
pub use mip::{exit_if_solver_detached, highs_version};
pub use model::error::{self, Error, Finding};
pub use model::instance::{self, Instance};
pub use model::json;
pub use model::observer::{Observer, SolverEvent};
pub use model::options::{Options, OrderSearch, PipelineCost, Symmetry};
pub use model::plan::{self, Objective, Plan};
pub use model::problem::{self, Problem};
pub use model::units;
pub use portfolio::contention::timed_anew;
pub use portfolio::replicated_ways;
pub use solvers::contention::{Timed, time_as_it_is};
pub use solvers::edge;
pub use solvers::milp::queue_program_size;
pub use solvers::{Algorithm, Solution};
pub use verify::{Terms, value_under, verify, verify_under};
