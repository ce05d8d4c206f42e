//! Convolution of 3×3 windows by Winograd's algorithm F(2×2, 3×3), in `f32`: 16 products instead of 36 for four pixels and a channel.
//!
//! The result consists of squares of 2×2 pixels, each of which depends on a patch of 4×4 pixels `d` of the image. With the transformed
//! weights `U = G g Gᵀ` ([`Expression::Winograd`]), a square is `Aᵀ [U ⊙ (Bᵀ d B)] A`: for each of the 16 positions of a patch, patches and
//! weights are multiplied as matrices. The transforms only add and subtract, so errors are those of a direct convolution.
//!
//! A block of squares is computed at once. Its transformed patches and products are small enough for the L2 cache. Channels in excess are
//! computed in parts.
//!
//! An infinite element makes squares NaN, because the transforms subtract elements of a patch.

use super::{
    Geometry, Kernel,
    kernel::{Prefetch, Term, accumulate, either},
};
use crate::{
    cpu::{
        epilogue_operand::OperandAccess,
        pack::{Packing, Source},
        tile_order::TileOrder,
    },
    emit::{Builder, Signature, V},
    epilogue::FusedEpilogue,
    graph::Id,
    layout::Blocked,
    lowering::Lowering,
};
use divi_runtime::prepare::Expression;

/// Positions of a transformed patch.
const POSITIONS: i64 = 16;
/// Fewest squares of an image: the time of fewer ones is that of reading the weights, which take 16/9 of their usual size.
const FEWEST_SQUARES: i64 = 16;
/// Bytes of the transformed patches of a block, and of its products: they are on the stack, and fit into the L2 cache.
const BLOCK_BYTES: i64 = 256 * 1024;
/// Most channels of a part: the weights of a position and a panel then fit into the L1 cache.
const MOST_CHANNELS: i64 = 64;

/// Returns true if a convolution in `f32` with constant weights is computed by this kernel.
pub(super) fn applies(geometry: &Geometry, lanes: i64) -> bool {
    let Geometry { groups, channels, filters, kernel, strides, dilations, output, .. } = *geometry;
    let (down, across) = squares(output);
    (kernel, strides, dilations, groups) == ((3, 3), (1, 1), (1, 1), 1)
        && channels % lanes == 0
        && filters >= 2 * lanes
        && down * across >= FEWEST_SQUARES
}

/// Returns the number of squares of a result, vertically and horizontally.
fn squares(output: (i64, i64)) -> (i64, i64) {
    ((output.0 + 1) / 2, (output.1 + 1) / 2)
}

/// Returns the size of a result that consists of whole squares.
pub(super) fn padded(output: (i64, i64)) -> (i64, i64) {
    let (down, across) = squares(output);
    (2 * down, 2 * across)
}

/// Kernel of a convolution by Winograd's algorithm.
pub(super) struct WinogradConv<'a> {
    geometry: &'a Geometry,
    source: &'a Blocked,
    target: &'a Blocked,
    fused: &'a FusedEpilogue,
    accesses: &'a [OperandAccess],
    block: Block,
}

/// Squares that are computed at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Block {
    /// Vectors of filters, which form a panel of weights.
    vectors: i64,
    /// Squares of a register tile.
    rows: i64,
    /// Register tiles of a block.
    tiles: i64,
    /// Blocks of an image, the last of which may overlap the one before it.
    count: i64,
    /// Channels of a part of the channels, the last of which may be smaller.
    channels: i64,
}

impl Block {
    /// Selects the block that takes the least time on a device with this number of threads.
    fn of(geometry: &Geometry, lanes: i64, registers: usize, threads: i64) -> Self {
        let filters = (geometry.filters + lanes - 1) / lanes;
        let parts = (geometry.channels + MOST_CHANNELS - 1) / MOST_CHANNELS;
        let channels = (geometry.channels / lanes + parts - 1) / parts * lanes;
        let (down, across) = squares(geometry.output);
        let all = down * across;
        // Vectors of a panel, and the most squares of a register tile.
        let tiles: &[_] = if registers >= 32 { &[(4, 6), (3, 9), (2, 12)] } else { &[(2, 6), (1, 12)] };
        let candidates = tiles.iter().flat_map(|&(vectors, most_rows)| {
            let most = (BLOCK_BYTES / (POSITIONS * 4 * channels.max(vectors * lanes))).max(most_rows);
            (most_rows / 2..=most_rows).flat_map(move |rows| {
                let block = move |tiles| {
                    let count = (all + rows * tiles - 1) / (rows * tiles);
                    Self { vectors, rows, tiles, count, channels }
                };
                (1..=most / rows).map(block).filter(move |it| it.rows * it.tiles < all + it.rows)
            })
        });
        let cost = |block: &Self| {
            let &Self { vectors, rows, tiles, count, .. } = block;
            let panels = (filters + vectors - 1) / vectors;
            // Operations of a tile; its loads, and a share of the transform of its patches; loads of weights from a slower cache.
            let tile = 12 * rows * filters + panels * (3 * (rows + vectors) + 4 * rows);
            let time = count * (tiles * tile + 36 * filters);
            let positions = geometry.batch * panels * count;
            let rounds = (positions + threads - 1) / threads;
            time as f64 * (rounds * threads) as f64 / positions as f64
        };
        candidates.min_by(|a, b| cost(a).total_cmp(&cost(b))).expect("there is a tile")
    }

    fn squares(&self) -> i64 {
        self.rows * self.tiles
    }
}

impl<'a> WinogradConv<'a> {
    pub(super) fn new(
        cx: &Lowering<'_>,
        geometry: &'a Geometry,
        (source, target): (&'a Blocked, &'a Blocked),
        fused: &'a FusedEpilogue,
        accesses: &'a [OperandAccess],
    ) -> Self {
        let block = Block::of(geometry, target.lanes, cx.registers(), cx.threads());
        Self { geometry, source, target, fused, accesses, block }
    }

    fn panels(&self) -> i64 {
        (self.target.blocks() + self.block.vectors - 1) / self.block.vectors
    }

    /// Returns the number of filters, padded to whole vectors.
    fn filters(&self) -> i64 {
        self.target.blocks() * self.target.lanes
    }

    /// Returns the number of vectors of the last panel.
    fn last_vectors(&self) -> i64 {
        self.target.blocks() - (self.panels() - 1) * self.block.vectors
    }

    /// Returns the number of parts of the channels.
    fn parts(&self) -> i64 {
        (self.geometry.channels + self.block.channels - 1) / self.block.channels
    }

    /// Returns the number of channels of the last part.
    fn last_channels(&self) -> i64 {
        self.geometry.channels - (self.parts() - 1) * self.block.channels
    }

    /// Returns true if all blocks of an image are computed for one panel before the next: if the patches of a block do not exist at the
    /// same time, they are transformed for each panel anyway.
    fn panels_are_outermost(&self) -> bool {
        self.parts() > 1
    }

    /// Packs weights as `[parts of the channels][panels][positions][channels][filters of a panel]`.
    fn packing(&self) -> Packing {
        let Geometry { filters, channels, .. } = *self.geometry;
        let (lanes, block) = (self.target.lanes, &self.block);
        let mut packing = Packing::of(&[filters, channels, 4, 4]);
        let (width, last_width) = (block.vectors * lanes, self.last_vectors() * lanes);
        for part in 0..self.parts() {
            let is_last = part + 1 == self.parts();
            let count = if is_last { self.last_channels() } else { block.channels };
            let whole = self.panels() - i64::from(last_width < width);
            for (first, panels, width) in [(0, whole, width), (whole * width, self.panels() - whole, last_width)] {
                let loops = [(0, panels, width), (2, 4, 1), (3, 4, 1), (1, count, 1), (0, width, 1)];
                packing.add(&[first, part * block.channels, 0, 0], &loops);
            }
        }
        packing
    }
}

impl Kernel for WinogradConv<'_> {
    fn pack(&self, cx: &mut Lowering<'_>, weights: Source) -> Id {
        let Source::Constant(source) = weights else { unreachable!("the algorithm is selected for constant weights") };
        self.packing().apply(cx, Source::Constant(Expression::Winograd { source: Box::new(source) }))
    }

    fn extent(&self) -> i64 {
        self.geometry.batch * self.panels() * self.block.count
    }

    fn grain(&self) -> i64 {
        /// Minimal number of multiplications per thread.
        const WORK: i64 = 200_000;
        let width = self.block.vectors * self.target.lanes;
        (WORK / (POSITIONS * self.block.squares() * self.geometry.channels * width)).max(1)
    }

    fn is_by_pixels(&self) -> bool {
        !self.panels_are_outermost()
    }

    fn emit(&self, b: &Builder, signature: &Signature<'_>) {
        let block = &self.block;
        let order =
            TileOrder { panels: self.panels(), tiles: block.count, panels_outermost: self.panels_are_outermost() };
        let (down, across) = squares(self.geometry.output);
        let patches = b.alloca(POSITIONS * block.squares() * block.channels, b.f32());
        let products = b.alloca(POSITIONS * block.squares() * block.vectors * self.target.lanes, b.f32());
        b.for_each(signature.begin, signature.end, 1, |number| {
            let (image, panel, tile) = order.split(b, number);
            let last = (down * across - block.squares()).max(0);
            let first = b.min(b.times(tile, block.squares()), b.index(last), false);
            let is_new = match self.parts() {
                1 => Some(b.or(b.equal(panel, b.index(0)), b.equal(number, signature.begin))),
                _ => None,
            };
            b.for_each(b.index(0), b.index(self.parts()), 1, |part| {
                either(b, part, self.parts(), block.channels, self.last_channels(), |channels| {
                    let transform = || self.transform(b, signature, patches, (image, first), part, channels);
                    match is_new {
                        Some(is_new) => b.if_then(is_new, transform),
                        None => transform(),
                    }
                    either(b, panel, self.panels(), block.vectors, self.last_vectors(), |vectors| {
                        self.multiply(b, [patches, signature.buffers[1], products], panel, part, channels, vectors);
                    });
                });
            });
            either(b, panel, self.panels(), block.vectors, self.last_vectors(), |vectors| {
                self.store(b, signature, products, (image, first), panel, vectors);
            });
        });
    }
}

impl WinogradConv<'_> {
    /// Emits `Bᵀ d B` of the patches of a block of squares, for a part of the channels: `[positions][squares][channels]`.
    fn transform(
        &self,
        b: &Builder,
        signature: &Signature<'_>,
        patches: V,
        (image, first): (V, V),
        part: V,
        channels: i64,
    ) {
        let (geometry, source, block, lanes) = (self.geometry, self.source, &self.block, self.source.lanes);
        let (down, across) = squares(geometry.output);
        let plane = b.add(b.times(image, source.blocks()), b.times(part, block.channels / lanes));
        let corner = source.origin() - geometry.padding.0 * source.row() - geometry.padding.1 * lanes;
        let start = b.plus(b.times(plane, source.plane()), corner);
        b.for_each(b.index(0), b.index(block.squares()), 1, |square| {
            let (row, column) = b.div_rem(b.min(b.add(first, square), b.index(down * across - 1), false), across);
            let start = b.add(start, b.add(b.times(row, 2 * source.row()), b.times(column, 2 * lanes)));
            b.for_each(b.index(0), b.index(channels / lanes), 1, |channel| {
                let start = b.add(start, b.times(channel, source.plane()));
                let load = |y: i64, x: i64| {
                    b.load_vector(signature.buffers[0], b.plus(start, y * source.row() + x * lanes), b.vector())
                };
                let combine = |[first, second, third, fourth]: [V; 4]| {
                    [b.sub(first, third), b.add(second, third), b.sub(third, second), b.sub(second, fourth)]
                };
                let columns: [[V; 4]; 4] = [0, 1, 2, 3].map(|x| combine([0, 1, 2, 3].map(|y| load(y, x))));
                let to = b.add(b.times(square, block.channels), b.times(channel, lanes));
                let rows = [0, 1, 2, 3].map(|y: usize| combine(columns.map(|column| column[y])));
                for (position, value) in (0..).zip(rows.into_iter().flatten()) {
                    b.store_vector(value, patches, b.plus(to, position * block.squares() * block.channels));
                }
            });
        });
    }

    /// Emits the products of a part of the channels, which are added to those of the parts before it: `[positions][squares][filters]`.
    fn multiply(
        &self,
        b: &Builder,
        [patches, weights, products]: [V; 3],
        panel: V,
        part: V,
        channels: i64,
        vectors: i64,
    ) {
        let (block, lanes) = (&self.block, self.target.lanes);
        let width = vectors * lanes;
        let of_part = b.times(part, POSITIONS * block.channels * self.filters());
        let panel_weights = b.add(of_part, b.times(panel, block.vectors * lanes * POSITIONS * channels));
        let is_first = b.equal(part, b.index(0));
        let offsets: Vec<i64> = (0..block.rows).map(|row| row * block.channels).collect();
        b.for_each(b.index(0), b.index(POSITIONS), 1, |position| {
            let weights_at = b.add(panel_weights, b.times(position, channels * width));
            b.repeat(block.tiles, |tile| {
                let square = b.add(b.times(position, block.squares()), b.times(tile, block.rows));
                let to = b.times(square, width);
                let place = |i: i64| b.plus(to, i * lanes);
                let zero = b.zero(b.vector());
                let sums = (0..block.rows * vectors).map(|i| match self.parts() {
                    1 => zero,
                    _ => b.select(is_first, zero, b.load_vector(products, place(i), b.vector())),
                });
                let terms = [Term { count: channels, stride: 1, unroll: 4 }];
                let from = b.times(square, block.channels);
                let sums = sums.collect();
                let prefetch = Prefetch::new(b, weights_at, channels * width, width, tile, block.tiles);
                let (buffers, prefetch) = ([patches, weights], Some(&prefetch));
                let sums = accumulate(b, buffers, &offsets, vectors as usize, &terms, from, weights_at, sums, prefetch);
                for (i, sum) in (0..).zip(sums) {
                    b.store_vector(sum, products, place(i));
                }
            });
        });
    }

    /// Emits `Aᵀ m A` of the products `m`, applies the epilogue and stores the pixels.
    fn store(
        &self,
        b: &Builder,
        signature: &Signature<'_>,
        products: V,
        (image, first): (V, V),
        panel: V,
        vectors: i64,
    ) {
        let (target, lanes, block) = (self.target, self.target.lanes, &self.block);
        let (height, width) = self.geometry.output;
        let (down, across) = squares((height, width));
        b.for_each(b.index(0), b.index(block.squares()), 1, |square| {
            let (row, column) = b.div_rem(b.min(b.add(first, square), b.index(down * across - 1), false), across);
            let (top, left) = (b.times(row, 2), b.times(column, 2));
            b.for_each(b.index(0), b.index(vectors), 1, |vector| {
                let filters = b.add(b.times(panel, block.vectors), vector);
                let from = b.times(b.add(b.times(square, vectors), vector), lanes);
                let load = |y: i64, x: i64| {
                    let position = (y * 4 + x) * block.squares() * vectors * lanes;
                    b.load_vector(products, b.plus(from, position), b.vector())
                };
                let combine = |[first, second, third, fourth]: [V; 4]| {
                    [b.add(b.add(first, second), third), b.sub(b.sub(second, third), fourth)]
                };
                let columns: [[V; 2]; 4] = [0, 1, 2, 3].map(|x| combine([0, 1, 2, 3].map(|y| load(y, x))));
                let bias = b.load_vector(signature.buffers[2], b.times(filters, lanes), b.vector());
                let plane = b.add(b.times(image, target.blocks()), filters);
                let rows = [0, 1].map(|y: usize| combine(columns.map(|column| column[y])));
                for (place, value) in (0..).zip(rows.into_iter().flatten()) {
                    let (i, j) = (place / 2, place % 2);
                    let (y, x) = (b.plus(top, i), b.plus(left, j));
                    let pixel = || self.store_pixel(b, signature, (image, plane, filters), (y, x), b.add(value, bias));
                    // The last squares of an odd size extend beyond the result.
                    let overruns = [(i == 1, height, y), (j == 1, width, x)].into_iter();
                    let overruns = overruns.filter(|&(is_second, size, _)| is_second && size % 2 == 1);
                    let inside = overruns.map(|(_, size, at)| b.less(at, b.index(size)));
                    match inside.reduce(|all, one| b.and(all, one)) {
                        None => pixel(),
                        Some(inside) => b.if_then(inside, pixel),
                    }
                }
            });
        });
    }

    fn store_pixel(
        &self,
        b: &Builder,
        signature: &Signature<'_>,
        (image, plane, filters): (V, V, V),
        (y, x): (V, V),
        sum: V,
    ) {
        let (operands, result) = signature.buffers[3..].split_at(self.accesses.len());
        let operands = self.accesses.iter().zip(operands);
        let values: Vec<V> = operands.map(|(access, &pointer)| access.load(b, pointer, image, filters, y, x)).collect();
        b.store_aligned(self.fused.emit(b, sum, &values), result[0], self.target.at(b, plane, y, x));
    }
}
