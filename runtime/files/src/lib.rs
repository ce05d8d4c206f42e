//! Atomic output files and folders that never replace a program's inputs.
//!
//! Every tool writes through a [`Draft`]: a temporary file or folder `.NAME.PID.tmp` in the target's directory, which is
//! renamed to the target when it is complete. Leftovers of killed processes are removed by the next draft for the same
//! target; [`clean_up_on_signals`] removes the temporary files of an interrupted process. [`Inputs`] lists the files that a
//! program reads and rejects outputs that would replace them.

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
