//! Operators that concatenate or repeat whole tensors.

use super::{Lower, Part, copy_part, sizes_around};
use crate::{
    error::Result,
    graph::{Node, broadcast_strides, strides},
    lowering::Lowering,
};
use divi_onnx::Op;
use divi_onnx::node::normalize_axis;

pub(super) fn find(op: Op) -> Option<Lower> {
    Some(match op {
        Op::Concat => concat,
        Op::Expand => expand,
        Op::Tile => tile,
        _ => return None,
    })
}

fn concat(cx: &mut Lowering<'_>, node: &Node) -> Result<()> {
    let output = node.output()?;
    let shape = cx.shape(output).to_vec();
    let axis = normalize_axis(node.attributes().int_or("axis", 0)?, shape.len())?;
    let (outer, total, inner) = sizes_around(&shape, axis);
    let mut start = 0;
    for input in node.inputs.iter().flatten() {
        let size = cx.shape(*input)[axis];
        let to = Part { id: output, start: start * inner, strides: vec![total * inner, 1] };
        let from = Part { id: *input, start: 0, strides: vec![size * inner, 1] };
        copy_part(cx, &[outer, size * inner], from, to)?;
        start += size;
    }
    Ok(())
}

fn expand(cx: &mut Lowering<'_>, node: &Node) -> Result<()> {
    let (input, output) = (node.input(0)?, node.output()?);
    let shape = cx.shape(output).to_vec();
    if cx.count(input) == cx.count(output) {
        cx.alias(output, input);
        return Ok(());
    }
    let from = Part { id: input, start: 0, strides: broadcast_strides(cx.shape(input), &shape) };
    let to = Part::whole(cx, output);
    copy_part(cx, &shape, from, to)
}

/// Lowers Tile: each axis becomes two, one over repetitions, with stride 0 in the operand, and the original one.
fn tile(cx: &mut Lowering<'_>, node: &Node) -> Result<()> {
    let (input, output) = (node.input(0)?, node.output()?);
    let repeats = cx.known_ints(node.input(1)?, "the repeats")?;
    let own = strides(cx.shape(input));
    let mut shape = vec![];
    let mut steps = vec![];
    for ((&size, repeats), step) in cx.shape(input).iter().zip(repeats).zip(own) {
        shape.extend([repeats, size]);
        steps.extend([0, step]);
    }
    let to = Part { id: output, start: 0, strides: strides(&shape) };
    copy_part(cx, &shape, Part { id: input, start: 0, strides: steps }, to)
}
