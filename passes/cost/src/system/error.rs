//! What is wrong with a description, and where.

use super::{
    presets,
    units::{Bytes, UnitError},
};
use std::{fmt, string::FromUtf8Error};

/// Why there is no system. Each is the user's to mend.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum Error {
    /// Neither a preset nor a file.
    #[error("error: '{spec}' is neither a file nor a preset (presets: {})", presets::names().collect::<Vec<_>>().join(", "))]
    UnknownSystem { spec: String },
    #[error("{path}: error: cannot be read: {reason}")]
    Unreadable { path: String, reason: String },
    #[error("{path}: error: more than {limit}: this is not a system description")]
    TooLarge { path: String, limit: Bytes },
    #[error("{0}")]
    Description(Errors),
}

/// Everything that is wrong with a description, in the order of the text.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub struct Errors {
    pub file: String,
    /// At least one, at most [`Errors::MAX_FAULTS`].
    pub faults: Vec<Fault>,
    /// How many more there are.
    pub left_out: usize,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Fault {
    /// Counted from 1.
    pub line: usize,
    /// In characters, counted from 1.
    pub column: usize,
    pub problem: Problem,
}

/// What a key belongs to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Owner {
    System,
    Device(String),
    /// A device that has no usable id: which one it is, counted from 1.
    NamelessDevice(usize),
    Node(String),
    /// A node that has no usable id: which one it is, counted from 1.
    NamelessNode(usize),
    /// What joins the devices of a node.
    Inside(String),
    /// What joins nodes.
    Network,
    Link {
        from: String,
        to: String,
    },
    /// A link that does not say what it connects: which one it is, counted from 1.
    NamelessLink(usize),
}

#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum Problem {
    #[error("{0}")]
    Syntax(String),
    #[error("this is not UTF-8 text")]
    NotUtf8,
    #[error("the system has no device: add a [[device]]")]
    NoDevice,
    #[error("{owner} has no device: add a [[node.device]]")]
    NoDeviceOf { owner: Owner },
    /// A network of no nodes.
    #[error("the network joins nodes, and there are none: add a [[node]], or a [[link]] instead")]
    NothingToJoin,
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
        /// What it must be.
        reason: String,
    },
    #[error("'{key}' of {owner} is empty")]
    Empty { owner: Owner, key: &'static str },
    /// Batch sizes that do not increase.
    #[error("'{key}' of {owner} must increase, but {after} follows {before}")]
    NotIncreasing { owner: Owner, key: &'static str, before: i64, after: i64 },
    /// Rates can neither be taken from the description nor from a table.
    #[error("how fast {owner} is cannot be told: {remedy}")]
    NoRates { owner: Owner, remedy: &'static str },
    /// A key that means something for other kinds of devices only.
    #[error("'{key}' of {owner} is for {kinds} devices only")]
    NotForThisKind { owner: Owner, key: &'static str, kinds: String },
    #[error("device '{id}' is already on line {line}")]
    DuplicateDevice { id: String, line: usize },
    /// `known` are the first few devices.
    #[error("'{key}' of {owner} names no device: '{id}' (there are {})", .known.join(", "))]
    UnknownDevice { owner: Owner, key: &'static str, id: String, known: Vec<String> },
    #[error("link '{from}' -> '{to}' is already on line {line}")]
    DuplicateLink { from: String, to: String, line: usize },
    #[error("device '{id}' needs no link to itself")]
    LinkToItself { id: String },
    #[error("there are more than {limit} {what}")]
    TooMany { what: &'static str, limit: usize },
    /// Half duplex means a bus that both directions share.
    #[error("'duplex' of {owner} is \"half\": it needs the 'bus' that both directions share")]
    HalfDuplexWithoutBus { owner: Owner },
}

impl Errors {
    pub(super) fn not_utf8(file: &str, error: &FromUtf8Error) -> Self {
        let valid = error.utf8_error().valid_up_to();
        let text = std::str::from_utf8(&error.as_bytes()[..valid]).expect("it is valid up to there");
        Self::new(file, &Lines::new(text), vec![(valid, Problem::NotUtf8)])
    }

    /// Nobody reads more of them at once.
    pub const MAX_FAULTS: usize = 50;

    /// Takes problems with the byte where each is.
    pub(super) fn new(file: &str, lines: &Lines<'_>, mut problems: Vec<(usize, Problem)>) -> Self {
        problems.sort_by_key(|(at, _)| *at);
        let left_out = problems.len().saturating_sub(Self::MAX_FAULTS);
        problems.truncate(Self::MAX_FAULTS);
        let faults = problems.into_iter().map(|(at, problem)| {
            let (line, column) = lines.position(at);
            Fault { line, column, problem }
        });
        Self { file: file.to_owned(), faults: faults.collect(), left_out }
    }
}

/// Finds the lines of a text.
pub(super) struct Lines<'t> {
    text: &'t str,
    starts: Vec<usize>,
}

impl<'t> Lines<'t> {
    pub(super) fn new(text: &'t str) -> Self {
        let later = text.match_indices('\n').map(|(at, _)| at + 1);
        Self { text, starts: std::iter::once(0).chain(later).collect() }
    }

    /// The line of a byte, counted from 1.
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
    /// One line an error.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, Fault { line, column, problem }) in self.faults.iter().enumerate() {
            let separator = if index == 0 { "" } else { "\n" };
            write!(f, "{separator}{}:{line}:{column}: error: ", self.file)?;
            write_line(f, &problem.to_string())?;
        }
        match self.left_out {
            0 => Ok(()),
            more => write!(f, "\n{}: error: {more} more errors", self.file),
        }
    }
}

/// Returns the end of a message about an unknown key: the nearest one, or all of them.
fn alternatives(nearest: Option<&str>, valid: &[&str]) -> String {
    match nearest {
        Some(nearest) => format!("; did you mean '{nearest}'?"),
        None => format!(" (there are {})", valid.join(", ")),
    }
}

/// A message quotes the text, which may be long and have line breaks; it stays a line that people read.
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
            Self::NamelessDevice(number) => write!(f, "device {number}"),
            Self::Node(id) => write!(f, "node '{id}'"),
            Self::NamelessNode(number) => write!(f, "node {number}"),
            Self::Inside(id) => write!(f, "the link within node '{id}'"),
            Self::Network => write!(f, "the network"),
            Self::Link { from, to } => write!(f, "link '{from}' -> '{to}'"),
            Self::NamelessLink(number) => write!(f, "link {number}"),
        }
    }
}
