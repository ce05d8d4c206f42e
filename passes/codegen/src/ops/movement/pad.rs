//! Padding and cropping.

use super::{Lower, Part, copy_by_tables, copy_part, raw};
use crate::{
    error::{Result, unsupported},
    graph::{Id, Node, strides},
    lowering::Lowering,
    ops::elementwise::{StridedAccess, nest},
};
use divi_onnx::Op;
use divi_onnx::node::normalize_axes;

pub(super) fn find(op: Op) -> Option<Lower> {
    Some(match op {
        Op::Pad | Op::PadV11 | Op::PadV13 | Op::PadV18 => pad,
        Op::CenterCropPad => center_crop_pad,
        _ => return None,
    })
}

fn pad(cx: &mut Lowering<'_>, node: &Node) -> Result<()> {
    let (input, output) = (node.input(0)?, node.output()?);
    let rank = cx.shape(input).len();
    let pads = cx.known_ints(node.input(1)?, "the pads")?;
    let axes = match node.optional(3) {
        Some(axes) => normalize_axes(&cx.known_ints(axes, "the axes")?, rank)?,
        None => (0..rank).collect(),
    };
    let mut before = vec![0; rank];
    for (&axis, &pad) in axes.iter().zip(&pads) {
        before[axis] = pad;
    }
    match node.attributes().str_or("mode", "constant")? {
        "constant" => surround(cx, input, output, &before, node.optional(2)),
        mode => {
            let shape = cx.shape(input);
            if shape.contains(&0) && cx.count(output) > 0 {
                return unsupported("an empty tensor has no elements to pad it with; use the mode 'constant'");
            }
            let sizes = shape.iter().zip(strides(shape)).zip(before.iter().zip(cx.shape(output)));
            let tables: Result<Vec<_>> = sizes
                .map(|((&size, step), (&before, &wanted))| {
                    (0..wanted).map(|at| Ok(source(mode, at - before, size)? * step)).collect()
                })
                .collect();
            let tables = tables?;
            copy_by_tables(cx, input, output, &tables)
        }
    }
}

/// Returns the index of the element of an axis at a place that may be outside.
fn source(mode: &str, at: i64, size: i64) -> Result<i64> {
    Ok(match mode {
        "edge" => at.clamp(0, size - 1),
        "wrap" => at.rem_euclid(size),
        "reflect" if size == 1 => 0,
        "reflect" => {
            let period = 2 * (size - 1);
            let at = at.rem_euclid(period);
            at.min(period - at)
        }
        other => return unsupported(format!("attribute 'mode' is '{other}', must be constant, reflect, edge or wrap")),
    })
}

/// Fills the result with a value, or with zeros, and copies the part of the operand that is inside the result.
fn surround(cx: &mut Lowering<'_>, input: Id, output: Id, before: &[i64], value: Option<Id>) -> Result<()> {
    let (shape, result) = (cx.shape(input).to_vec(), cx.shape(output).to_vec());
    let (mut from, mut to) = (Part::whole(cx, input), Part::whole(cx, output));
    let mut part = vec![];
    for (axis, &before) in before.iter().enumerate() {
        let first = (-before).max(0);
        let end = shape[axis].min(result[axis] - before);
        part.push((end - first).max(0));
        from.start += first * from.strides[axis];
        to.start += (first + before) * to.strides[axis];
    }
    if part != result {
        fill(cx, output, value)?;
    }
    if part.contains(&0) {
        return Ok(());
    }
    copy_part(cx, &part, from, to)
}

/// Fills a value with the element of another value, or with zeros.
pub(super) fn fill(cx: &mut Lowering<'_>, output: Id, value: Option<Id>) -> Result<()> {
    let (shape, dtype) = (cx.shape(output).to_vec(), raw(cx.dtype(output))?);
    let operands: Vec<_> = value.map(|id| StridedAccess::broadcast(cx, id, dtype, &shape)).into_iter().collect();
    let result = StridedAccess::broadcast(cx, output, dtype, &shape);
    nest(cx, &shape, &operands, &result, |b, values| {
        values.first().copied().unwrap_or_else(|| b.zero(b.computed(dtype)))
    });
    Ok(())
}

/// Lowers CenterCropPad: crops or pads both sides equally; an odd element is at the end.
fn center_crop_pad(cx: &mut Lowering<'_>, node: &Node) -> Result<()> {
    let (input, output) = (node.input(0)?, node.output()?);
    let sizes = cx.shape(input).iter().zip(cx.shape(output));
    let before: Vec<_> = sizes
        .map(|(&size, &wanted)| if wanted >= size { (wanted - size) / 2 } else { -((size - wanted) / 2) })
        .collect();
    surround(cx, input, output, &before, None)
}
