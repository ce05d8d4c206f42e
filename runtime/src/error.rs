//! What can go wrong: with the bundle, with a request's inputs, or while it runs.

use std::{io, path::Path, path::PathBuf};

#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A file of the bundle is not there or cannot be read.
    #[error("cannot read '{path}': {error}")]
    Unreadable { path: PathBuf, error: io::Error },
    /// The bundle is of a version that is newer than the newest this runtime knows.
    #[error(
        "'{path}' is of the format {format}, newer than {newest}, the newest this runtime knows: run it with a newer divi-run"
    )]
    Newer { path: PathBuf, format: String, newest: &'static str },
    /// The description is not one, or contradicts itself.
    #[error("'{path}' is no sound bundle: {reason}")]
    Malformed { path: PathBuf, reason: String },
    /// A file is not as it was written.
    #[error("'{path}' is not as it was written: {reason}; compile the model again")]
    Damaged { path: PathBuf, reason: String },
    /// A file is in none of the folders that the bundle may read from.
    #[error(
        "'{path}' is outside the bundle's folder and its model's: allow another folder for weights with --allow-path"
    )]
    Outside { path: PathBuf },
    /// The code is for a processor that can do more than this one.
    #[error(
        "the bundle is for {cpu}, and this processor lacks {}: compile the model for this processor",
        .missing.join(", ")
    )]
    OtherProcessor { cpu: String, missing: Vec<String> },
    /// An executable cannot be loaded or lacks a kernel.
    #[error("the code in '{path}' cannot be loaded: {reason}")]
    Code { path: PathBuf, reason: String },
    /// There is no driver for a kind of device.
    #[error("device '{id}' is of the unknown kind '{kind}'; expected one of {}", .known.join(", "))]
    UnknownKind { id: String, kind: String, known: Vec<String> },
    /// This machine lacks a device of the bundle, or has one that its code is not for.
    #[error(
        "the bundle needs the {kind} device '{id}' ({arch}), and {reason}: plan for a system of CPUs, as --system=cpu-2"
    )]
    NoDevice { id: String, kind: String, arch: String, reason: String },
    /// An operation of a device failed.
    #[error("{what}: {problem}")]
    Device { what: String, problem: String },
    /// A constant cannot be made.
    #[error("constant {index} cannot be made: {reason}")]
    Constant { index: usize, reason: String },
    /// There is not enough memory for something.
    #[error("there is not enough memory for {what}: it takes {bytes} bytes")]
    Memory { what: String, bytes: u64 },
    /// Requests in flight take more memory than there is.
    #[error(
        "{requests} requests in flight take {bytes} bytes, and {available} are available: allow fewer, with --in-flight"
    )]
    InFlight { requests: usize, bytes: u64, available: u64 },
    /// A thread cannot be started.
    #[error("a thread cannot be started: {0}")]
    Thread(io::Error),
    /// An input is given that the model does not have, or twice.
    #[error("input '{name}' {reason}")]
    UnexpectedInput { name: String, reason: String },
    /// An input is not given.
    #[error("input '{name}' is missing: it is {wanted}")]
    MissingInput { name: String, wanted: String },
    /// An input has another type or shape.
    #[error("input '{name}' must be {wanted}, and the one given is {found}")]
    WrongInput { name: String, wanted: String, found: String },
    /// Places for outputs are not as the outputs are.
    #[error("the outputs do not fit: {reason}")]
    WrongOutput { reason: String },
    /// A kernel ended with an error.
    #[error("stage '{stage}' failed{}: {problem}", in_task(.task))]
    Failed { stage: String, task: String, problem: String },
    /// What ran for this stage panicked.
    #[error("stage '{stage}' panicked: {message}")]
    Panicked { stage: String, message: String },
    /// A value did not get to another device.
    #[error("value '{value}' did not get from '{from}' to '{to}': {problem}")]
    Transfer { value: String, from: String, to: String, problem: String },
    /// The request was cancelled.
    #[error("the request was cancelled")]
    Cancelled,
    /// The runtime is being shut down.
    #[error("the runtime is shutting down")]
    Closed,
}

/// Returns the clause of a message about the task that failed: nothing if it has no name.
fn in_task(task: &str) -> String {
    if task.is_empty() { String::new() } else { format!(" in '{task}'") }
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
