//! What cannot be compiled, and why.

use divi_onnx::Op;
use std::{io, path::PathBuf};

/// Part of the messages of [`Error::Internal`].
pub const BUG: &str = "this is a bug in divi";

#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A node has no code: what is wrong and what would help.
    #[error("'onnx.{op}' op{}: {message}", quoted(.name))]
    Node { op: Op, name: String, message: String },
    /// A stage as a whole has none.
    #[error("stage '{name}': {message}")]
    Stage { name: String, message: String },
    /// A processor that LLVM does not know, or that kernels are not written for.
    #[error("{0}")]
    Target(String),
    /// A file cannot be written.
    #[error("cannot write '{path}': {problem}")]
    Write { path: PathBuf, problem: io::Error },
    /// A bundle that was just written cannot be read or run.
    #[error("{0}")]
    Bundle(String),
    /// MLIR, LLVM, the linker or the loader refused what they were given, which is a bug in divi.
    #[error("{0}; {BUG}: please report it with the model")]
    Internal(String),
}

/// Returns the name of a node as messages have it: nothing if it has none.
fn quoted(name: &str) -> String {
    if name.is_empty() { String::new() } else { format!(" '{name}'") }
}

/// An error of the runtime about a bundle that was just written.
impl From<divi_runtime::Error> for Error {
    fn from(error: divi_runtime::Error) -> Self {
        match error {
            divi_runtime::Error::Malformed { .. } => Self::Internal(error.to_string()),
            _ => Self::Bundle(error.to_string()),
        }
    }
}

/// What is wrong with a node, without its name: whoever calls its lowering adds that.
pub type Result<T> = std::result::Result<T, divi_onnx::Error>;

/// A message as an error of a node.
pub(crate) fn unsupported<T>(message: impl Into<String>) -> Result<T> {
    Err(divi_onnx::Error::new(message))
}
