//! Rotary embedding: pairs of elements are rotated by angles that depend on their position.

use super::Heads;
use crate::{
    error::Result,
    graph::Node,
    lowering::Lowering,
    ops::blocks::{grain, to_index},
};

pub(super) fn rotary_embedding(cx: &mut Lowering<'_>, node: &Node) -> Result<()> {
    let attributes = node.attributes();
    let x = Heads::new(cx, node.input(0)?, attributes.int("num_heads")?)?;
    let (cosines, sines, y) = (node.input(1)?, node.input(2)?, node.output()?);
    let positions = node.optional(3);
    let rotated = match attributes.int_or("rotary_embedding_dim", 0)? {
        0 => x.size,
        size => size,
    };
    let half = rotated / 2;
    // Distance between pairs, and between the two elements of a pair.
    let (step, distance) = if attributes.flag("interleaved", false)? { (2, 1) } else { (1, half) };
    let dtype = cx.dtype(x.id);
    let position_dtype = positions.map(|id| cx.dtype(id));
    let table = cx.shape(cosines)[0];
    let reads: Vec<_> = [x.id, cosines, sines].into_iter().chain(positions).collect();
    cx.call(x.batch * x.length, grain(x.heads * x.size), &reads, &[y], |b, kernel| {
        let (x_buffer, y_buffer) = (kernel.buffers[0], kernel.buffers[reads.len()]);
        b.for_each(kernel.begin, kernel.end, 1, |token| {
            let row = match position_dtype {
                Some(dtype) => {
                    let position = to_index(b, b.load(kernel.buffers[3], dtype, token), dtype);
                    b.checked_index(position, table)
                }
                None => token,
            };
            let angles = b.times(row, half);
            let (batch, place) = b.div_rem(token, x.length);
            b.repeat(x.heads, |head| {
                let start = b.offset(&[batch, head, place], &x.steps[..3]);
                b.repeat(half, |pair| {
                    let cosine = b.load(kernel.buffers[1], dtype, b.add(angles, pair));
                    let sine = b.load(kernel.buffers[2], dtype, b.add(angles, pair));
                    let first = b.add(start, b.times(pair, step));
                    let second = b.plus(first, distance);
                    let (real, imaginary) = (b.load(x_buffer, dtype, first), b.load(x_buffer, dtype, second));
                    let rotated = b.sub(b.mul(cosine, real), b.mul(sine, imaginary));
                    b.store(rotated, y_buffer, dtype, first);
                    let rotated = b.add(b.mul(sine, real), b.mul(cosine, imaginary));
                    b.store(rotated, y_buffer, dtype, second);
                });
                b.for_each(b.index(2 * half), b.index(x.size), 1, |i| {
                    let at = b.add(start, i);
                    b.store(b.load(x_buffer, dtype, at), y_buffer, dtype, at);
                });
            });
        });
    });
    Ok(())
}
