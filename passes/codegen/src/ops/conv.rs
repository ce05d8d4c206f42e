//! Convolutions as plain loops, for all shapes and types.

mod deform;
mod quantized;
pub(super) use quantized::{centered, requantize};
mod state;
mod transpose;

use super::{
    Lower,
    blocks::{accumulator, grain},
    window::{SlidingWindow, sliding},
};
use crate::{
    error::{Result, unsupported},
    graph::{Id, Node, strides},
    lowering::Lowering,
};
use divi_onnx::Op;

pub(super) fn find(op: Op) -> Option<Lower> {
    Some(match op {
        Op::Conv => conv,
        Op::ConvTranspose => transpose::conv_transpose,
        Op::ConvInteger => quantized::conv_integer,
        Op::QLinearConv => quantized::qlinear_conv,
        Op::DeformConv => deform::deform_conv,
        Op::CausalConvWithState => state::causal_conv_with_state,
        _ => return None,
    })
}

fn conv(cx: &mut Lowering<'_>, node: &Node) -> Result<()> {
    convolve(cx, node, node.input(0)?, node.input(1)?, node.optional(2), node.output()?)
}

/// Adds the call of a convolution with the attributes of a node. The bias has the type of the result.
fn convolve(cx: &mut Lowering<'_>, node: &Node, x: Id, w: Id, bias: Option<Id>, y: Id) -> Result<()> {
    let (image, weights, result) = (cx.shape(x).to_vec(), cx.shape(w).to_vec(), cx.shape(y).to_vec());
    if image.len() < 3 || weights.len() != image.len() {
        return unsupported("convolutions need a batch, channels and at least one spatial axis");
    }
    let axes = sliding(node, &image[2..], &result[2..], &weights[2..])?;
    let groups = node.attributes().int_or("group", 1)?;
    let (depth, features) = (weights[1], result[1] / groups);
    let (x_steps, w_steps, y_steps) = (strides(&image), strides(&weights), strides(&result));
    let (dtype, result_dtype) = (cx.dtype(x), cx.dtype(y));
    let sum = accumulator(result_dtype);
    let reads: Vec<_> = [x, w].into_iter().chain(bias).collect();
    if result.contains(&0) {
        return Ok(());
    }
    let work = weights[1..].iter().product::<i64>() * result[result.len() - 1];
    let extent = SlidingWindow::extent(cx, &result);
    cx.call(extent, grain(work), &reads, &[y], |b, kernel| {
        let (x, w, y) = (kernel.buffers[0], kernel.buffers[1], kernel.buffers[reads.len()]);
        let slide = SlidingWindow {
            axes: &axes,
            lead: &result[..2],
            depth,
            accumulator: sum,
            start: &|place| match bias {
                Some(_) => b.load(kernel.buffers[2], result_dtype, place[1]),
                None => b.zero(b.computed(sum)),
            },
            plane: &|place, plane| {
                let group = if groups == 1 { b.index(0) } else { b.div_rem(place[1], features).0 };
                let channel = b.add(b.times(group, depth), plane);
                b.offset(&[place[0], channel], &x_steps)
            },
            factor: &|place, plane, element| {
                let mut at = vec![place[1], plane];
                at.extend(element);
                b.load(w, dtype, b.offset(&at, &w_steps))
            },
            combine: &|sum, offset, weight| b.accumulate(sum, b.mul(b.load(x, dtype, offset), weight)),
            finish: &|place, value| b.store(value, y, result_dtype, b.offset(place, &y_steps)),
        };
        slide.emit(b, kernel.begin, kernel.end);
    });
    Ok(())
}

#[cfg(test)]
mod tests;
