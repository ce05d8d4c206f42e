//! From tasks to what they cost: the system is declared, every task annotated, and the result shown or handed to planners.

mod annotate;
mod declare;
mod key;
mod linalg;
mod memory;
mod problem;
mod read;
mod table;
mod work;

pub use annotate::annotate_cost;
pub(crate) use key::profile_entry;
pub(crate) use problem::Posed;
pub use problem::emit_problem;
pub use table::{Format, print_costs};
