//! TopK.

use super::{check_numbers, is_unsigned};
use crate::{
    emit::Compare,
    error::Result,
    graph::Node,
    lowering::Lowering,
    ops::{elementwise::grain, movement::sizes_around},
};
use divi_onnx::{DType, node::normalize_axis};

/// Lowers TopK by insertion into a sorted list of the best elements so far, which is kept in the results: O(size * k) per line. A new
/// element is inserted after equal ones, so the order is stable. NaN is larger than all numbers, as in ONNX's reference.
pub(super) fn top_k(cx: &mut Lowering<'_>, node: &Node) -> Result<()> {
    check_numbers(cx, node)?;
    let input = node.input(0)?;
    let dtype = cx.dtype(input);
    let attributes = node.attributes();
    let shape = cx.shape(input).to_vec();
    let axis = normalize_axis(attributes.int_or("axis", -1)?, shape.len())?;
    let is_largest = attributes.flag("largest", true)?;
    let how = if is_largest { Compare::Greater } else { Compare::Less };
    let k = cx.known_ints(node.input(1)?, "k")?.first().copied().unwrap_or(0);
    let (outer, size, inner) = sizes_around(&shape, axis);
    let mut result = shape.clone();
    result[axis] = k;
    let values = node.result(0).unwrap_or_else(|| cx.temporary(dtype, &result));
    let places = node.result(1).unwrap_or_else(|| cx.temporary(DType::I64, &result));
    let extent = if k == 0 { 0 } else { outer * inner };
    cx.call(extent, grain(dtype, extent, 4096 / size.max(1)), &[input], &[values, places], |b, kernel| {
        let [source, values, places] = [kernel.buffers[0], kernel.buffers[1], kernel.buffers[2]];
        b.for_each(kernel.begin, kernel.end, 1, |line| {
            let (outer, column) = b.div_rem(line, inner);
            let from = b.add(b.times(outer, size * inner), column);
            let to = b.add(b.times(outer, k * inner), column);
            let at = |i| b.add(to, b.times(i, inner));
            b.for_loop_carried(b.index(0), b.index(size), 1, &[b.index(0)], |i, state| {
                let x = b.load(source, dtype, b.add(from, b.times(i, inner)));
                let kept = state[0];
                let beats = |place| {
                    let other = b.load(values, dtype, at(place));
                    let is_better = b.compare(how, x, other, is_unsigned(dtype));
                    if !dtype.is_float() {
                        return is_better;
                    }
                    let (more, less) = if is_largest { (x, other) } else { (other, x) };
                    b.or(is_better, b.and(b.is_nan(more), b.not(b.is_nan(less))))
                };
                let is_full = b.equal(kept, b.index(k));
                // Before the list is full, its last element is uninitialized; the comparison is then irrelevant.
                let enters = b.or(b.not(is_full), beats(b.index(k - 1)));
                b.if_then(enters, || {
                    let last = b.select(is_full, b.index(k - 1), kept);
                    let free = b.while_loop(
                        &[last],
                        |state| {
                            let is_inside = b.less(b.index(0), state[0]);
                            let before = b.select(is_inside, b.plus(state[0], -1), b.index(0));
                            b.and(is_inside, beats(before))
                        },
                        |state| {
                            let before = b.plus(state[0], -1);
                            b.store(b.load(values, dtype, at(before)), values, dtype, at(state[0]));
                            let place = b.load(places, DType::I64, at(before));
                            b.store(place, places, DType::I64, at(state[0]));
                            vec![before]
                        },
                    )[0];
                    b.store(x, values, dtype, at(free));
                    b.store(i, places, DType::I64, at(free));
                });
                vec![b.select(is_full, kept, b.plus(kept, 1))]
            });
        });
    });
    Ok(())
}
