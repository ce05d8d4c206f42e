//! What import says: errors, which end it, and warnings, which do not.

use std::fmt;

/// What is wrong with a model. It is always the model's fault, or the options'.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{file}: error: {}{message}", prefix(.node.as_ref()))]
pub struct Error {
    file: String,
    node: Option<NodeName>,
    message: String,
}

/// A node as messages name it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct NodeName {
    pub(super) name: String,
    pub(super) op: String,
}

/// Returns the part of a message that names the node: nothing if there is none.
fn prefix(node: Option<&NodeName>) -> String {
    node.map(|NodeName { name, op }| format!("node '{name}' ({op}): ")).unwrap_or_default()
}

impl Error {
    pub(super) fn new(file: &str, node: Option<NodeName>, message: String) -> Self {
        Self { file: file.to_owned(), node, message }
    }
}

/// Names for a message, quoted; the first of them if there are many.
pub(crate) fn list_names<'a>(names: impl Iterator<Item = &'a str>) -> String {
    const MOST: usize = 32;
    let quoted: Vec<_> = names.map(|name| format!("'{name}'")).collect();
    match quoted.len() {
        0..=MOST => quoted.join(", "),
        count => format!("{}, and {} more", quoted[..MOST].join(", "), count - MOST),
    }
}

/// Something the user should know about a model that was imported.
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
