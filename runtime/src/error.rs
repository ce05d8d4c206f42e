//! Errors of the runtime: invalid bundles, invalid inputs, and failures during execution.

use std::{io, path::Path, path::PathBuf};

/// Error of the runtime.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A file does not exist or cannot be read.
    #[error("cannot read '{path}': {error}")]
    Unreadable {
        /// File.
        path: PathBuf,
        /// Error of the operating system.
        error: io::Error,
    },
    /// A file cannot be written.
    #[error("cannot write '{path}': {error}")]
    Unwritable {
        /// File.
        path: PathBuf,
        /// Error of the operating system.
        error: io::Error,
    },
    /// The bundle has a format version that this runtime does not support yet.
    #[error("'{path}' has format {format}, and this runtime supports up to {newest}: run it with a newer divi-run")]
    Newer {
        /// Description of the bundle.
        path: PathBuf,
        /// Format of the bundle.
        format: String,
        /// Newest supported format.
        newest: &'static str,
    },
    /// The description cannot be parsed or is inconsistent.
    #[error("'{path}': invalid bundle: {reason}")]
    Malformed {
        /// Description of the bundle.
        path: PathBuf,
        /// Violated constraint.
        reason: String,
    },
    /// A file of cached choices between algorithms cannot be parsed.
    #[error("'{path}': invalid choices file: {reason}")]
    MalformedChoices {
        /// File.
        path: PathBuf,
        /// Violated constraint.
        reason: String,
    },
    /// A file does not have the recorded size or hash.
    #[error("'{path}' was modified or damaged: {reason}; compile the model again")]
    Damaged {
        /// File.
        path: PathBuf,
        /// Detected difference.
        reason: String,
    },
    /// A file is outside of the folders that the bundle may read from.
    #[error(
        "'{path}' is outside the bundle's folder and its model's: allow another folder for weights with --allow-path"
    )]
    Outside {
        /// File.
        path: PathBuf,
    },
    /// The code needs instruction set extensions that this processor lacks.
    #[error(
        "the bundle is for {cpu}, and this processor lacks {}: compile the model for this processor",
        .missing.join(", ")
    )]
    OtherProcessor {
        /// Processor that the code was compiled for.
        cpu: String,
        /// Missing features.
        missing: Vec<String>,
    },
    /// An executable cannot be loaded or lacks a kernel.
    #[error("the code in '{path}' cannot be loaded: {reason}")]
    Code {
        /// Executable.
        path: PathBuf,
        /// Reason of the failure.
        reason: String,
    },
    /// There is no driver for a device kind.
    #[error("device '{id}' is of the unknown kind '{kind}'; expected one of {}", .known.join(", "))]
    UnknownKind {
        /// Device of the bundle.
        id: String,
        /// Its kind.
        kind: String,
        /// Kinds that have a driver.
        known: Vec<String>,
    },
    /// This machine lacks a device of the bundle, or its device cannot run the code.
    #[error(
        "the bundle needs the {kind} device '{id}' ({arch}), and {reason}: plan for a system of CPUs, as --system=cpu-2"
    )]
    NoDevice {
        /// Device of the bundle.
        id: String,
        /// Its kind.
        kind: String,
        /// Its architecture.
        arch: String,
        /// Description of what this machine has.
        reason: String,
    },
    /// An operation of a device failed.
    #[error("{what}: {problem}")]
    Device {
        /// Operation or device.
        what: String,
        /// Error of the driver.
        problem: String,
    },
    /// A constant cannot be computed.
    #[error("cannot compute constant {index}: {reason}")]
    Constant {
        /// Index of the constant.
        index: usize,
        /// Reason of the failure.
        reason: String,
    },
    /// An allocation failed or would exceed the available memory.
    #[error("there is not enough memory for {what}: it takes {bytes} bytes")]
    Memory {
        /// Purpose of the memory.
        what: String,
        /// Requested size in bytes.
        bytes: u64,
    },
    /// The requests in flight need more memory than is available.
    #[error(
        "{requests} requests in flight take {bytes} bytes, and {available} are available: allow fewer, with --in-flight"
    )]
    InFlight {
        /// Number of requests in flight.
        requests: usize,
        /// Bytes that they need.
        bytes: u64,
        /// Bytes that are available.
        available: u64,
    },
    /// A thread cannot be started.
    #[error("a thread cannot be started: {0}")]
    Thread(io::Error),
    /// An input is not one of the model's, or is given twice.
    #[error("input '{name}' {reason}")]
    UnexpectedInput {
        /// Name of the input.
        name: String,
        /// Rest of the message.
        reason: String,
    },
    /// An input is missing.
    #[error("input '{name}' is missing: expected {wanted}")]
    MissingInput {
        /// Name of the input.
        name: String,
        /// Expected type and shape.
        wanted: String,
    },
    /// An input has the wrong type, shape or size.
    #[error("input '{name}' must be {wanted}, and the one given is {found}")]
    WrongInput {
        /// Name of the input.
        name: String,
        /// Expected type and shape.
        wanted: String,
        /// Given type and shape.
        found: String,
    },
    /// The caller's output buffers do not match the outputs.
    #[error("invalid outputs: {reason}")]
    WrongOutput {
        /// Reason of the failure.
        reason: String,
    },
    /// The outputs of a request were already taken.
    #[error("the outputs of the request were already taken")]
    Taken,
    /// A kernel returned an error status.
    #[error("stage '{stage}' failed{}: {problem}", in_task(.task))]
    Failed {
        /// Name of the stage.
        stage: String,
        /// Name of the task; empty if unknown.
        task: String,
        /// Meaning of the status.
        problem: String,
    },
    /// A thread panicked while it ran a stage.
    #[error("stage '{stage}' panicked: {message}")]
    Panicked {
        /// Name of the stage.
        stage: String,
        /// Message of the panic.
        message: String,
    },
    /// A transfer between devices failed.
    #[error("transfer of value '{value}' from '{from}' to '{to}' failed: {problem}")]
    Transfer {
        /// Name of the value.
        value: String,
        /// Sending device.
        from: String,
        /// Receiving device.
        to: String,
        /// Error of the transport.
        problem: String,
    },
    /// The job has another number of ranks than the plan has hosts.
    #[error("the bundle is for {hosts} host{}, and the job has {ranks} ranks: start one rank per host", plural(hosts))]
    Ranks {
        /// Hosts of the plan.
        hosts: usize,
        /// Ranks of the job.
        ranks: usize,
    },
    /// A request was started on a rank other than 0.
    #[error("requests start at rank 0, and this is rank {rank}")]
    OtherRank {
        /// Number of the rank.
        rank: usize,
    },
    /// A rank differs from rank 0 in something that must be equal on all ranks.
    #[error("rank {rank} ({host}) has {what} {found}, and rank 0 has {expected}: {remedy}")]
    Mismatch {
        /// Number of the rank.
        rank: usize,
        /// Name of its host.
        host: String,
        /// Description of the difference.
        what: &'static str,
        /// Value on the rank.
        found: String,
        /// Value on rank 0.
        expected: String,
        /// Remedy.
        remedy: &'static str,
    },
    /// A rank has reported an error.
    #[error("rank {rank}: {message}")]
    Reported {
        /// Number of the rank.
        rank: usize,
        /// Message of its error.
        message: String,
    },
    /// A rank has sent no value because its part of the request has failed.
    #[error("rank {rank} has sent no value, because its part of the request has failed")]
    Withheld {
        /// Number of the rank.
        rank: usize,
    },
    /// A rank has ended, or cannot be reached.
    #[error("rank {rank} has failed: {problem}")]
    PeerFailed {
        /// Number of the rank.
        rank: usize,
        /// Error of the message-passing library.
        problem: String,
    },
    /// A rank has not answered for longer than the stall timeout.
    #[error("rank {rank} has not answered for {seconds} s{}", if *is_ended { "" } else { ", and no other rank is on its host to end it" })]
    Stalled {
        /// Number of the rank.
        rank: usize,
        /// Stall timeout in seconds.
        seconds: f64,
        /// True if a rank on the same host ends it.
        is_ended: bool,
    },
    /// Another rank has revoked the communicator, because it has found that a rank has failed.
    #[error("a rank has failed, as another one reports")]
    Revoked,
    /// A rank has sent a message that violates the protocol.
    #[error("rank {rank} has sent an invalid message: {reason}")]
    InvalidMessage {
        /// Number of the rank.
        rank: usize,
        /// Violated constraint.
        reason: String,
    },
    /// An operation of the message-passing library failed.
    #[error("message passing failed: {problem}")]
    Communication {
        /// Error of the library.
        problem: String,
    },
    /// Requests were lost because a rank has failed.
    #[error("{problem}{}", lost(.requests))]
    Lost {
        /// Cause of the failure.
        problem: String,
        /// Numbers of the requests, ascending.
        requests: Vec<u64>,
        /// True if the cause is the death of a rank, so that the others may continue.
        is_death: bool,
    },
    /// The bundle has no plan for the nodes that are left.
    #[error("{problem}")]
    NoReplacement {
        /// Reason, with the node that is lost.
        problem: String,
    },
    /// The request was cancelled.
    #[error("the request was cancelled")]
    Cancelled,
    /// The runtime is shutting down.
    #[error("the runtime is shutting down")]
    Closed,
}

/// Returns the clause of a message that names the failed task; empty if it has no name.
fn in_task(task: &str) -> String {
    if task.is_empty() { String::new() } else { format!(" in '{task}'") }
}

/// Returns the ending of a plural.
fn plural(count: &usize) -> &'static str {
    if *count == 1 { "" } else { "s" }
}

/// Returns the clause of a message that lists lost requests.
fn lost(requests: &[u64]) -> String {
    match requests {
        [] => String::new(),
        [one] => format!("; request {one} is lost"),
        [first, .., last] => format!("; {} requests from {first} to {last} are lost", requests.len()),
    }
}

/// Result of an operation of the runtime.
pub type Result<T> = std::result::Result<T, Error>;

impl Error {
    /// Returns true for errors whose cause is the death of a rank.
    pub fn is_death(&self) -> bool {
        matches!(
            self,
            Self::PeerFailed { .. }
                | Self::Revoked
                | Self::Stalled { is_ended: true, .. }
                | Self::Lost { is_death: true, .. }
        )
    }

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
