//! 2D convolutions as implicit matrix multiplications: filters by pixels, reduced over the terms of a window. Depthwise convolutions have
//! one thread per pixel.

use super::{
    finish::Finish,
    launch::launch,
    tile::{Plan, TileOperand, div_ceil, load_if, multiply, thread_origin},
};
use crate::{
    emit::{Builder, Signature, V},
    epilogue::{self, FusedEpilogue},
    error::Result,
    graph::{Id, Node, strides},
    lowering::{Distribution, Lowering, SimtKernelSpec},
    ops::{Axis, is_in_range, sliding},
};
use divi_onnx::DType;
use divi_runtime::{
    drivers::cuda::launch::{Convolution, Epilogue, LibraryOp},
    prepare::Expression,
};

/// A 2D convolution.
struct ConvKernel {
    batch: i64,
    groups: i64,
    /// Input channels per group.
    channels: i64,
    /// Filters per group.
    features: i64,
    axes: [Axis; 2],
    /// Shape of the result.
    result: Vec<i64>,
}

/// Lowers a convolution with its epilogue. Returns the number of nodes.
pub(super) fn lower(cx: &mut Lowering<'_>, nodes: &[Node], position: usize) -> Result<Option<usize>> {
    let node = &nodes[position];
    let Some(work) = ConvKernel::of(cx, node)? else { return Ok(None) };
    let (mut result, mut consumed) = (node.output()?, 1);
    let mut weights = node.input(1)?;
    let mut bias = node.optional(2);
    if let Some(next) = epilogue::following_batch_norm(cx, nodes, position, result)
        && let Some(filters) = cx.expression(weights).cloned()
        && bias.is_none_or(|bias| cx.expression(bias).is_some())
        && let Some((factor, shift)) =
            epilogue::batch_norm_affine(cx, next, bias.and_then(|bias| cx.expression(bias).cloned()))?
    {
        let shape = cx.shape(weights).to_vec();
        let inner = shape[1..].iter().product::<i64>() as u64;
        let scaled = Expression::Scale { source: Box::new(filters), by: Box::new(factor), inner };
        weights = cx.constant(DType::F32, &shape, scaled);
        bias = Some(cx.constant(DType::F32, &shape[..1], shift));
        (result, consumed) = (next.output()?, 2);
    }
    let accept = |cx: &Lowering<'_>, id| cx.dtype(id) == DType::F32;
    let (more, fused, result) = epilogue::fuse_epilogue(cx, nodes, position + consumed, result, &accept);
    let bias = bias.unwrap_or_else(|| {
        let count = work.features * work.groups;
        cx.constant(DType::F32, &[count], Expression::Zeros(count as u64))
    });
    work.emit(cx, [node.input(0)?, weights, bias], &fused, result);
    Ok(Some(consumed + more))
}

impl ConvKernel {
    fn of(cx: &Lowering<'_>, node: &Node) -> Result<Option<Self>> {
        let (input, weights, output) = (node.input(0)?, node.input(1)?, node.output()?);
        let result = cx.shape(output).to_vec();
        let (&[batch, _, ref image @ ..], &[filters, channels, ref kernel @ ..]) = (cx.shape(input), cx.shape(weights))
        else {
            return Ok(None);
        };
        if image.len() != 2 || cx.dtype(input) != DType::F32 || result.contains(&0) || channels == 0 {
            return Ok(None);
        }
        let axes = sliding(node, image, &result[2..], kernel)?;
        let groups = node.attributes().int_or("group", 1)?;
        let features = filters / groups.max(1);
        Ok(Some(Self { batch, groups, channels, features, axes: [axes[0], axes[1]], result }))
    }

    fn pixels(&self) -> i64 {
        self.result[2] * self.result[3]
    }

    /// Returns the number of terms of each sum.
    fn depth(&self) -> i64 {
        self.channels * self.axes[0].kernel * self.axes[1].kernel
    }

    fn emit(&self, cx: &mut Lowering<'_>, reads: [Id; 3], fused: &FusedEpilogue, result: Id) {
        let operands: Vec<Id> = reads.into_iter().chain(fused.operands.iter().copied()).collect();
        if self.channels == 1 && self.groups > 1 {
            return self.emit_depthwise(cx, &operands, fused, result);
        }
        let plan = Plan::of(self.batch * self.groups, self.features, self.pixels(), self.depth());
        let finish = Finish::of(cx, fused, &self.result);
        let blocks = plan.blocks(self.batch * self.groups, self.features, self.pixels());
        let count: i64 = self.result.iter().product();
        let steps = strides(&self.result);
        // Partial sums of a split reduction, then the result.
        let mut writes = vec![];
        if plan.splits > 1 {
            writes.push(cx.temporary(DType::F32, &[plan.splits, count]));
        }
        writes.push(result);
        let out = operands.len() + writes.len() - 1;
        let whole = |b: &Builder, kernel: &Signature<'_>| {
            self.tile(b, kernel, &plan, |b, place, sum| {
                let bias = b.load(kernel.buffers[2], DType::F32, place[1]);
                let value = finish.emit(b, &kernel.buffers[3..], place, b.add(sum, bias));
                b.store(value, kernel.buffers[out], DType::F32, b.offset(place, &steps));
            });
        };
        let part = |b: &Builder, kernel: &Signature<'_>| {
            let (split, _) = b.div_rem(b.block(), blocks / plan.splits);
            let start = b.times(split, count);
            self.tile(b, kernel, &plan, |b, place, sum| {
                b.store(sum, kernel.buffers[operands.len()], DType::F32, b.add(start, b.offset(place, &steps)));
            });
        };
        let each = |b: &Builder, kernel: &Signature<'_>, sum: &dyn Fn(V, &[V]) -> V| {
            b.for_each(kernel.begin, kernel.end, 1, |number| {
                let place = b.coordinates(number, &self.result);
                let value = finish.emit(b, &kernel.buffers[3..], &place, sum(number, &place));
                b.store(value, kernel.buffers[out], DType::F32, number);
            });
        };
        let sum_parts = |b: &Builder, kernel: &Signature<'_>| {
            each(b, kernel, &|number, place| {
                (0..plan.splits).fold(b.load(kernel.buffers[2], DType::F32, place[1]), |sum, split| {
                    let at = b.plus(number, split * count);
                    b.add(sum, b.load(kernel.buffers[operands.len()], DType::F32, at))
                })
            });
        };
        let finish_sums = |b: &Builder, kernel: &Signature<'_>| {
            each(b, kernel, &|number, _| b.load(kernel.buffers[out], DType::F32, number))
        };
        let (blocks_distribution, each_distribution) =
            (Distribution::Blocks(plan.tile.threads() as u32), Distribution::Iterations);
        let parts = [
            SimtKernelSpec { extent: blocks, distribution: blocks_distribution, body: &part },
            SimtKernelSpec { extent: count, distribution: each_distribution, body: &sum_parts },
        ];
        let whole = [SimtKernelSpec { extent: blocks, distribution: blocks_distribution, body: &whole }];
        let specs = if plan.splits > 1 { &parts[..] } else { &whole[..] };
        let rest = [SimtKernelSpec { extent: count, distribution: each_distribution, body: &finish_sums }];
        let library = self.library(cx, fused).map(|(op, is_all)| (op, if is_all { &[][..] } else { &rest[..] }));
        launch(cx, &operands, &writes, specs, library);
    }

    /// Emits a tile of the filters of one group by the pixels of one image; `take` gets the coordinates of each element, and its sum.
    fn tile(&self, b: &Builder, kernel: &Signature<'_>, plan: &Plan, take: impl Fn(&Builder, &[V], V)) {
        let tile = &plan.tile;
        let (rows, columns) = (div_ceil(self.features, tile.rows), div_ceil(self.pixels(), tile.columns));
        let place = b.coordinates(b.block(), &[plan.splits, self.batch, self.groups, columns, rows]);
        let [split, image, group, column, row] = place[..] else { unreachable!("five axes") };
        let (first_row, first_column) = (b.times(row, tile.rows), b.times(column, tile.columns));
        let depth = self.depth();
        let per_split = div_ceil(div_ceil(depth, plan.splits), tile.depth) * tile.depth;
        let from = b.times(split, per_split);
        let to = b.min(b.plus(from, per_split), b.index(depth), false);
        let [down, across] = self.axes;
        let filters = TileOperand {
            width: tile.rows,
            is_along_depth: true,
            prepare: &|place| {
                let filter = b.add(first_row, place);
                let exists = b.less(filter, b.index(self.features));
                vec![b.times(b.add(b.times(group, self.features), filter), depth), exists]
            },
            buffer: kernel.buffers[1],
            locate: &|state, term| (b.add(state[0], term), state[1]),
        };
        let plane = down.image * across.image;
        let windows = TileOperand {
            width: tile.columns,
            is_along_depth: false,
            prepare: &|place| {
                let pixel = b.add(first_column, place);
                let exists = b.less(pixel, b.index(self.pixels()));
                let (y, x) = b.div_rem(pixel, across.positions);
                let corner = |axis: &Axis, at| b.plus(b.times(at, axis.stride), -axis.before);
                let first = b.times(b.add(b.times(image, self.groups), group), self.channels * plane);
                vec![corner(&down, y), corner(&across, x), first, exists]
            },
            buffer: kernel.buffers[0],
            locate: &|state, term| {
                let place = b.coordinates(term, &[self.channels, down.kernel, across.kernel]);
                let y = b.add(state[0], b.times(place[1], down.dilation));
                let x = b.add(state[1], b.times(place[2], across.dilation));
                let mut exists = state[3];
                for (at, axis) in [(y, &down), (x, &across)] {
                    if !axis.is_inside() {
                        exists = b.and(exists, is_in_range(b, at, axis.image));
                    }
                }
                let offset = b.add(b.times(place[0], plane), b.add(b.times(y, across.image), x));
                (b.add(state[2], offset), exists)
            },
        };
        let sums = multiply(b, tile, &filters, &windows, from, to);
        let (own_row, own_column) = thread_origin(b, tile);
        for i in 0..tile.thread_rows {
            let filter = b.add(first_row, b.plus(own_row, i));
            let is_filter = b.less(filter, b.index(self.features));
            let channel = b.add(b.times(group, self.features), filter);
            for j in 0..tile.thread_columns {
                let pixel = b.add(first_column, b.plus(own_column, j));
                let exists = b.and(is_filter, b.less(pixel, b.index(self.pixels())));
                b.if_then(exists, || {
                    let (y, x) = b.div_rem(pixel, across.positions);
                    take(b, &[image, channel, y, x], sums[(i * tile.thread_columns + j) as usize]);
                });
            }
        }
    }

    /// Adds the call for a convolution with one input channel per group: one thread per pixel and filter.
    fn emit_depthwise(&self, cx: &mut Lowering<'_>, operands: &[Id], fused: &FusedEpilogue, result: Id) {
        let finish = Finish::of(cx, fused, &self.result);
        let [down, across] = self.axes;
        let plane = down.image * across.image;
        cx.call(self.result.iter().product(), 1, operands, &[result], |b, kernel| {
            b.for_each(kernel.begin, kernel.end, 1, |number| {
                let place = b.coordinates(number, &self.result);
                let (channel, _) = b.div_rem(place[1], self.features);
                let first = b.times(b.add(b.times(place[0], self.groups), channel), plane);
                let filter = b.times(place[1], down.kernel * across.kernel);
                let mut sum = b.load(kernel.buffers[2], DType::F32, place[1]);
                for ky in 0..down.kernel {
                    let y = down.place(b, place[2], b.index(ky));
                    for kx in 0..across.kernel {
                        let x = across.place(b, place[3], b.index(kx));
                        let at = b.add(first, b.add(b.times(y, across.image), x));
                        let checks = [(y, &down), (x, &across)].into_iter().filter(|(_, axis)| !axis.is_inside());
                        let exists = checks.map(|(at, axis)| is_in_range(b, at, axis.image)).reduce(|a, c| b.and(a, c));
                        let value = match exists {
                            Some(exists) => load_if(b, exists, kernel.buffers[0], at),
                            None => b.load(kernel.buffers[0], DType::F32, at),
                        };
                        let at = b.plus(filter, ky * across.kernel + kx);
                        sum = b.fma(value, b.load(kernel.buffers[1], DType::F32, at), sum);
                    }
                }
                let value = finish.emit(b, &kernel.buffers[3..], &place, sum);
                b.store(value, kernel.buffers[operands.len()], DType::F32, number);
            });
        });
    }

    /// Returns the equivalent library call, and true if it includes the epilogue. `None` if there is none.
    fn library(&self, cx: &Lowering<'_>, fused: &FusedEpilogue) -> Option<(LibraryOp, bool)> {
        let epilogue = fused.as_library_epilogue();
        let epilogue = epilogue.filter(|(residual, _)| residual.is_none_or(|id| cx.shape(id) == self.result));
        let (residual, is_relu) = epilogue.unwrap_or((None, false));
        let number = |value: i64| u32::try_from(value).ok();
        let [down, across] = self.axes;
        // Libraries pad symmetrically: the output size must follow from the padding at the top and at the left.
        let reaches = |axis: &Axis| (axis.positions - 1) * axis.stride + (axis.kernel - 1) * axis.dilation + 1;
        let is_even = |axis: &Axis| {
            let padded = axis.image + 2 * axis.before;
            let window = (axis.kernel - 1) * axis.dilation + 1;
            reaches(axis) <= padded && (padded - window) / axis.stride + 1 == axis.positions
        };
        if !is_even(&down) || !is_even(&across) || down.before < 0 || across.before < 0 {
            return None;
        }
        let image = self.channels * self.groups * down.image * across.image;
        let filters = self.features * self.groups;
        let output = filters * self.pixels();
        let pair = |f: fn(&Axis) -> i64| Some([number(f(&down))?, number(f(&across))?]);
        let four = |a, b, c, d| Some([number(a)?, number(b)?, number(c)?, number(d)?]);
        let op = LibraryOp::Convolution(Convolution {
            input: four(self.batch, self.channels * self.groups, down.image, across.image)?,
            filters: four(filters, self.channels, down.kernel, across.kernel)?,
            output: four(self.batch, filters, down.positions, across.positions)?,
            image_strides: [image as u64, output as u64, output as u64],
            padding: pair(|axis| axis.before)?,
            strides: pair(|axis| axis.stride)?,
            dilations: pair(|axis| axis.dilation)?,
            groups: number(self.groups)?,
            has_residual: residual.is_some(),
            epilogue: if is_relu { Epilogue::Relu } else { Epilogue::None },
        });
        Some((op, epilogue.is_some()))
    }
}
