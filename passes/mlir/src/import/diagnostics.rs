//! Diagnostics of import: errors, which end it, and warnings.

use std::fmt;

/// Error in a model or in the options.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{file}: error: {}{message}", prefix(.node.as_ref()))]
pub struct Error {
    file: String,
    node: Option<NodeName>,
    message: String,
}

/// Name and operator of a node, for messages.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct NodeName {
    pub(super) name: String,
    pub(super) op: String,
}

/// Returns the part of a message that identifies the node, if there is one.
fn prefix(node: Option<&NodeName>) -> String {
    node.map(|NodeName { name, op }| format!("node '{name}' ({op}): ")).unwrap_or_default()
}

impl Error {
    pub(super) fn new(file: &str, node: Option<NodeName>, message: String) -> Self {
        Self { file: file.to_owned(), node, message }
    }
}

/// Returns quoted names for a message, at most the first 32.
pub(crate) fn list_names<'a>(names: impl Iterator<Item = &'a str>) -> String {
    const MOST: usize = 32;
    let quoted: Vec<_> = names.map(|name| format!("'{name}'")).collect();
    match quoted.len() {
        0..=MOST => quoted.join(", "),
        count => format!("{}, and {} more", quoted[..MOST].join(", "), count - MOST),
    }
}

/// Warning about a model that was imported.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Warning {
    file: String,
    message: String,
}

impl Warning {
    pub(super) fn new(file: &str, message: String) -> Self {
        Self { file: file.to_owned(), message }
    }
}

impl fmt::Display for Warning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: warning: {}", self.file, self.message)
    }
}
