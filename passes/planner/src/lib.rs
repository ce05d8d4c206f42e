//! The planning core: a problem goes in, a plan with a proven bound comes out. No MLIR here; both are JSON, so that every
//! solver can be tested and measured without a compiler around it.
//!
//! [`Problem`] is the file, [`Instance`] the dense form that solvers work on, [`Plan`] the answer.

mod auto;
mod baseline;
pub mod bounds;
mod bus;
pub mod convert;
mod dominators;
pub mod edge;
pub mod error;
pub mod exact;
pub mod explain;
pub mod generate;
pub mod infeasible;
pub mod instance;
mod json;
pub mod list;
mod milp;
mod mip;
pub mod pipeline;
pub mod placement;
pub mod plan;
pub mod problem;
mod race;
pub mod random;
pub mod replicated;
mod search;
pub mod solve;
mod sortinghat;
pub mod split;
pub mod stages;
pub mod units;
mod verify;
mod watch;

pub use bus::timed_anew;
pub use error::{Error, Finding};
pub use instance::Instance;
pub use milp::queue_program_size;
pub use mip::{exit_past_solvers, highs_version};
pub use plan::{Objective, Plan};
pub use problem::Problem;
pub use solve::{Algorithm, Options, Solution, Symmetry, algorithms, solve};
pub use verify::{Terms, verify, verify_under};
pub use watch::{News, Watch};
