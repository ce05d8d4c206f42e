//! Errors in descriptions, with their locations.

use super::{
    presets,
    units::{Bytes, UnitError},
};
use std::{fmt, string::FromUtf8Error};

/// Error of loading a system.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum Error {
    /// Neither a preset nor a file.
    #[error("error: '{spec}' is neither a file nor a preset (presets: {})", presets::names().collect::<Vec<_>>().join(", "))]
    UnknownSystem {
        /// Name that was given.
        spec: String,
    },
    /// The file cannot be read.
    #[error("{path}: error: cannot be read: {reason}")]
    Unreadable {
        /// Path of the file.
        path: String,
        /// Message of the operating system.
        reason: String,
    },
    /// The file is too large.
    #[error("{path}: error: more than {limit}: this is not a system description")]
    TooLarge {
        /// Path of the file.
        path: String,
        /// Maximum size.
        limit: Bytes,
    },
    /// The description has errors.
    #[error("{0}")]
    Description(Errors),
}

/// All errors in a description, in the order of the text.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub struct Errors {
    /// Name of the file.
    pub file: String,
    /// Errors: at least one, at most [`Errors::MAX_DIAGNOSTICS`].
    pub diagnostics: Vec<Diagnostic>,
    /// Number of further errors.
    pub omitted: usize,
}

/// Error with its location.
#[derive(Clone, Debug, PartialEq)]
pub struct Diagnostic {
    /// Line, counted from 1.
    pub line: usize,
    /// Column in characters, counted from 1.
    pub column: usize,
    /// Error.
    pub error: DescriptionError,
}

/// Table that a key belongs to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Owner {
    /// Top level.
    System,
    /// Device, by its id.
    Device(String),
    /// Device without a valid id, by its number, counted from 1.
    UnnamedDevice(usize),
    /// Node, by its id.
    Node(String),
    /// Node without a valid id, by its number, counted from 1.
    UnnamedNode(usize),
    /// Links within a node, by the node's id.
    NodeLink(String),
    /// Links between nodes.
    Network,
    /// Link.
    Link {
        /// Source device or pattern.
        from: String,
        /// Destination device or pattern.
        to: String,
    },
    /// Link without valid ends, by its number, counted from 1.
    UnnamedLink(usize),
}

/// Error in a description.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[allow(missing_docs, reason = "the messages describe the errors and their fields")]
pub enum DescriptionError {
    #[error("{0}")]
    Syntax(String),
    #[error("this is not UTF-8 text")]
    NotUtf8,
    #[error("the system has no device: add a [[device]]")]
    NoDevice,
    #[error("{owner} has no device: add a [[node.device]]")]
    NoDeviceOf { owner: Owner },
    /// A network without nodes.
    #[error("the network has no nodes to connect: add a [[node]], or use a [[link]] instead")]
    NetworkWithoutNodes,
    /// `[device]` instead of `[[device]]`.
    #[error("'{key}' must be written as [[{key}]], once for each")]
    NotATableArray { key: &'static str },
    #[error("unknown key '{key}' of {owner}{}", alternatives(*.nearest, .valid))]
    UnknownKey { owner: Owner, key: String, nearest: Option<&'static str>, valid: &'static [&'static str] },
    #[error("{owner} has no '{key}'")]
    MissingKey { owner: Owner, key: &'static str },
    #[error("'{key}' of {owner} must be {expected}, not {found}")]
    WrongType { owner: Owner, key: String, found: &'static str, expected: &'static str },
    #[error("'{key}' of {owner} is {text}: {error}")]
    Quantity { owner: Owner, key: &'static str, text: String, error: UnitError },
    #[error("'{key}' of {owner} is {text}: it must be from {from} to {to}")]
    OutOfRange { owner: Owner, key: &'static str, text: String, from: i64, to: i64 },
    #[error("'{key}' of {owner} is \"{text}\": it must be one of {}", .valid.join(", "))]
    UnknownWord { owner: Owner, key: &'static str, text: String, valid: Vec<&'static str> },
    /// A name that cannot be a symbol of the IR.
    #[error(
        "'{key}' of {owner} is \"{text}\": it must be a letter or '_', followed by letters, digits, '_', '$' or '.'"
    )]
    NotAnIdentifier { owner: Owner, key: &'static str, text: String },
    #[error("'arch' of {owner} is \"{text}\": it {reason}")]
    NotAnArch {
        owner: Owner,
        text: String,
        /// Predicate: `must be …`.
        reason: String,
    },
    #[error("'{key}' of {owner} is empty")]
    Empty { owner: Owner, key: &'static str },
    /// Batch sizes that do not increase.
    #[error("'{key}' of {owner} must increase, but {after} follows {before}")]
    NotIncreasing { owner: Owner, key: &'static str, before: i64, after: i64 },
    /// Neither the description nor the table of architectures has the rates.
    #[error("cannot determine the rates of {owner}: {remedy}")]
    NoRates { owner: Owner, remedy: &'static str },
    /// A key that applies to other kinds of devices only.
    #[error("'{key}' of {owner} is for {kinds} devices only")]
    NotForThisKind { owner: Owner, key: &'static str, kinds: String },
    #[error("device '{id}' is already on line {line}")]
    DuplicateDevice { id: String, line: usize },
    /// `known` are the first few devices.
    #[error("'{key}' of {owner} names unknown device '{id}' (devices: {})", .known.join(", "))]
    UnknownDevice { owner: Owner, key: &'static str, id: String, known: Vec<String> },
    #[error("link '{from}' -> '{to}' is already on line {line}")]
    DuplicateLink { from: String, to: String, line: usize },
    #[error("device '{id}' needs no link to itself")]
    LinkToItself { id: String },
    #[error("there are more than {limit} {what}")]
    TooMany { what: &'static str, limit: usize },
    /// Half duplex requires a bus that both directions share.
    #[error("'duplex' of {owner} is \"half\": it needs the 'bus' that both directions share")]
    HalfDuplexWithoutBus { owner: Owner },
    /// A scope without a bus that has it.
    #[error("'scope' of the network needs the 'bus' that links share")]
    ScopeWithoutBus,
    /// A bus of a node has one direction.
    #[error("'scope' of the network is \"node\", a bus for what a node sends: it needs duplex = \"full\"")]
    HalfDuplexOfNodes,
}

impl Errors {
    pub(super) fn not_utf8(file: &str, error: &FromUtf8Error) -> Self {
        let valid = error.utf8_error().valid_up_to();
        let text = std::str::from_utf8(&error.as_bytes()[..valid]).expect("the prefix is valid UTF-8");
        Self::new(file, &Lines::new(text), vec![(valid, DescriptionError::NotUtf8)])
    }

    /// Maximum number of errors that are reported.
    pub const MAX_DIAGNOSTICS: usize = 50;

    /// Creates errors from errors with their byte offsets.
    pub(super) fn new(file: &str, lines: &Lines<'_>, mut errors: Vec<(usize, DescriptionError)>) -> Self {
        errors.sort_by_key(|(at, _)| *at);
        let omitted = errors.len().saturating_sub(Self::MAX_DIAGNOSTICS);
        errors.truncate(Self::MAX_DIAGNOSTICS);
        let diagnostics = errors.into_iter().map(|(at, error)| {
            let (line, column) = lines.position(at);
            Diagnostic { line, column, error }
        });
        Self { file: file.to_owned(), diagnostics: diagnostics.collect(), omitted }
    }
}

/// Line starts of a text.
pub(super) struct Lines<'t> {
    text: &'t str,
    starts: Vec<usize>,
}

impl<'t> Lines<'t> {
    pub(super) fn new(text: &'t str) -> Self {
        let later = text.match_indices('\n').map(|(at, _)| at + 1);
        Self { text, starts: std::iter::once(0).chain(later).collect() }
    }

    /// Returns the line of a byte, counted from 1.
    pub(super) fn line(&self, at: usize) -> usize {
        self.starts.partition_point(|start| *start <= at)
    }

    fn position(&self, at: usize) -> (usize, usize) {
        let at = (0..=at.min(self.text.len())).rev().find(|at| self.text.is_char_boundary(*at)).unwrap_or(0);
        let line = self.line(at);
        (line, self.text[self.starts[line - 1]..at].chars().count() + 1)
    }
}

impl fmt::Display for Errors {
    /// Formats one line per error.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, Diagnostic { line, column, error }) in self.diagnostics.iter().enumerate() {
            let separator = if index == 0 { "" } else { "\n" };
            write!(f, "{separator}{}:{line}:{column}: error: ", self.file)?;
            write_line(f, &error.to_string())?;
        }
        match self.omitted {
            0 => Ok(()),
            more => write!(f, "\n{}: error: {more} more errors", self.file),
        }
    }
}

/// Returns the end of a message about an unknown key: the nearest one, or all of them.
fn alternatives(nearest: Option<&str>, valid: &[&str]) -> String {
    match nearest {
        Some(nearest) => format!("; did you mean '{nearest}'?"),
        None => format!("; expected one of {}", valid.join(", ")),
    }
}

/// Writes a message as one line: it may quote text that is long or contains line breaks.
fn write_line(f: &mut fmt::Formatter<'_>, message: &str) -> fmt::Result {
    const MAX_CHARACTERS: usize = 500;
    for c in message.chars().take(MAX_CHARACTERS) {
        if c.is_control() { write!(f, "{}", c.escape_default())? } else { write!(f, "{c}")? }
    }
    if message.chars().nth(MAX_CHARACTERS).is_some() { write!(f, "...") } else { Ok(()) }
}

impl fmt::Display for Owner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::System => write!(f, "the system"),
            Self::Device(id) => write!(f, "device '{id}'"),
            Self::UnnamedDevice(number) => write!(f, "device {number}"),
            Self::Node(id) => write!(f, "node '{id}'"),
            Self::UnnamedNode(number) => write!(f, "node {number}"),
            Self::NodeLink(id) => write!(f, "the link within node '{id}'"),
            Self::Network => write!(f, "the network"),
            Self::Link { from, to } => write!(f, "link '{from}' -> '{to}'"),
            Self::UnnamedLink(number) => write!(f, "link {number}"),
        }
    }
}
