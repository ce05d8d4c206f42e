//! Permutations of axes.

use super::{GRAIN, Lower, Part, copy_part, raw};
use crate::{
    error::Result,
    graph::{Id, Node, strides},
    lowering::Lowering,
    ops::elementwise::collapse,
};
use divi_onnx::{DType, Op, node::normalize_axes};

/// Side of square tiles that are not transposed in registers.
const SIDE: i64 = 16;

pub(super) fn find(op: Op) -> Option<Lower> {
    Some(match op {
        Op::Transpose => transpose,
        Op::DepthToSpace => depth_to_space,
        Op::SpaceToDepth => space_to_depth,
        _ => return None,
    })
}

fn transpose(cx: &mut Lowering<'_>, node: &Node) -> Result<()> {
    let (input, output) = (node.input(0)?, node.output()?);
    let rank = cx.shape(input).len();
    let order = match node.attributes().ints("perm")? {
        Some(order) => normalize_axes(order, rank)?,
        None => (0..rank).rev().collect(),
    };
    let shape = cx.shape(input).to_vec();
    permute(cx, input, output, &shape, &order)
}

/// Lowers DepthToSpace: `N (b b C) H W` or `N (C b b) H W` to `N C (H b) (W b)`.
fn depth_to_space(cx: &mut Lowering<'_>, node: &Node) -> Result<()> {
    let (input, output) = (node.input(0)?, node.output()?);
    let attributes = node.attributes();
    let block = attributes.int_or("blocksize", 1)?;
    let &[n, c, h, w] = cx.shape(input) else { return crate::error::unsupported("the operand must have rank 4") };
    let depth = c / (block * block);
    if attributes.str_or("mode", "DCR")? == "CRD" {
        permute(cx, input, output, &[n, depth, block, block, h, w], &[0, 1, 4, 2, 5, 3])
    } else {
        permute(cx, input, output, &[n, block, block, depth, h, w], &[0, 3, 4, 1, 5, 2])
    }
}

/// Lowers SpaceToDepth: `N C (H b) (W b)` to `N (b b C) H W` or `N (C b b) H W`.
fn space_to_depth(cx: &mut Lowering<'_>, node: &Node) -> Result<()> {
    let (input, output) = (node.input(0)?, node.output()?);
    let attributes = node.attributes();
    let block = attributes.int_or("blocksize", 1)?;
    let &[n, c, h, w] = cx.shape(input) else { return crate::error::unsupported("the operand must have rank 4") };
    let order = if attributes.str_or("mode", "DCR")? == "CRD" { [0, 1, 3, 5, 2, 4] } else { [0, 3, 5, 1, 2, 4] };
    permute(cx, input, output, &[n, c, h / block, block, w / block, block], &order)
}

/// Permutes the axes of an operand, viewed with the given shape.
fn permute(cx: &mut Lowering<'_>, input: Id, output: Id, shape: &[i64], order: &[usize]) -> Result<()> {
    let from = strides(shape);
    let result: Vec<_> = order.iter().map(|&axis| shape[axis]).collect();
    let steps: Vec<_> = order.iter().map(|&axis| from[axis]).collect();
    let (result, walks) = collapse(&result, vec![steps]);
    let steps = &walks[0];
    // The axis along which the operand is contiguous.
    let dense = steps.iter().position(|&step| step == 1);
    let dtype = raw(cx.dtype(output))?;
    match dense {
        None | Some(0) if result.len() == 1 => {
            cx.alias(output, input);
            Ok(())
        }
        Some(dense) if dense + 1 < result.len() && result[dense] > 1 && dtype.bits() >= 8 && !cx.is_simt() => {
            transpose_tiles(cx, input, output, dtype, &result, steps, dense);
            Ok(())
        }
        _ => {
            let to = Part { id: output, start: 0, strides: strides(&result) };
            copy_part(cx, &result, Part { id: input, start: 0, strides: steps.clone() }, to)
        }
    }
}

/// Copies square tiles of the axis along which the operand is contiguous and the axis along which the result is, so that whole cache lines
/// are used on both sides.
fn transpose_tiles(
    cx: &mut Lowering<'_>,
    input: Id,
    output: Id,
    dtype: DType,
    shape: &[i64],
    steps: &[i64],
    dense: usize,
) {
    let last = shape.len() - 1;
    let to = strides(shape);
    // Tiles of 32-bit elements are transposed in registers.
    let has_registers = dtype == DType::U32;
    let side = if has_registers { cx.lanes() as i64 } else { SIDE };
    // The outer axes, with rows of tiles in place of the contiguous axis, are distributed over threads.
    let mut outer: Vec<i64> = shape[..last].to_vec();
    outer[dense] = (shape[dense] + side - 1) / side;
    let extent: i64 = outer.iter().product();
    let grain = GRAIN / (side * shape[last].max(1) * (dtype.bits() as i64 / 8));
    cx.call(extent, grain, &[input], &[output], |b, kernel| {
        let [source, target] = [kernel.buffers[0], kernel.buffers[1]];
        b.for_each(kernel.begin, kernel.end, 1, |number| {
            let mut place = b.coordinates(number, &outer);
            let first = b.times(place[dense], side);
            place[dense] = first;
            let (from_start, to_start) = (b.offset(&place, &steps[..last]), b.offset(&place, &to[..last]));
            let rest = |start, size: i64| b.min(b.index(side), b.sub(b.index(size), start), false);
            let rows = rest(first, shape[dense]);
            b.for_each(b.index(0), b.index(shape[last]), side, |start| {
                let columns = rest(start, shape[last]);
                let from_start = b.add(from_start, b.times(start, steps[last]));
                let to_start = b.add(to_start, start);
                let one_by_one = || {
                    b.for_each(b.index(0), rows, 1, |row| {
                        b.for_each(b.index(0), columns, 1, |column| {
                            let from = b.add(b.add(from_start, row), b.times(column, steps[last]));
                            let at = b.add(b.add(to_start, b.times(row, to[dense])), column);
                            b.store(b.load(source, dtype, from), target, dtype, at);
                        });
                    });
                    vec![]
                };
                if !has_registers {
                    one_by_one();
                    return;
                }
                let is_whole = b.and(b.equal(rows, b.index(side)), b.equal(columns, b.index(side)));
                let in_registers = || {
                    let column = |i| b.load_vector(source, b.plus(from_start, i * steps[last]), b.vector());
                    let columns = (0..side).map(column).collect();
                    for (row, values) in (0..).zip(b.transpose(columns)) {
                        let at = b.plus(to_start, row * to[dense]);
                        match shape[last] % side {
                            0 => b.store_aligned(values, target, at),
                            _ => b.store_vector(values, target, at),
                        }
                    }
                    vec![]
                };
                b.if_else(is_whole, in_registers, one_by_one);
            });
        });
    });
}
