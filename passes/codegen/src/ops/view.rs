//! Operators whose result is a view of their operand.

use super::Lower;
use crate::{error::Result, graph::Node, lowering::Lowering};
use divi_onnx::Op;

pub(super) fn find(op: Op) -> Option<Lower> {
    Some(match op {
        Op::Reshape | Op::Flatten | Op::Squeeze | Op::Unsqueeze | Op::Identity => view,
        _ => return None,
    })
}

fn view(cx: &mut Lowering<'_>, node: &Node) -> Result<()> {
    cx.alias(node.output()?, node.input(0)?);
    Ok(())
}
