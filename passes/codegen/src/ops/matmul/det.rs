//! Determinants by Gaussian elimination with partial pivoting.

use crate::{
    emit::Compare,
    error::{Result, unsupported},
    graph::Node,
    lowering::Lowering,
    ops::blocks::{accumulator, grain},
};

pub(super) fn det(cx: &mut Lowering<'_>, node: &Node) -> Result<()> {
    let (x, y) = (node.input(0)?, node.output()?);
    let &[.., size, _] = cx.shape(x) else { return unsupported("the operand must be a batch of square matrices") };
    let (count, dtype) = (cx.count(y), cx.dtype(x));
    let work = accumulator(dtype);
    let matrices = cx.temporary(work, &[count, size, size]);
    cx.call(count, grain(size * size * size), &[x], &[y, matrices], |b, kernel| {
        let (x, y, scratch) = (kernel.buffers[0], kernel.buffers[1], kernel.buffers[2]);
        let ty = b.computed(work);
        let (zero, end) = (b.index(0), b.index(size));
        b.for_each(kernel.begin, kernel.end, 1, |matrix| {
            let origin = b.times(matrix, size * size);
            b.for_each(zero, b.index(size * size), 1, |i| {
                let at = b.add(origin, i);
                b.store(b.load(x, dtype, at), scratch, work, at);
            });
            let at = |row, column| b.add(origin, b.add(b.times(row, size), column));
            let load = |row, column| b.load(scratch, work, at(row, column));
            let start = [b.number(1.0, ty)];
            let det = b.for_loop_carried(zero, end, 1, &start, |step, det| {
                // The pivot is the element of largest magnitude in the rest of the column.
                let start = [step, b.abs(load(step, step))];
                let found = b.for_loop_carried(b.plus(step, 1), end, 1, &start, |row, found| {
                    let size = b.abs(load(row, step));
                    let is_more = b.compare(Compare::Greater, size, found[1], false);
                    vec![b.select(is_more, row, found[0]), b.select(is_more, size, found[1])]
                });
                let is_other = b.compare(Compare::NotEqual, found[0], step, false);
                b.if_then(is_other, || {
                    b.for_each(step, end, 1, |column| {
                        let (here, there) = (load(step, column), load(found[0], column));
                        b.store(there, scratch, work, at(step, column));
                        b.store(here, scratch, work, at(found[0], column));
                    });
                });
                let pivot = load(step, step);
                // If the pivot is zero, so are all elements below it, and there is nothing to eliminate.
                let is_zero = b.equal(pivot, b.zero(ty));
                let divisor = b.select(is_zero, b.number(1.0, ty), pivot);
                b.for_each(b.plus(step, 1), end, 1, |row| {
                    let factor = b.div(load(row, step), divisor, false);
                    b.for_each(step, end, 1, |column| {
                        let value = b.sub(load(row, column), b.mul(factor, load(step, column)));
                        b.store(value, scratch, work, at(row, column));
                    });
                });
                let signed = b.select(is_other, b.neg(pivot), pivot);
                vec![b.mul(det[0], signed)]
            });
            b.store(det[0], y, dtype, matrix);
        });
    });
    Ok(())
}
