//! Transposed convolutions: each result gathers the elements whose windows contain it.

use crate::{
    error::{Result, unsupported},
    graph::{Node, strides},
    lowering::Lowering,
    ops::{
        blocks::{accumulator, grain},
        window::{divide_up, is_in_range, transposed},
    },
};

/// Elements of a row of the result whose sums are accumulated together, on the stack.
const CHUNK: i64 = 1024;

pub(super) fn conv_transpose(cx: &mut Lowering<'_>, node: &Node) -> Result<()> {
    let (x, w, y) = (node.input(0)?, node.input(1)?, node.output()?);
    let (input, weights, result) = (cx.shape(x).to_vec(), cx.shape(w).to_vec(), cx.shape(y).to_vec());
    if input.len() < 3 || weights.len() != input.len() {
        return unsupported("convolutions need a batch, channels and at least one spatial axis");
    }
    // The result is the image that the window slides over; the operand has one element per position of the window.
    let axes = transposed(node, &result[2..], &input[2..], &weights[2..])?;
    let (inner, outer) = axes.split_last().expect("there is a spatial axis");
    let groups = node.attributes().int_or("group", 1)?;
    let (depth, features) = (input[1] / groups, weights[1]);
    let (x_steps, w_steps, y_steps) = (strides(&input), strides(&weights), strides(&result));
    let dtype = cx.dtype(y);
    let sum = accumulator(dtype);
    let reads: Vec<_> = [x, w].into_iter().chain(node.optional(2)).collect();
    let has_bias = reads.len() > 2;
    let row_shape = result[..result.len() - 1].to_vec();
    let outer_kernel: Vec<_> = outer.iter().map(|axis| axis.kernel).collect();
    let length = inner.image;
    if result.contains(&0) {
        return Ok(());
    }
    let work = depth * weights[2..].iter().product::<i64>() * inner.positions;
    cx.call(row_shape.iter().product(), grain(work), &reads, &[y], |b, kernel| {
        let (x, w, y) = (kernel.buffers[0], kernel.buffers[1], kernel.buffers[reads.len()]);
        let ty = b.computed(sum);
        let scratch = b.alloca(length.clamp(1, CHUNK), ty);
        b.for_each(kernel.begin, kernel.end, 1, |row| {
            let place = b.coordinates(row, &row_shape);
            let (group, feature) = b.div_rem(place[1], features);
            let start = if has_bias { b.load(kernel.buffers[2], dtype, place[1]) } else { b.zero(ty) };
            b.for_each(b.index(0), b.index(length), CHUNK, |first| {
                let last = b.min(b.plus(first, CHUNK), b.index(length), false);
                b.for_each(first, last, 1, |i| b.store(start, scratch, sum, b.sub(i, first)));
                b.repeat(depth, |plane| {
                    let channel = b.add(b.times(group, depth), plane);
                    b.nest(&outer_kernel, |element| {
                        let mut offset = b.offset(&[place[0], channel], &x_steps);
                        let mut is_hit = b.integer(1, b.i1());
                        for (i, axis) in outer.iter().enumerate() {
                            // Position of the window that has this element at this place, if there is one.
                            let distance = b.plus(b.sub(place[2 + i], b.times(element[i], axis.dilation)), axis.before);
                            let stride = b.index(axis.stride);
                            let position = b.div(distance, stride, false);
                            let is_whole = b.equal(b.mul(position, stride), distance);
                            is_hit = b.and(is_hit, b.and(is_whole, is_in_range(b, position, axis.positions)));
                            offset = b.add(offset, b.times(position, x_steps[2 + i]));
                        }
                        b.if_then(is_hit, || {
                            b.repeat(inner.kernel, |last_element| {
                                let mut at = vec![channel, feature];
                                at.extend(element);
                                at.push(last_element);
                                let weight = b.load(w, dtype, b.offset(&at, &w_steps));
                                // Place of the element at position 0 of the window; positions are a stride apart.
                                let shift = b.plus(b.times(last_element, inner.dilation), -inner.before);
                                let limit = |place| {
                                    let position = divide_up(b, b.sub(place, shift), inner.stride);
                                    b.min(position, b.index(inner.positions), false)
                                };
                                let slot_of_zero = b.sub(shift, first);
                                b.for_each(limit(first), limit(last), 1, |position| {
                                    let value = b.load(x, dtype, b.add(offset, position));
                                    let slot = b.add(b.times(position, inner.stride), slot_of_zero);
                                    let total = b.accumulate(b.load(scratch, sum, slot), b.mul(value, weight));
                                    b.store(total, scratch, sum, slot);
                                });
                            });
                        });
                    });
                });
                let target = b.offset(&place, &y_steps);
                b.for_each(first, last, 1, |i| {
                    b.store(b.load(scratch, sum, b.sub(i, first)), y, dtype, b.add(target, i));
                });
            });
        });
    });
    Ok(())
}
