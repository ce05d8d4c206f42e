//! Errors of code generation.

use divi_onnx::Op;
use std::{io, path::PathBuf};

/// Part of the messages of [`Error::Internal`].
pub const BUG: &str = "this is a bug in divi";

/// An error of code generation.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A node cannot be compiled.
    #[error("'onnx.{op}' op{}: {message}", quoted(.name))]
    Node {
        /// Operator of the node.
        op: Op,
        /// Name of the node in the model; may be empty.
        name: String,
        /// Reason, and a remedy if there is one.
        message: String,
    },
    /// A stage as a whole cannot be compiled.
    #[error("stage '{name}': {message}")]
    Stage {
        /// Name of the stage.
        name: String,
        /// Reason, and a remedy if there is one.
        message: String,
    },
    /// A processor is unknown to LLVM or not supported by the kernels, or the linker cannot be run.
    #[error("{0}")]
    Target(String),
    /// A file cannot be written.
    #[error("cannot write '{path}': {problem}")]
    Write {
        /// Path of the file or of its folder.
        path: PathBuf,
        /// Error of the operating system.
        problem: io::Error,
    },
    /// A bundle that was just written cannot be read or run.
    #[error("{0}")]
    Bundle(String),
    /// MLIR, LLVM, the linker or the loader rejected generated code, which is a bug in divi.
    #[error("{0}; {BUG}: please report it with the model")]
    Internal(String),
}

/// Returns the quoted name of a node with a leading space; empty if it has none.
fn quoted(name: &str) -> String {
    if name.is_empty() { String::new() } else { format!(" '{name}'") }
}

/// Converts an error of the runtime about a bundle that was just written.
impl From<divi_runtime::Error> for Error {
    fn from(error: divi_runtime::Error) -> Self {
        match error {
            divi_runtime::Error::Malformed { .. } => Self::Internal(error.to_string()),
            _ => Self::Bundle(error.to_string()),
        }
    }
}

/// Result of lowering a node. The error does not name the node: the caller adds its name.
pub type Result<T> = std::result::Result<T, divi_onnx::Error>;

/// Returns an error of a node with a message.
pub(crate) fn unsupported<T>(message: impl Into<String>) -> Result<T> {
    Err(divi_onnx::Error::new(message))
}
