//! What can go wrong: with the bundle, with a request's inputs, or while it runs.

use std::{fmt, io, path::Path, path::PathBuf};

#[derive(Debug)]
pub enum Error {
    /// A file of the bundle is not there or cannot be read.
    Unreadable { path: PathBuf, error: io::Error },
    /// The bundle is of a version that is newer than the newest this runtime knows.
    Newer { path: PathBuf, format: String, newest: &'static str },
    /// The description is not one, or contradicts itself.
    Malformed { path: PathBuf, reason: String },
    /// A file is not as it was written.
    Damaged { path: PathBuf, reason: String },
    /// A file is in none of the folders that the bundle may read from.
    Outside { path: PathBuf },
    /// The code is for a processor that can do more than this one.
    OtherProcessor { cpu: String, missing: Vec<String> },
    /// An executable cannot be loaded or lacks a kernel.
    Code { path: PathBuf, reason: String },
    /// There is no driver for a kind of device.
    UnknownKind { id: String, kind: String, known: Vec<String> },
    /// This machine lacks a device of the bundle, or has one that its code is not for.
    NoDevice { id: String, kind: String, arch: String, reason: String },
    /// An operation of a device failed.
    Device { what: String, problem: String },
    /// A constant cannot be made.
    Constant { index: usize, reason: String },
    /// There is not enough memory for something.
    Memory { what: String, bytes: u64 },
    /// Requests in flight take more memory than there is.
    InFlight { requests: usize, bytes: u64, available: u64 },
    /// A thread cannot be started.
    Thread(io::Error),
    /// An input is given that the model does not have, or twice.
    UnexpectedInput { name: String, reason: String },
    /// An input is not given.
    MissingInput { name: String, wanted: String },
    /// An input has another type or shape.
    WrongInput { name: String, wanted: String, found: String },
    /// Places for outputs are not as the outputs are.
    WrongOutput { reason: String },
    /// A kernel ended with an error.
    Failed { stage: String, task: String, problem: String },
    /// What ran for this stage panicked.
    Panicked { stage: String, message: String },
    /// A value did not get to another device.
    Transfer { value: String, from: String, to: String, problem: String },
    /// The request was cancelled.
    Cancelled,
    /// The runtime is being shut down.
    Closed,
}

pub type Result<T> = std::result::Result<T, Error>;

impl Error {
    pub(crate) fn unreadable(path: &Path) -> impl FnOnce(io::Error) -> Self {
        move |error| Self::Unreadable { path: path.to_owned(), error }
    }

    pub(crate) fn malformed(path: &Path, reason: impl Into<String>) -> Self {
        Self::Malformed { path: path.to_owned(), reason: reason.into() }
    }

    pub(crate) fn damaged(path: &Path, reason: impl Into<String>) -> Self {
        Self::Damaged { path: path.to_owned(), reason: reason.into() }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unreadable { path, error } => write!(f, "cannot read '{}': {error}", path.display()),
            Self::Newer { path, format, newest } => write!(
                f,
                "'{}' is of the format {format}, newer than {newest}, the newest this runtime knows: run it with a newer divi-run",
                path.display()
            ),
            Self::Malformed { path, reason } => write!(f, "'{}' is no sound bundle: {reason}", path.display()),
            Self::Damaged { path, reason } => {
                write!(f, "'{}' is not as it was written: {reason}; compile the model again", path.display())
            }
            Self::Outside { path } => write!(
                f,
                "'{}' is outside the bundle's folder and its model's: allow another folder for weights with --allow-path",
                path.display()
            ),
            Self::OtherProcessor { cpu, missing } => write!(
                f,
                "the bundle is for {cpu}, and this processor lacks {}: compile the model for this processor",
                missing.join(", ")
            ),
            Self::Code { path, reason } => write!(f, "the code in '{}' cannot be loaded: {reason}", path.display()),
            Self::UnknownKind { id, kind, known } => {
                write!(f, "device '{id}' is of the unknown kind '{kind}'; expected one of {}", known.join(", "))
            }
            Self::NoDevice { id, kind, arch, reason } => write!(
                f,
                "the bundle needs the {kind} device '{id}' ({arch}), and {reason}: plan for a system of CPUs, as --system=cpu-2"
            ),
            Self::Device { what, problem } => write!(f, "{what}: {problem}"),
            Self::Constant { index, reason } => write!(f, "constant {index} cannot be made: {reason}"),
            Self::Memory { what, bytes } => write!(f, "there is not enough memory for {what}: it takes {bytes} bytes"),
            Self::InFlight { requests, bytes, available } => write!(
                f,
                "{requests} requests in flight take {bytes} bytes, and {available} are available: allow fewer, with --in-flight"
            ),
            Self::Thread(error) => write!(f, "a thread cannot be started: {error}"),
            Self::UnexpectedInput { name, reason } => write!(f, "input '{name}' {reason}"),
            Self::MissingInput { name, wanted } => write!(f, "input '{name}' is missing: it is {wanted}"),
            Self::WrongInput { name, wanted, found } => {
                write!(f, "input '{name}' must be {wanted}, and the one given is {found}")
            }
            Self::WrongOutput { reason } => write!(f, "the outputs do not fit: {reason}"),
            Self::Failed { stage, task, problem } if task.is_empty() => write!(f, "stage '{stage}' failed: {problem}"),
            Self::Failed { stage, task, problem } => write!(f, "stage '{stage}' failed in '{task}': {problem}"),
            Self::Panicked { stage, message } => write!(f, "stage '{stage}' panicked: {message}"),
            Self::Transfer { value, from, to, problem } => {
                write!(f, "value '{value}' did not get from '{from}' to '{to}': {problem}")
            }
            Self::Cancelled => f.write_str("the request was cancelled"),
            Self::Closed => f.write_str("the runtime is shutting down"),
        }
    }
}

impl std::error::Error for Error {}
