//! Slice and Split.

use super::{Lower, Part, copy_part, sizes_around};
use crate::{error::Result, graph::Node, lowering::Lowering};
use divi_onnx::Op;
use divi_onnx::node::{normalize_axes, normalize_axis};

pub(super) fn find(op: Op) -> Option<Lower> {
    Some(match op {
        Op::Slice => slice,
        Op::Split | Op::SplitV13 => split,
        _ => return None,
    })
}

fn slice(cx: &mut Lowering<'_>, node: &Node) -> Result<()> {
    let (input, output) = (node.input(0)?, node.output()?);
    let shape = cx.shape(input).to_vec();
    let starts = cx.known_ints(node.input(1)?, "the starts")?;
    let axes = match node.optional(3) {
        Some(axes) => cx.known_ints(axes, "the axes")?,
        None => (0..starts.len() as i64).collect(),
    };
    let steps = match node.optional(4) {
        Some(steps) => cx.known_ints(steps, "the steps")?,
        None => vec![1; starts.len()],
    };
    let mut from = Part::whole(cx, input);
    let axes = normalize_axes(&axes, shape.len())?;
    for ((axis, start), step) in axes.into_iter().zip(starts).zip(steps) {
        let size = shape[axis];
        let start = if start < 0 { start.saturating_add(size) } else { start };
        let start = start.clamp(0, if step > 0 { size } else { size - 1 }.max(0));
        from.start += start * from.strides[axis];
        // The step may be huge if only one element is selected, where it does not matter.
        from.strides[axis] = from.strides[axis].saturating_mul(step);
    }
    let to = Part::whole(cx, output);
    let result = cx.shape(output).to_vec();
    if result == shape && from.start == 0 && from.strides == to.strides {
        cx.alias(output, input);
        return Ok(());
    }
    copy_part(cx, &result, from, to)
}

fn split(cx: &mut Lowering<'_>, node: &Node) -> Result<()> {
    let input = node.input(0)?;
    let shape = cx.shape(input).to_vec();
    let axis = normalize_axis(node.attributes().int_or("axis", 0)?, shape.len())?;
    let (outer, total, inner) = sizes_around(&shape, axis);
    let sizes = match node.optional(1) {
        Some(sizes) => cx.known_ints(sizes, "the sizes of the parts")?,
        None => {
            let size = (total as u64).div_ceil(node.outputs.len().max(1) as u64) as i64;
            vec![size; node.outputs.len()]
        }
    };
    let mut start = 0;
    for (output, size) in node.outputs.iter().zip(sizes) {
        if let Some(output) = *output {
            let size = cx.shape(output)[axis];
            let from = Part { id: input, start: start * inner, strides: vec![total * inner, 1] };
            let to = Part { id: output, start: 0, strides: vec![size * inner, 1] };
            copy_part(cx, &[outer, size * inner], from, to)?;
        }
        start += size;
    }
    Ok(())
}
