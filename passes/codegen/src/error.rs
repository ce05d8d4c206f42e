//! What cannot be compiled, and why.

use divi_onnx::Op;
use std::{fmt, io, path::PathBuf};

/// Part of the messages of [`Error::Internal`].
pub const BUG: &str = "this is a bug in divi";

#[derive(Debug)]
pub enum Error {
    /// A node has no code: what is wrong and what would help.
    Node { op: Op, name: String, message: String },
    /// A stage as a whole has none.
    Stage { name: String, message: String },
    /// A processor that LLVM does not know, or that kernels are not written for.
    Target(String),
    /// A file cannot be written.
    Write { path: PathBuf, problem: io::Error },
    /// A bundle that was just written cannot be read or run.
    Bundle(String),
    /// MLIR, LLVM, the linker or the loader refused what they were given, which is a bug in divi.
    Internal(String),
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Node { op, name, message } if name.is_empty() => write!(f, "'onnx.{op}' op: {message}"),
            Self::Node { op, name, message } => write!(f, "'onnx.{op}' op '{name}': {message}"),
            Self::Stage { name, message } => write!(f, "stage '{name}': {message}"),
            Self::Target(message) | Self::Bundle(message) => f.write_str(message),
            Self::Write { path, problem } => write!(f, "cannot write '{}': {problem}", path.display()),
            Self::Internal(message) => write!(f, "{message}; {BUG}: please report it with the model"),
        }
    }
}

impl std::error::Error for Error {}

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
