//! Code for operators, a file a family. Each operator has a function that lowers one application of it to calls.

mod elementwise;
mod movement;
mod view;

use crate::{error::Result, graph::Node, lowering::Lowering};
pub(crate) use elementwise::map;
pub(crate) use movement::copy;

/// Lowers a node.
pub(crate) type Lower = fn(&mut Lowering<'_>, &Node) -> Result<()>;

/// Every operator that there is code for, by families.
const FAMILIES: &[fn(&str) -> Option<Lower>] = &[elementwise::find, movement::find, view::find];

/// The function that lowers an operator.
pub(crate) fn find(op: &str) -> Option<Lower> {
    FAMILIES.iter().find_map(|family| family(op))
}
