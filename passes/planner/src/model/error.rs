//! What can go wrong, and whose fault it is.

use std::fmt;

/// At most so many findings are printed; the rest is counted.
const SHOWN: usize = 20;

#[derive(Clone, Debug, PartialEq)]
pub enum Error {
    /// The text is not what its format says: which format, where in it, what is wrong.
    Format { format: &'static str, place: String, message: String },
    /// The problem is not well-formed: everything that is wrong with it.
    Problem(Vec<Finding>),
    /// The problem makes sense, but has no plan: everything that stands in the way.
    Infeasible(Vec<Finding>),
    /// The plan does not hold for its problem: everything that is wrong with it.
    Plan(Vec<Finding>),
    /// What was asked for is not there: an algorithm without that objective, a view that the problem has not.
    Unsupported(String),
    /// No plan was found, though there may be one: a heuristic's limits, with what stood in its way.
    NotFound(String),
    /// Our own fault.
    Bug(String),
}

/// One thing that is wrong: where, and what.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// `node 3 (conv1)`, `device 1 (gpu0)`, `bandwidth[0][1]`.
    pub place: String,
    pub message: String,
}

impl Finding {
    pub fn new(place: impl Into<String>, message: impl Into<String>) -> Self {
        Self { place: place.into(), message: message.into() }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}: {}", self.place, self.message)
    }
}

impl fmt::Display for Error {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Format { format, place, message } if place.is_empty() => write!(formatter, "not {format}: {message}"),
            Self::Format { format, place, message } => write!(formatter, "not {format}: {place}: {message}"),
            Self::Problem(findings) => list(formatter, "the problem is not well-formed", findings),
            Self::Infeasible(findings) => list(formatter, "the problem has no plan", findings),
            Self::Plan(findings) => list(formatter, "the plan does not hold", findings),
            Self::Unsupported(message) | Self::NotFound(message) => write!(formatter, "{message}"),
            Self::Bug(message) => write!(formatter, "{message}; this is a bug in divi"),
        }
    }
}

impl std::error::Error for Error {}

/// One finding on the line itself, several on a line each.
fn list(formatter: &mut fmt::Formatter<'_>, what: &str, findings: &[Finding]) -> fmt::Result {
    if let [finding] = findings {
        return write!(formatter, "{what}: {finding}");
    }
    write!(formatter, "{what}:")?;
    for finding in findings.iter().take(SHOWN) {
        write!(formatter, "\n  {finding}")?;
    }
    if findings.len() > SHOWN {
        write!(formatter, "\n  and {} more", findings.len() - SHOWN)?;
    }
    Ok(())
}
