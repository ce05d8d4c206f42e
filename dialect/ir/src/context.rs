//! References to an MLIR context.

mod ffi;

pub use ffi::{ContextLike, fused_location, text};
pub(crate) use ffi::{RawContext, Sink, print_to_sink};
