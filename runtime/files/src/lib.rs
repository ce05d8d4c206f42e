//! Output files and folders that appear whole or not at all, and that never replace what a program reads.
//!
//! Every tool writes through a [`Draft`]: a temporary file or folder beside its target, `.NAME.PID.tmp`, that takes the target's
//! name when it is complete. Temporary names of processes that were killed are removed by the next draft for the same
//! target; [`clean_up_on_signals`] removes those of a process that is interrupted. [`Inputs`] lists the files that a program
//! reads and refuses outputs that would replace them.

mod draft;
mod inputs;
mod listing;
mod path;
mod rename;
mod signals;
mod temporary;

pub use draft::{Draft, write};
pub use inputs::{Inputs, check_distinct};
pub use listing::check_listed;
pub use signals::clean_up_on_signals;
pub use temporary::{Scratch, discard_all};
