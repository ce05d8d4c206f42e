//! Concatenation of the channels of blocked images.

use crate::layout::Halo;
use crate::{error::Result, graph::Node, lowering::Lowering};
use divi_onnx::{DType, Op};

/// Lowers a concatenation whose operands are all blocked already.
pub(super) fn lower(cx: &mut Lowering<'_>, node: &Node) -> Result<Option<usize>> {
    let inputs: Vec<_> = node.inputs.iter().flatten().copied().collect();
    let result = node.output()?;
    if !is_of_channels(cx, node) || inputs.iter().any(|&id| !cx.is_blocked(id)) {
        return Ok(None);
    }
    let target = cx.make_blocked(result);
    let lanes = target.lanes;
    let mut first = 0;
    let mut copied = vec![];
    let inputs: Vec<_> = inputs.into_iter().map(|input| cx.blocked(input, Halo::NONE)).collect();
    for &(input, source) in &inputs {
        // An operand that occurs twice is copied rather than placed: a copy must not overlap its source.
        let occurs_once = inputs.iter().filter(|(other, _)| cx.share_bytes(input, *other)).count() == 1;
        if first % lanes != 0 || !occurs_once || !cx.place_blocked_subview(input, result, first / lanes) {
            copied.push((input, source, first));
        }
        first += source.channels;
    }
    for (input, source, start) in copied {
        if start % lanes == 0 {
            let (blocks, block) = (source.blocks(), start / lanes);
            cx.call(source.batch * blocks, 1, &[input], &[result], |b, kernel| {
                b.for_each(kernel.begin, kernel.end, 1, |plane| {
                    let (image, own) = b.div_rem(plane, blocks);
                    let other = b.add(b.times(image, target.blocks()), b.plus(own, block));
                    b.nest(&[target.height, target.width], |place| {
                        let pixel =
                            b.load_vector(kernel.buffers[0], source.at(b, plane, place[0], place[1]), b.vector());
                        let at = target.at(b, other, place[0], place[1]);
                        b.store_aligned(pixel, kernel.buffers[1], at);
                    });
                });
            });
            continue;
        }
        // Copy lane by lane. Operands that share a block are copied by separate calls, which must not run concurrently.
        cx.call(source.batch * source.height, 1, &[input], &[result], |b, kernel| {
            b.for_each(kernel.begin, kernel.end, 1, |number| {
                let (image, y) = b.div_rem(number, source.height);
                b.repeat(source.channels, |channel| {
                    let (from, from_lane) = b.div_rem(channel, lanes);
                    let (to, to_lane) = b.div_rem(b.plus(channel, start), lanes);
                    let from = b.add(b.times(image, source.blocks()), from);
                    let to = b.add(b.times(image, target.blocks()), to);
                    b.repeat(source.width, |x| {
                        let read = b.add(source.at(b, from, y, x), from_lane);
                        let write = b.add(target.at(b, to, y, x), to_lane);
                        let value = b.load(kernel.buffers[0], DType::F32, read);
                        b.store(value, kernel.buffers[1], DType::F32, write);
                    });
                });
            });
        });
    }
    Ok(Some(1))
}

/// Returns true if a node concatenates channels of images.
pub(super) fn is_of_channels(cx: &Lowering<'_>, node: &Node) -> bool {
    let axis = node.attributes().int_or("axis", 0);
    node.op == Op::Concat
        && node.result(0).is_some_and(|result| cx.shape(result).len() == 4)
        && matches!(axis, Ok(1 | -3))
}
