//! Errors of the planner.

use std::fmt;

/// Maximum number of findings in a message; the rest is counted.
const SHOWN: usize = 20;

/// Error of the planner.
#[derive(Clone, Debug, PartialEq)]
pub enum Error {
    /// Malformed text.
    Format {
        /// Expected format.
        format: &'static str,
        /// Path of the invalid value; empty for the whole text.
        place: String,
        /// Description of the error.
        message: String,
    },
    /// Malformed problem: all findings.
    Problem(Vec<Finding>),
    /// Well-formed problem without a plan: all violated constraints.
    Infeasible(Vec<Finding>),
    /// Invalid plan: all violated constraints.
    Plan(Vec<Finding>),
    /// Unsupported request: an algorithm without that objective, a view that the problem does not have.
    Unsupported(String),
    /// No plan was found, though one may exist: the limits of a heuristic, with the constraint that it failed at.
    NotFound(String),
    /// Internal error.
    Bug(String),
}

/// One violated constraint: its place and a description.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// Label of the object: `node 3 (conv1)`, `device 1 (gpu0)`, `bandwidth[0][1]`.
    pub place: String,
    /// Description of the error.
    pub message: String,
}

impl Finding {
    /// Creates a finding.
    pub fn new(place: impl Into<String>, message: impl Into<String>) -> Self {
        Self { place: place.into(), message: message.into() }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}: {}", self.place, self.message)
    }
}

impl Error {
    /// Converts a proof of infeasibility under conditions that the caller has added: without them there may be a plan.
    /// `what` precedes the first finding.
    pub(crate) fn unproven(self, what: &str) -> Self {
        match self {
            Self::Infeasible(findings) => {
                let first = findings.first().map(ToString::to_string).unwrap_or_default();
                Self::NotFound(format!("{what} {first}"))
            }
            error => error,
        }
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

/// Writes one finding on the same line, several on a line each.
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
