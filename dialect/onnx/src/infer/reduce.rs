//! Operators that fold one or more axes into one value.

use super::Rule;

pub(super) fn rule(op: &str) -> Option<Rule> {
    let _ = op;
    None
}
