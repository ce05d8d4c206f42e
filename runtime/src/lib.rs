//! Runtime that executes compiled plans. Links neither MLIR nor LLVM.
//!
//! [`bundle`] defines the compiler's output format and [`prepare`] the expressions that compute constants from weights.
//! Weights are read from the model's files ([`weights`]) or generated from a seed ([`random_weights`]). [`Runtime`] loads a
//! bundle and runs requests.
//!
//! A request is admitted (`admission`) to one of a fixed number of slots (`slot`), which have memory for all values
//! (`layout`). The `engine` enqueues a step when its operands are available; an executor has ready queues and a thread that
//! runs their steps (`workers`). Devices are accessed through the hardware abstraction layer ([`hal`]); `drivers` is the
//! registry of their kinds.
//!
//! Several processes run a plan for several hosts: each of them runs the part of one host (`bundle/hosts.rs`), after all have
//! agreed on what they run (`agreement`). Values pass between them as messages ([`communicator`], `engine/messages.rs`).
//! [`ResilientRuntime`] continues after the death of one of them (`recovery`).
//!
//! Layers of modules: files and memory < [`bundle`] < `constants`, `layout` and `footprint` < [`hal`] < [`drivers`] <
//! `transport`, [`communicator`] and `options` < `process` < `agreement` < `workers` < `program` < `slot` < `engine` < [`Runtime`] < `recovery` < profiles
//! and traces.

mod admission;
mod agreement;
pub mod bundle;
mod cold;
pub mod communicator;
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
mod process;
mod profile;
mod program;
mod random_input;
mod recovery;
mod request;
mod runtime;
mod slot;
mod span;
mod tensor;
mod trace;
mod transport;
pub mod weights;
mod workers;

pub use agreement::refuse;
pub use cold::ColdStart;
pub use divi_random_weights as random_weights;
pub use drivers::Drivers;
pub use dtype::DType;
pub use engine::ClockDifference;
pub use error::{Error, Result};
pub use footprint::MemoryUse;
pub use hal::ColdStartMode;
pub use memory::AlignedBuffer;
pub use options::{LaunchHook, Options};
pub use profile::{median, profiles};
pub use random_input::random_input;
pub use recovery::{Recovery, RecoveryObserver, ResilientRuntime, ResilientTicket};
pub use request::{Canceller, Ticket};
pub use runtime::Runtime;
pub use span::{Recording, Span};
pub use tensor::{TensorData, TensorRef};
pub use trace::trace;
pub use transport::{MemoryCopy, Transport};
pub use workers::SPIN_TIMEOUT;
