//! Cumulative sums and products.

use super::{super::blocks::accumulator, check_numbers, convert};
use crate::{
    emit::{Builder, V},
    error::{Result, unsupported},
    graph::Node,
    lowering::Lowering,
    ops::{elementwise::grain, movement::sizes_around},
};
use divi_onnx::node::normalize_axis;

/// Lowers a scan along an axis with initial value `start`; inclusive or exclusive, forward or reverse.
pub(super) fn scan(
    cx: &mut Lowering<'_>,
    node: &Node,
    start: f64,
    step: impl FnOnce(&Builder, V, V) -> V,
) -> Result<()> {
    check_numbers(cx, node)?;
    let (input, output) = (node.input(0)?, node.output()?);
    let attributes = node.attributes();
    let (is_exclusive, is_reverse) = (attributes.flag("exclusive", false)?, attributes.flag("reverse", false)?);
    let axis = cx.known_ints(node.input(1)?, "the axis")?;
    let &[axis] = axis.as_slice() else { return unsupported("operand 1 must be one axis") };
    let (shape, dtype) = (cx.shape(input).to_vec(), cx.dtype(input));
    let wide = accumulator(dtype);
    let (outer, size, inner) = sizes_around(&shape, normalize_axis(axis, shape.len())?);
    let extent = outer * inner;
    cx.call(extent, grain(dtype, extent, 16 * 1024 / size.max(1)), &[input], &[output], |b, kernel| {
        b.for_each(kernel.begin, kernel.end, 1, |line| {
            let (outer, place) = b.div_rem(line, inner);
            let base = b.add(b.times(outer, size * inner), place);
            let start = b.number(start, b.computed(wide));
            b.for_loop_carried(b.index(0), b.index(size), 1, &[start], |i, state| {
                let i = if is_reverse { b.sub(b.index(size - 1), i) } else { i };
                let at = b.add(base, b.times(i, inner));
                let next = step(b, state[0], convert(b, b.load(kernel.buffers[0], dtype, at), dtype, wide));
                let value = if is_exclusive { state[0] } else { next };
                b.store(convert(b, value, wide, dtype), kernel.buffers[1], dtype, at);
                vec![next]
            });
        });
    });
    Ok(())
}
