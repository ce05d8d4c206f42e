//! What cannot be compiled, and why.

use std::{fmt, io, path::PathBuf};

#[derive(Debug)]
pub enum Error {
    /// A node has no code: what is wrong and what would help.
    Node { op: String, name: String, message: String },
    /// A stage as a whole has none.
    Stage { name: String, message: String },
    /// A processor that LLVM does not know, or that kernels are not written for.
    Target(String),
    /// A file cannot be written.
    Write { path: PathBuf, problem: io::Error },
    /// What was written is no bundle.
    Bundle(String),
    /// MLIR, LLVM or the linker refused what they were given, which is a bug of ours.
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
            Self::Internal(message) => write!(f, "{message}; this is a bug of divi's: please report it with the model"),
        }
    }
}

impl std::error::Error for Error {}

/// What is wrong with a node, without its name: whoever calls its lowering adds that.
pub type Result<T> = std::result::Result<T, divi_onnx::Error>;

/// A message as an error of a node.
pub(crate) fn unsupported<T>(message: impl Into<String>) -> Result<T> {
    Err(divi_onnx::Error::new(message))
}
