//! Matrix multiplication: tiled, or with one warp per column if there are few rows.

use super::{
    finish::Finish,
    launch::launch,
    rows::across_warp,
    tile::{Plan, TileOperand, div_ceil, multiply, thread_origin},
};
use crate::{
    emit::{Builder, Signature, V},
    epilogue::{self, FusedEpilogue},
    error::Result,
    graph::{Id, Node, strides},
    lowering::{Distribution, Lowering, SimtKernelSpec},
};
use divi_onnx::{DType, Op};
use divi_runtime::drivers::cuda::launch::{Epilogue, LibraryOp, MatMul};

/// Maximal number of rows for one warp per column, which reads the column once for all rows.
const FEW: i64 = 4;
/// Threads of a warp.
const WARP: i64 = 32;
/// Warps per block.
const WARPS: i64 = 4;

/// `count` products of `rows x depth` and `depth x columns` matrices, multiplied by `alpha`.
#[derive(Clone, Debug)]
struct MatMulKernel {
    count: i64,
    rows: i64,
    columns: i64,
    depth: i64,
    /// Elements from one left matrix to the next; 0 if all products share one.
    left_stride: i64,
    /// Elements from one right matrix to the next; 0 if all products share one.
    right_stride: i64,
    left_is_transposed: bool,
    right_is_transposed: bool,
    alpha: f32,
}

/// Lowers a matrix multiplication with its epilogue. Returns the number of nodes.
pub(super) fn lower(cx: &mut Lowering<'_>, nodes: &[Node], position: usize) -> Result<Option<usize>> {
    let node = &nodes[position];
    let Some((matmul, bias)) = MatMulKernel::of(cx, node)? else { return Ok(None) };
    let accept = |cx: &Lowering<'_>, id| cx.dtype(id) == DType::F32;
    let (more, mut fused, result) = epilogue::fuse_epilogue(cx, nodes, position + 1, node.output()?, &accept);
    let mut bias = bias;
    let is_row = |id: Id| cx.count(id) == matmul.columns && cx.shape(id).last() == Some(&matmul.columns);
    if bias.is_none()
        && let Some((row, left)) = fused.split_bias(is_row)
    {
        (bias, fused) = (Some(row), left);
    }
    matmul.emit(cx, [node.input(0)?, node.input(1)?], bias, &fused, result);
    Ok(Some(1 + more))
}

impl MatMulKernel {
    /// Returns the parameters of a node, and the bias that is added to each row. `None` if there is no fast kernel.
    fn of(cx: &Lowering<'_>, node: &Node) -> Result<Option<(Self, Option<Id>)>> {
        let (left, right, output) = (node.input(0)?, node.input(1)?, node.output()?);
        if cx.dtype(left) != DType::F32 || cx.count(output) == 0 || cx.count(left) == 0 {
            return Ok(None);
        }
        let (a, b) = (cx.shape(left), cx.shape(right));
        if node.op == Op::Gemm {
            let attributes = node.attributes();
            let (alpha, beta) = (attributes.float("alpha")?.unwrap_or(1.0), attributes.float("beta")?.unwrap_or(1.0));
            let (left_is_transposed, right_is_transposed) =
                (attributes.flag("transA", false)?, attributes.flag("transB", false)?);
            let &[rows, columns] = cx.shape(output) else { return Ok(None) };
            let depth = a[usize::from(!left_is_transposed)];
            let bias = node.optional(2);
            let is_row = |id: Id| cx.count(id) == columns && cx.shape(id).last() == Some(&columns) && beta == 1.0;
            if bias.is_some_and(|id| !is_row(id)) {
                return Ok(None);
            }
            let matmul = Self {
                count: 1,
                rows,
                columns,
                depth,
                left_stride: 0,
                right_stride: 0,
                left_is_transposed,
                right_is_transposed,
                alpha,
            };
            return Ok(Some((matmul, bias)));
        }
        let ([outer @ .., rows, depth], [right_outer @ .., _, columns]) = (a, b) else { return Ok(None) };
        let (rows, depth, columns) = (*rows, *depth, *columns);
        let count = |sizes: &[i64]| sizes.iter().product::<i64>();
        let matmul = |count, rows, left_stride, right_stride| Self {
            count,
            rows,
            columns,
            depth,
            left_stride,
            right_stride,
            left_is_transposed: false,
            right_is_transposed: false,
            alpha: 1.0,
        };
        if count(right_outer) == 1 && right_outer.len() <= outer.len() {
            // All rows are multiplied with the same matrix, so the batch is folded into the rows.
            return Ok(Some((matmul(1, rows * count(outer), 0, 0), None)));
        }
        let strip = |sizes: &[i64]| sizes.iter().copied().skip_while(|&size| size == 1).collect::<Vec<_>>();
        let (left_outer, right_outer) = (strip(outer), strip(right_outer));
        if left_outer != right_outer && !left_outer.is_empty() {
            return Ok(None);
        }
        let left_stride = if left_outer.is_empty() { 0 } else { rows * depth };
        Ok(Some((matmul(count(&right_outer), rows, left_stride, depth * columns), None)))
    }

    fn emit(&self, cx: &mut Lowering<'_>, sides: [Id; 2], bias: Option<Id>, fused: &FusedEpilogue, result: Id) {
        let operands: Vec<Id> = sides.into_iter().chain(bias).chain(fused.operands.iter().copied()).collect();
        let shape = cx.shape(result).to_vec();
        let finish = Finish::of(cx, fused, &shape);
        let is_by_column =
            self.rows <= FEW && !self.left_is_transposed && self.right_is_transposed && self.depth % 4 == 0;
        let plan = match is_by_column {
            true => Plan::of(1, 1, 1, 1),
            false => Plan::of(self.count, self.rows, self.columns, self.depth),
        };
        let count = self.count * self.rows * self.columns;
        // Partial sums of a split reduction, then the result.
        let mut writes = vec![];
        if plan.splits > 1 {
            writes.push(cx.temporary(DType::F32, &[plan.splits, count]));
        }
        writes.push(result);
        let out = operands.len() + writes.len() - 1;
        let blocks = plan.blocks(self.count, self.rows, self.columns);
        // Emits the epilogue of a sum, whose index in the result is `number`, and stores the result.
        let done = |b: &Builder, kernel: &Signature<'_>, number: V, sum: V, is_biased: bool| {
            let place = b.coordinates(number, &shape);
            let mut value = sum;
            if !is_biased {
                if self.alpha != 1.0 {
                    value = b.mul(value, b.float(self.alpha.into(), b.f32()));
                }
                if bias.is_some() {
                    value = b.add(value, b.load(kernel.buffers[2], DType::F32, place[shape.len() - 1]));
                }
            }
            let value = finish.emit(b, &kernel.buffers[2 + usize::from(bias.is_some())..], &place, value);
            b.store(value, kernel.buffers[out], DType::F32, number);
        };
        let by_columns = |b: &Builder, kernel: &Signature<'_>| {
            self.by_columns(b, kernel, |b, number, sum| done(b, kernel, number, sum, false));
        };
        let whole = |b: &Builder, kernel: &Signature<'_>| {
            self.tile(b, kernel, &plan, |b, number, sum| done(b, kernel, number, sum, false));
        };
        let part = |b: &Builder, kernel: &Signature<'_>| {
            let (split, _) = b.div_rem(b.block(), blocks / plan.splits);
            self.tile(b, kernel, &plan, |b, number, sum| {
                b.store(sum, kernel.buffers[operands.len()], DType::F32, b.add(b.times(split, count), number));
            });
        };
        let sum_parts = |b: &Builder, kernel: &Signature<'_>| {
            b.for_each(kernel.begin, kernel.end, 1, |number| {
                let parts = kernel.buffers[operands.len()];
                let terms = (0..plan.splits).map(|i| b.load(parts, DType::F32, b.plus(number, i * count)));
                let sum = terms.reduce(|sum, term| b.add(sum, term)).expect("sums have parts");
                done(b, kernel, number, sum, false);
            });
        };
        let finish_sums = |b: &Builder, kernel: &Signature<'_>| {
            b.for_each(kernel.begin, kernel.end, 1, |number| {
                done(b, kernel, number, b.load(kernel.buffers[out], DType::F32, number), true);
            });
        };
        let (in_tiles, each) = (Distribution::Blocks(plan.tile.threads() as u32), Distribution::Iterations);
        let columns = [SimtKernelSpec {
            extent: div_ceil(self.count * self.columns, WARPS),
            distribution: Distribution::Blocks((WARP * WARPS) as u32),
            body: &by_columns,
        }];
        let whole = [SimtKernelSpec { extent: blocks, distribution: in_tiles, body: &whole }];
        let parts = [
            SimtKernelSpec { extent: blocks, distribution: in_tiles, body: &part },
            SimtKernelSpec { extent: count, distribution: each, body: &sum_parts },
        ];
        let specs = match (is_by_column, plan.splits) {
            (true, _) => &columns[..],
            (false, 1) => &whole[..],
            (false, _) => &parts[..],
        };
        let rest = [SimtKernelSpec { extent: count, distribution: each, body: &finish_sums }];
        let library = self.library(fused, bias.is_some());
        let library = library.map(|(op, is_all)| (op, if is_all { &[][..] } else { &rest[..] }));
        launch(cx, &operands, &writes, specs, library);
    }

    /// Emits a tile; `take` gets the index of each element in the result, and its sum.
    fn tile(&self, b: &Builder, kernel: &Signature<'_>, plan: &Plan, take: impl Fn(&Builder, V, V)) {
        let tile = &plan.tile;
        let (rows, columns) = (div_ceil(self.rows, tile.rows), div_ceil(self.columns, tile.columns));
        let place = b.coordinates(b.block(), &[plan.splits, self.count, rows, columns]);
        let [split, product, row, column] = place[..] else { unreachable!("four axes") };
        let (first_row, first_column) = (b.times(row, tile.rows), b.times(column, tile.columns));
        let per_split = div_ceil(div_ceil(self.depth, plan.splits), tile.depth) * tile.depth;
        let from = b.times(split, per_split);
        let to = b.min(b.plus(from, per_split), b.index(self.depth), false);
        // Offset of the first term of a row or column, and the condition that it exists.
        let prepare = |first: V, size: i64, start: V, stride: i64| {
            move |place: V| {
                let at = b.add(first, place);
                vec![b.add(start, b.times(at, stride)), b.less(at, b.index(size))]
            }
        };
        let locate = |stride: i64| move |state: &[V], term: V| (b.add(state[0], b.times(term, stride)), state[1]);
        let (left_steps, right_steps) = (
            if self.left_is_transposed { (1, self.rows) } else { (self.depth, 1) },
            if self.right_is_transposed { (self.depth, 1) } else { (1, self.columns) },
        );
        let left_prepare = prepare(first_row, self.rows, b.times(product, self.left_stride), left_steps.0);
        let right_prepare = prepare(first_column, self.columns, b.times(product, self.right_stride), right_steps.0);
        let (locate_left, locate_right) = (locate(left_steps.1), locate(right_steps.1));
        let left = TileOperand {
            width: tile.rows,
            is_along_depth: !self.left_is_transposed,
            prepare: &left_prepare,
            buffer: kernel.buffers[0],
            locate: &locate_left,
        };
        let right = TileOperand {
            width: tile.columns,
            is_along_depth: self.right_is_transposed,
            prepare: &right_prepare,
            buffer: kernel.buffers[1],
            locate: &locate_right,
        };
        let sums = multiply(b, tile, &left, &right, from, to);
        let (own_row, own_column) = thread_origin(b, tile);
        let steps = strides(&[self.count, self.rows, self.columns]);
        for i in 0..tile.thread_rows {
            let row = b.add(first_row, b.plus(own_row, i));
            let is_row = b.less(row, b.index(self.rows));
            for j in 0..tile.thread_columns {
                let column = b.add(first_column, b.plus(own_column, j));
                let exists = b.and(is_row, b.less(column, b.index(self.columns)));
                b.if_then(exists, || {
                    let number = b.offset(&[product, row, column], &steps);
                    take(b, number, sums[(i * tile.thread_columns + j) as usize]);
                });
            }
        }
    }

    /// Emits the kernel with one warp per column. Each thread accumulates every 32nd group of four terms.
    fn by_columns(&self, b: &Builder, kernel: &Signature<'_>, take: impl Fn(&Builder, V, V)) {
        let (warp, lane) = b.div_rem(b.thread(), WARP);
        let number = b.add(b.times(b.block(), WARPS), warp);
        let (product, column) = b.div_rem(number, self.columns);
        let exists = b.less(number, b.index(self.count * self.columns));
        // The condition is uniform within a warp, so the shuffles involve all of its threads.
        b.if_then(exists, || {
            let left = b.times(product, self.left_stride);
            let right = b.add(b.times(product, self.right_stride), b.times(column, self.depth));
            let zeros = vec![b.float(0.0, b.f32()); self.rows as usize];
            let sums = b.for_loop_carried(b.times(lane, 4), b.index(self.depth), 4 * WARP, &zeros, |term, sums| {
                let weights = b.load_vector_aligned(kernel.buffers[1], b.add(right, term), 4);
                let add = |(row, &sum): (usize, &V)| {
                    let at = b.add(b.plus(left, row as i64 * self.depth), term);
                    let values = b.load_vector_aligned(kernel.buffers[0], at, 4);
                    (0..4).fold(sum, |sum, i| b.fma(b.element(values, i), b.element(weights, i), sum))
                };
                sums.iter().enumerate().map(add).collect()
            });
            let sums: Vec<_> = sums.into_iter().map(|sum| across_warp(b, sum, &|x, y| b.add(x, y))).collect();
            b.if_then(b.equal(lane, b.index(0)), || {
                for (row, &sum) in sums.iter().enumerate() {
                    let at = b.offset(
                        &[product, b.index(row as i64), column],
                        &strides(&[self.count, self.rows, self.columns]),
                    );
                    take(b, at, sum);
                }
            });
        });
    }

    /// Returns the equivalent library call, and true if it includes the epilogue. `None` if there is none.
    fn library(&self, fused: &FusedEpilogue, has_bias: bool) -> Option<(LibraryOp, bool)> {
        let epilogue = fused.as_library_epilogue().filter(|(residual, _)| residual.is_none());
        let is_relu = epilogue.is_some_and(|(_, is_relu)| is_relu);
        let number = |value: i64| u32::try_from(value).ok();
        let op = LibraryOp::MatMul(MatMul {
            count: number(self.count)?,
            left_stride: self.left_stride as u64,
            right_stride: self.right_stride as u64,
            output_stride: (self.rows * self.columns) as u64,
            rows: number(self.rows)?,
            columns: number(self.columns)?,
            depth: number(self.depth)?,
            left_is_transposed: self.left_is_transposed,
            right_is_transposed: self.right_is_transposed,
            alpha: self.alpha.to_bits(),
            has_bias,
            epilogue: if is_relu { Epilogue::Relu } else { Epilogue::None },
        });
        Some((op, epilogue.is_some()))
    }
}
