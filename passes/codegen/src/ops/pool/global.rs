//! Global pooling.

use super::{power, root};
use crate::{
    error::Result,
    graph::Node,
    lowering::Lowering,
    ops::blocks::{accumulator, grain},
};

#[derive(Clone, Copy)]
pub(super) enum Kind {
    Average,
    Max,
    Norm(i64),
}

pub(super) fn pool(cx: &mut Lowering<'_>, node: &Node, kind: Kind) -> Result<()> {
    let (x, y) = (node.input(0)?, node.output()?);
    let (rows, dtype) = (cx.count(y), cx.dtype(x));
    let length: i64 = cx.shape(x).iter().skip(2).product();
    cx.call(rows, grain(length), &[x], &[y], |b, kernel| {
        let ty = b.computed(accumulator(dtype));
        let start = match kind {
            Kind::Max => b.float(f64::NEG_INFINITY, ty),
            _ => b.zero(ty),
        };
        b.for_each(kernel.begin, kernel.end, 1, |row| {
            let origin = b.times(row, length);
            let value = b.fold_nest(&[length], &[start], |place, state| {
                let value = b.load(kernel.buffers[0], dtype, b.add(origin, place[0]));
                vec![match kind {
                    Kind::Average => b.accumulate(state[0], value),
                    Kind::Max => b.max(state[0], value, false),
                    Kind::Norm(p) => b.accumulate(state[0], power(b, value, p)),
                }]
            })[0];
            let value = match kind {
                Kind::Average => b.div(value, b.float(length as f64, ty), false),
                Kind::Max => value,
                Kind::Norm(p) => root(b, value, p),
            };
            b.store(value, kernel.buffers[1], dtype, row);
        });
    });
    Ok(())
}
