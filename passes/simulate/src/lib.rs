//! Discrete-event simulation of plans: latency percentiles, throughput and lost requests if times of tasks and transfers vary,
//! hosts are slow or fail, and a plan is replicated over more hosts than it was made for.
//!
//! Nothing here decides or proves anything: the planner verifies a plan before it is simulated, and without variation a
//! simulation reproduces the value of the plan.
//!
//! Layers: [`Program`] (steps of one request, and the resources that they occupy) and [`Variation`] (distributions) <
//! `engine` (events of one group of hosts) < [`simulate`] (all groups).

mod engine;
mod program;
mod scenario;
mod variation;

pub use program::{Program, Resource, Step};
pub use scenario::{Outcome, Scenario, simulate};
pub use variation::{Measured, Variation};
