//! Causal depthwise convolution of a sequence, with the end of the previous sequence as state.

use crate::{
    error::{Result, unsupported},
    graph::Node,
    lowering::Lowering,
    ops::blocks::{accumulator, grain},
};

pub(super) fn causal_conv_with_state(cx: &mut Lowering<'_>, node: &Node) -> Result<()> {
    let (x, w, y) = (node.input(0)?, node.input(1)?, node.output()?);
    let (input, size) = (cx.shape(x).to_vec(), cx.shape(w)[2]);
    let &[batch, channels, length] = &input[..] else { return unsupported("the operand must have rank 3") };
    let is_swish = match node.attributes().str_or("activation", "none")? {
        "none" => false,
        "silu" | "swish" => true,
        other => return unsupported(format!("attribute 'activation' is '{other}', must be none, silu or swish")),
    };
    let (bias, state) = (node.optional(2), node.optional(3));
    let dtype = cx.dtype(x);
    let ty = accumulator(dtype);
    let past = size - 1;
    let reads: Vec<_> = [x, w].into_iter().chain(bias).chain(state).collect();
    let present = node.result(1);
    let writes: Vec<_> = [y].into_iter().chain(present).collect();
    cx.call(batch * channels, grain(length * size), &reads, &writes, |b, kernel| {
        let (inputs, outputs) = kernel.buffers.split_at(reads.len());
        let zero = b.zero(b.computed(ty));
        b.for_each(kernel.begin, kernel.end, 1, |row| {
            let channel = b.div_rem(row, channels).1;
            let (x_row, w_row, state_row) = (b.times(row, length), b.times(channel, size), b.times(row, past));
            // Element of the concatenation of state and sequence.
            let element = |place| {
                let is_past = b.less(place, b.index(past));
                let before = || match state {
                    Some(_) => vec![b.load(inputs[reads.len() - 1], dtype, b.add(state_row, place))],
                    None => vec![zero],
                };
                let now = || vec![b.load(inputs[0], dtype, b.add(x_row, b.plus(place, -past)))];
                b.if_else(is_past, before, now)[0]
            };
            let start = if bias.is_some() { b.load(inputs[2], dtype, channel) } else { zero };
            b.repeat(length, |i| {
                let sum = b.fold_nest(&[size], &[start], |k, sum| {
                    let weight = b.load(inputs[1], dtype, b.add(w_row, k[0]));
                    vec![b.accumulate(sum[0], b.mul(weight, element(b.add(i, k[0]))))]
                })[0];
                let sum = if is_swish { b.mul(sum, b.sigmoid(sum)) } else { sum };
                b.store(sum, outputs[0], dtype, b.add(x_row, i));
            });
            if present.is_some() {
                b.repeat(past, |i| {
                    b.store(element(b.plus(i, length)), outputs[1], dtype, b.add(state_row, i));
                });
            }
        });
    });
    Ok(())
}
