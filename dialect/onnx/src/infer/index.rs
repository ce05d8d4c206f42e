//! Operators that pick or place elements by index.

use super::Rule;

pub(super) fn rule(op: &str) -> Option<Rule> {
    let _ = op;
    None
}
