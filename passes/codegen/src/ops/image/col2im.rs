//! Col2Im: images from the columns of an im2col matrix.

use crate::{
    emit::{Compare, V},
    error::{Result, unsupported},
    graph::{Node, strides},
    lowering::Lowering,
    ops::{
        blocks::accumulator,
        elementwise::{check_numbers, convert, map},
    },
};
use divi_onnx::DType;

/// Lowers Col2Im: adds the elements of all columns that belong to the same pixel. Parallel over the channels of all images.
pub(super) fn col2im(cx: &mut Lowering<'_>, node: &Node) -> Result<()> {
    check_numbers(cx, node)?;
    let (input, output) = (node.input(0)?, node.output()?);
    let block = cx.known_ints(node.input(2)?, "the block's shape")?;
    let rank = block.len();
    let attributes = node.attributes();
    let list = |name, default: Vec<i64>| Ok(attributes.ints(name)?.map_or(default, <[i64]>::to_vec));
    let dilations: Vec<i64> = list("dilations", vec![1; rank])?;
    let steps: Vec<i64> = list("strides", vec![1; rank])?;
    let pads: Vec<i64> = list("pads", vec![0; 2 * rank])?;
    let image = cx.shape(output)[2..].to_vec();
    if [image.len(), dilations.len(), steps.len(), pads.len() / 2].iter().any(|&length| length != rank) {
        return unsupported("the block, dilations, strides and pads must have an element for each axis of the image");
    }
    let columns = (0..rank).map(|i| {
        (image[i] + pads[i] + pads[i + rank] - dilations[i] * (block[i] - 1) - 1).div_euclid(steps[i].max(1)) + 1
    });
    let columns: Vec<i64> = columns.map(|count| count.max(0)).collect();
    let (planes, pixels) = (cx.shape(output)[0] * cx.shape(output)[1], image.iter().product::<i64>());
    let (block_count, column_count) = (block.iter().product::<i64>(), columns.iter().product::<i64>());
    if planes * block_count * column_count != cx.count(input) {
        return unsupported("the number of columns does not match the shape of the image");
    }
    let dtype = cx.dtype(input);
    let wide = accumulator(dtype);
    let shape = cx.shape(output).to_vec();
    let sums = if wide == dtype { output } else { cx.temporary(wide, &shape) };
    cx.call(planes, 1, &[input], &[sums], |b, kernel| {
        b.for_each(kernel.begin, kernel.end, 1, |plane| {
            let (from, to) = (b.times(plane, block_count * column_count), b.times(plane, pixels));
            b.repeat(pixels, |i| b.store(b.zero(b.computed(wide)), kernel.buffers[1], wide, b.add(to, i)));
            b.nest(&block, |offset| {
                let row = b.add(from, b.times(b.offset(offset, &strides(&block)), column_count));
                b.nest(&columns, |column| {
                    let place: Vec<V> = (0..rank)
                        .map(|i| {
                            b.plus(b.add(b.times(column[i], steps[i]), b.times(offset[i], dilations[i])), -pads[i])
                        })
                        .collect();
                    let is_inside = place.iter().zip(&image).map(|(&at, &size)| {
                        // The unsigned comparison covers negative coordinates, too.
                        b.compare(Compare::Less, at, b.index(size), true)
                    });
                    let is_inside = is_inside.reduce(|x, y| b.and(x, y)).unwrap_or_else(|| b.integer(-1, b.i1()));
                    b.if_then(is_inside, || {
                        let at = b.add(to, b.offset(&place, &strides(&image)));
                        let value = b.load(kernel.buffers[0], dtype, b.add(row, b.offset(column, &strides(&columns))));
                        let sum = b.load(kernel.buffers[1], wide, at);
                        let sum = if wide == DType::Bool { b.or(sum, value) } else { b.add(sum, value) };
                        b.store(sum, kernel.buffers[1], wide, at);
                    });
                });
            });
        });
    });
    if sums != output {
        map(cx, &[sums], output, |b, values| convert(b, values[0], wide, dtype));
    }
    Ok(())
}
