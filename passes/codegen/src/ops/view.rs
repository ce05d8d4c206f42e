//! Operators whose result has the bytes of their operand.

use super::Lower;
use crate::{error::Result, graph::Node, lowering::Lowering};

pub(super) fn find(op: &str) -> Option<Lower> {
    Some(match op {
        "Reshape" | "Flatten" | "Squeeze" | "Unsqueeze" | "Identity" => view,
        _ => return None,
    })
}

fn view(cx: &mut Lowering<'_>, node: &Node) -> Result<()> {
    cx.alias(node.output()?, node.input(0)?);
    Ok(())
}
