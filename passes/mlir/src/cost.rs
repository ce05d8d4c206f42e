//! Costs of tasks: declares the system, annotates every task, prints the costs and builds the planning problem.

mod annotate;
mod declare;
mod key;
mod linalg;
mod memory;
mod problem;
mod read;
mod source;
mod table;
mod work;

pub use annotate::annotate_cost;
pub(crate) use key::profile_entry;
pub(crate) use problem::ModuleProblem;
pub use problem::emit_problem;
pub(crate) use source::CostSource;
pub use table::{Format, print_costs};
