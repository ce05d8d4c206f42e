//! What is wrong with a description, and where.

use super::{
    presets,
    units::{Bytes, UnitError},
};
use std::{fmt, string::FromUtf8Error};

/// Why there is no system. Each is the user's to mend.
#[derive(Clone, Debug, PartialEq)]
pub enum Error {
    /// Neither a preset nor a file.
    UnknownSystem {
        spec: String,
    },
    Unreadable {
        path: String,
        reason: String,
    },
    TooLarge {
        path: String,
        limit: Bytes,
    },
    Description(Errors),
}

/// Everything that is wrong with a description, in the order of the text.
#[derive(Clone, Debug, PartialEq)]
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

#[derive(Clone, Debug, PartialEq)]
pub enum Problem {
    Syntax(String),
    NotUtf8,
    NoDevice,
    NoDeviceOf {
        owner: Owner,
    },
    /// A network of no nodes.
    NothingToJoin,
    /// `[device]` instead of `[[device]]`.
    NotATableArray {
        key: &'static str,
    },
    UnknownKey {
        owner: Owner,
        key: String,
        nearest: Option<&'static str>,
        valid: &'static [&'static str],
    },
    MissingKey {
        owner: Owner,
        key: &'static str,
    },
    WrongType {
        owner: Owner,
        key: String,
        found: &'static str,
        expected: &'static str,
    },
    Quantity {
        owner: Owner,
        key: &'static str,
        text: String,
        error: UnitError,
    },
    OutOfRange {
        owner: Owner,
        key: &'static str,
        text: String,
        from: i64,
        to: i64,
    },
    UnknownWord {
        owner: Owner,
        key: &'static str,
        text: String,
        valid: Vec<&'static str>,
    },
    /// A name that cannot be a symbol of the IR.
    NotAnIdentifier {
        owner: Owner,
        key: &'static str,
        text: String,
    },
    NotAnArch {
        owner: Owner,
        text: String,
        /// What it must be.
        reason: String,
    },
    Empty {
        owner: Owner,
        key: &'static str,
    },
    /// Batch sizes that do not increase.
    NotIncreasing {
        owner: Owner,
        key: &'static str,
        before: i64,
        after: i64,
    },
    /// Rates can neither be taken from the description nor from a table.
    NoRates {
        owner: Owner,
        remedy: &'static str,
    },
    /// A key that means something for other kinds of devices only.
    NotForThisKind {
        owner: Owner,
        key: &'static str,
        kinds: String,
    },
    DuplicateDevice {
        id: String,
        line: usize,
    },
    /// `known` are the first few devices.
    UnknownDevice {
        owner: Owner,
        key: &'static str,
        id: String,
        known: Vec<String>,
    },
    DuplicateLink {
        from: String,
        to: String,
        line: usize,
    },
    LinkToItself {
        id: String,
    },
    TooMany {
        what: &'static str,
        limit: usize,
    },
    /// Half duplex means a bus that both directions share.
    HalfDuplexWithoutBus {
        owner: Owner,
    },
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

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::UnknownSystem { spec } => {
                let names: Vec<_> = presets::names().collect();
                write!(f, "error: '{spec}' is neither a file nor a preset (presets: {})", names.join(", "))
            }
            Self::Unreadable { path, reason } => write!(f, "{path}: error: cannot be read: {reason}"),
            Self::TooLarge { path, limit } => {
                write!(f, "{path}: error: more than {limit}: this is not a system description")
            }
            Self::Description(errors) => errors.fmt(f),
        }
    }
}

impl std::error::Error for Error {}

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

impl std::error::Error for Errors {}

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

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Syntax(message) => write!(f, "{message}"),
            Self::NotUtf8 => write!(f, "this is not UTF-8 text"),
            Self::NoDevice => write!(f, "the system has no device: add a [[device]]"),
            Self::NoDeviceOf { owner } => write!(f, "{owner} has no device: add a [[node.device]]"),
            Self::NothingToJoin => {
                write!(f, "the network joins nodes, and there are none: add a [[node]], or a [[link]] instead")
            }
            Self::NotATableArray { key } => write!(f, "'{key}' must be written as [[{key}]], once for each"),
            Self::UnknownKey { owner, key, nearest: Some(nearest), .. } => {
                write!(f, "unknown key '{key}' of {owner}; did you mean '{nearest}'?")
            }
            Self::UnknownKey { owner, key, nearest: None, valid } => {
                write!(f, "unknown key '{key}' of {owner} (there are {})", valid.join(", "))
            }
            Self::MissingKey { owner, key } => write!(f, "{owner} has no '{key}'"),
            Self::WrongType { owner, key, found, expected } => {
                write!(f, "'{key}' of {owner} must be {expected}, not {found}")
            }
            Self::Quantity { owner, key, text, error } => write!(f, "'{key}' of {owner} is {text}: {error}"),
            Self::OutOfRange { owner, key, text, from, to } => {
                write!(f, "'{key}' of {owner} is {text}: it must be from {from} to {to}")
            }
            Self::UnknownWord { owner, key, text, valid } => {
                write!(f, "'{key}' of {owner} is \"{text}\": it must be one of {}", valid.join(", "))
            }
            Self::NotAnIdentifier { owner, key, text } => write!(
                f,
                "'{key}' of {owner} is \"{text}\": it must be a letter or '_', followed by letters, digits, '_', '$' or '.'"
            ),
            Self::NotAnArch { owner, text, reason } => write!(f, "'arch' of {owner} is \"{text}\": it {reason}"),
            Self::Empty { owner, key } => write!(f, "'{key}' of {owner} is empty"),
            Self::NotIncreasing { owner, key, before, after } => {
                write!(f, "'{key}' of {owner} must increase, but {after} follows {before}")
            }
            Self::NoRates { owner, remedy } => write!(f, "how fast {owner} is cannot be told: {remedy}"),
            Self::NotForThisKind { owner, key, kinds } => write!(f, "'{key}' of {owner} is for {kinds} devices only"),
            Self::DuplicateDevice { id, line } => write!(f, "device '{id}' is already on line {line}"),
            Self::UnknownDevice { owner, key, id, known } => {
                write!(f, "'{key}' of {owner} names no device: '{id}' (there are {})", known.join(", "))
            }
            Self::DuplicateLink { from, to, line } => {
                write!(f, "link '{from}' -> '{to}' is already on line {line}")
            }
            Self::LinkToItself { id } => write!(f, "device '{id}' needs no link to itself"),
            Self::TooMany { what, limit } => write!(f, "there are more than {limit} {what}"),
            Self::HalfDuplexWithoutBus { owner } => {
                write!(f, "'duplex' of {owner} is \"half\": it needs the 'bus' that both directions share")
            }
        }
    }
}
