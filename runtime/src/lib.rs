//! What runs a plan. It links neither MLIR nor LLVM.
//!
//! [`bundle`] defines what the compiler writes, [`prepare`] how constants are computed from weights, which are found in the
//! files of a model ([`weights`]) or made up where there are none ([`random_weights`]). [`Runtime`] loads a bundle and runs
//! requests.
//!
//! Requests are let in (`admission`) to one of a fixed number of slots (`slot`), which have memory for all values
//! (`layout`). The `engine` makes steps ready as their inputs are there; executors have queues of ready steps and a thread
//! that runs them one after the other (`workers`). Devices are behind an interface ([`hal`]), and `drivers` lists their kinds.
//!
//! Modules import each other in no cycle: files and memory < [`bundle`] < `constants`, `layout` and `footprint` < [`hal`] < [`drivers`] <
//! `transport` and `options` < `workers` < `program` < `slot` < `engine` < [`Runtime`] < profiles and traces.

mod admission;
pub mod bundle;
mod cold;
mod constants;
pub mod cpu;
pub mod drivers;
mod dtype;
mod engine;
mod error;
mod files;
mod footprint;
pub mod hal;
mod layout;
mod limits;
mod loaded_device;
mod memory;
mod options;
mod pool;
pub mod prepare;
mod profile;
mod program;
mod random_input;
pub mod random_weights;
mod request;
mod runtime;
mod slot;
mod span;
mod tensor;
mod trace;
mod transport;
pub mod weights;
mod workers;

pub use cold::ColdStart;
pub use drivers::Drivers;
pub use dtype::DType;
pub use error::{Error, Result};
pub use footprint::MemoryUse;
pub use hal::Cold;
pub use memory::Aligned;
pub use options::{LaunchHook, Options};
pub use profile::{median, profiles};
pub use random_input::random_input;
pub use request::{Canceller, Ticket};
pub use runtime::Runtime;
pub use span::{Recording, Span};
pub use tensor::{TensorData, TensorRef};
pub use trace::trace;
pub use transport::{MemoryCopy, Transport};
