//! Convolution of `bf16` images on tile registers (AMX), with sums in `f32`.
//!
//! Pixels are rows of the left tiles: as a pixel has as many channels as a row of a tile, windows are read from the blocked image as it is.
//! Images of few channels have narrow blocks instead, and a row of a tile holds several adjacent pixels.
//!
//! Weights are zero for pixels beyond a window and for channels of other groups in the same block, so an infinite element or NaN there makes
//! the result NaN.

use super::{Geometry, Kernel};
use crate::{
    cpu::{
        epilogue_operand::OperandAccess,
        pack::{Packing, Source},
        tile_block::{BLOCK, PanelPrefetch, SIDE, TileBlock},
        tile_order::TileOrder,
    },
    emit::{Builder, Compare, Signature, V},
    epilogue::FusedEpilogue,
    graph::{Id, Node, Value},
    layout::{Blocked, Halo},
    lowering::Lowering,
};
use divi_onnx::DType;

/// Most channels of an image with narrow blocks.
const FEW_CHANNELS: i64 = BLOCK / 2;
/// Bytes of weights that stay in the L2 cache while all of them are read for each block of pixels.
const SMALL_WEIGHTS: i64 = 1024 * 1024;

/// Returns true if this kernel computes a convolution with some weights.
pub(crate) fn has_tiled_kernel(node: &Node, weights: &Value) -> bool {
    let &[filters, channels, _, _] = &weights.shape[..] else { return false };
    match node.attributes().int_or("group", 1) {
        Ok(1) => true,
        Ok(groups) => {
            let is_whole = channels % BLOCK == 0 && filters % (groups * BLOCK) == 0;
            is_whole || filters % groups == 0 && is_diagonal(channels, filters / groups)
        }
        Err(_) => false,
    }
}

/// Returns true if each block of filters reads the channel block of the same number, which has several groups: weights are zero where
/// channel and filter have different groups.
fn is_diagonal(channels: i64, filters: i64) -> bool {
    channels == filters && (2..BLOCK).contains(&channels) && BLOCK % channels == 0
}

/// Returns the input of a convolution as its kernel reads it, and its layout.
pub(super) fn image(cx: &mut Lowering<'_>, geometry: &Geometry, input: Id) -> (Id, Blocked) {
    if let Some(lanes) = narrow_lanes(geometry).filter(|_| !cx.is_blocked(input)) {
        return cx.narrow_blocks(input, lanes, narrow_halo(geometry, lanes));
    }
    let (input, layout) = cx.blocked(input, geometry.halo());
    (cx.with_finite_lanes(input, &layout), layout)
}

/// Returns the channels per block of an image of few channels that a convolution reads; `None` if it has the usual blocks.
pub(super) fn narrow_lanes(geometry: &Geometry) -> Option<i64> {
    let is_narrow = geometry.groups == 1 && geometry.channels <= FEW_CHANNELS && geometry.dilations.1 == 1;
    is_narrow.then(|| (geometry.channels as u64).next_power_of_two().max(2) as i64)
}

/// Returns the halo of an image with narrow blocks: rows of tiles extend beyond the windows.
fn narrow_halo(geometry: &Geometry, lanes: i64) -> Halo {
    let halo = geometry.halo();
    let window = chunks(geometry, lanes) * BLOCK / lanes;
    let reach = (geometry.output.1 - 1) * geometry.strides.1 + window - geometry.padding.1 - geometry.image.1;
    Halo { right: halo.right.max(reach), ..halo }
}

/// Returns the number of rows of tiles that hold a row of a window.
fn chunks(geometry: &Geometry, lanes: i64) -> i64 {
    (geometry.kernel.1 * lanes + BLOCK - 1) / BLOCK
}

/// Kernel of a convolution of `bf16`.
pub(super) struct TiledConv<'a> {
    pub(super) geometry: &'a Geometry,
    pub(super) source: &'a Blocked,
    pub(super) target: &'a Blocked,
    pub(super) fused: &'a FusedEpilogue,
    pub(super) accesses: &'a [OperandAccess],
}

/// Tiles of pixels: equal runs, the last of which may overlap the one before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Pixels {
    /// Number of lines of pixels: rows of the result, or one for all of it.
    lines: i64,
    /// Pixels of a line.
    length: i64,
    /// Pixels of a tile.
    width: i64,
    /// Tiles of a line.
    tiles: i64,
    /// If a line has all rows: the pixels of a row of the input, of which those beyond the width of the result are computed in vain.
    pitch: Option<i64>,
}

impl Pixels {
    /// Splits each row of the result into tiles.
    fn by_rows((height, width): (i64, i64)) -> Self {
        let tiles = (width + SIDE - 1) / SIDE;
        Self { lines: height, length: width, width: (width + tiles - 1) / tiles, tiles, pitch: None }
    }

    /// Splits the whole result into pairs of tiles, with the pixels that the input has between rows.
    fn flat((height, width): (i64, i64), pitch: i64) -> Self {
        let length = (height - 1) * pitch + width;
        let tiles = if length <= SIDE { 1 } else { (length + BLOCK - 1) / BLOCK * 2 };
        Self { lines: 1, length, width: (length + tiles - 1) / tiles, tiles, pitch: Some(pitch) }
    }

    fn count(&self) -> i64 {
        self.lines * self.tiles
    }

    /// Returns the number of pairs of tiles.
    fn blocks(&self) -> i64 {
        (self.count() + 1) / 2
    }

    /// Returns a key that orders by time: that of a pair of tiles hardly depends on the number of their rows, and rounding up to pairs matters
    /// less than the pixels that are computed in vain.
    fn cost(&self) -> (i64, i64) {
        (self.blocks(), self.count() * self.width)
    }
}

impl Kernel for TiledConv<'_> {
    fn pack(&self, cx: &mut Lowering<'_>, weights: Source) -> Id {
        if !self.is_diagonal() {
            return self.packing().apply(cx, weights);
        }
        let Geometry { filters, channels, kernel: (rows, columns), .. } = *self.geometry;
        let weights = match weights {
            Source::Constant(weights) => cx.constant(DType::F32, &[filters, channels, rows, columns], weights),
            Source::Computed(weights) => cx.dense(weights),
        };
        let window = rows * columns;
        let packed = cx.temporary(DType::BF16, &[self.panels() * window * BLOCK * BLOCK]);
        let dtype = cx.dtype(weights);
        let pack = |cx: &mut Lowering<'_>| {
            cx.call(self.panels() * window, 8, &[weights], &[packed], |b, kernel| {
                b.for_each(kernel.begin, kernel.end, 1, |number| {
                    let (panel, place) = b.div_rem(number, window);
                    b.nest(&[2, SIDE, SIDE, 2], |at| {
                        let column = b.add(b.times(at[0], SIDE), at[2]);
                        let filter = b.add(b.times(panel, BLOCK), column);
                        let (own, channel) = b.div_rem(b.add(b.times(at[1], 2), at[3]), channels);
                        let (group, _) = b.div_rem(column, channels);
                        let is_filter = b.less(filter, b.index(filters));
                        let exists = b.and(is_filter, b.equal(own, group));
                        let from = b.add(b.times(b.add(b.times(filter, channels), channel), window), place);
                        let value = b.load(kernel.buffers[0], dtype, b.select(exists, from, b.index(0)));
                        let to = b
                            .offset(&[number, at[0], at[1], at[2], at[3]], &[BLOCK * BLOCK, BLOCK * SIDE, BLOCK, 2, 1]);
                        b.store(b.select(exists, value, b.float(0.0, b.f32())), kernel.buffers[1], DType::BF16, to);
                    });
                });
            });
        };
        cx.at_load_if_constant(weights, pack);
        packed
    }

    fn extent(&self) -> i64 {
        self.geometry.batch * self.panels() * self.pixels().blocks()
    }

    fn grain(&self) -> i64 {
        /// Minimal number of multiplications per thread.
        const WORK: i64 = 1_000_000;
        (WORK / (BLOCK * BLOCK * BLOCK * self.steps())).max(1)
    }

    fn is_by_pixels(&self) -> bool {
        !self.panels_are_outermost()
    }

    fn emit(&self, b: &Builder, signature: &Signature<'_>) {
        let pixels = self.pixels();
        let order =
            TileOrder { panels: self.panels(), tiles: pixels.blocks(), panels_outermost: self.panels_are_outermost() };
        let block = TileBlock::new(pixels.width, if pixels.count() > 1 { pixels.width } else { 0 });
        let scratch = b.alloca(BLOCK * BLOCK, b.f32());
        b.configure_tiles(block.configuration(b));
        b.for_each(signature.begin, signature.end, 1, |number| {
            let (image, panel, pair) = order.split(b, number);
            let tiles: Vec<_> = (0..pixels.count().min(2)).map(|i| self.tile(b, &pixels, pair, i)).collect();
            self.multiply(b, signature, &block, image, (panel, pair), &tiles);
            block.store(b, scratch, b.index(0), BLOCK);
            for (i, tile) in (0..).zip(&tiles) {
                b.repeat(pixels.width, |pixel| {
                    let at = b.plus(b.times(pixel, BLOCK), i * SIDE * BLOCK);
                    self.store(
                        b,
                        signature,
                        &pixels,
                        (image, panel),
                        tile,
                        pixel,
                        b.load_vector(scratch, at, b.vector()),
                    );
                });
            }
        });
        b.release_tiles();
    }
}

impl TiledConv<'_> {
    fn pixels(&self) -> Pixels {
        let by_rows = Pixels::by_rows(self.geometry.output);
        let flat = Pixels::flat(self.geometry.output, self.source.row() / self.source.lanes);
        if self.geometry.strides == (1, 1) && flat.cost() <= by_rows.cost() { flat } else { by_rows }
    }

    fn panels(&self) -> i64 {
        self.target.blocks()
    }

    fn is_diagonal(&self) -> bool {
        let Geometry { groups, channels, filters, .. } = *self.geometry;
        groups > 1 && is_diagonal(channels, filters / groups)
    }

    /// Returns the number of channel blocks that a block of filters reads.
    fn channel_blocks(&self) -> i64 {
        match self.geometry.groups {
            1 => self.source.blocks(),
            _ => (self.geometry.channels / BLOCK).max(1),
        }
    }

    /// Returns the number of steps over the inner dimension.
    fn steps(&self) -> i64 {
        self.channel_blocks() * self.geometry.kernel.0 * chunks(self.geometry, self.source.lanes)
    }

    fn panels_are_outermost(&self) -> bool {
        self.panels() * self.steps() * BLOCK * BLOCK * 2 > SMALL_WEIGHTS
    }

    /// Packs weights as `[panels][channel blocks][kernel rows][chunks of a row][2 tiles][pairs of the inner dimension][filters of a
    /// tile][2]`.
    fn packing(&self) -> Packing {
        let Geometry { filters, channels, kernel: (rows, columns), .. } = *self.geometry;
        let lanes = self.source.lanes;
        let chunks = chunks(self.geometry, lanes);
        let mut packing = Packing::of_type(DType::BF16, &[filters, channels, rows, columns]);
        let outer = [(0, self.panels(), BLOCK), (1, self.channel_blocks(), BLOCK), (2, rows, 1)];
        // Adjacent pixels of a row of a tile, then pairs of channels.
        let pixels = BLOCK / lanes;
        let inner = [(3, chunks, pixels), (0, 2, SIDE), (3, pixels, 1), (1, lanes / 2, 2), (0, SIDE, 1), (1, 2, 1)];
        packing.add(&[0; 4], &[&outer[..], &inner].concat());
        packing
    }

    /// Returns the position of a tile of a pair.
    fn tile(&self, b: &Builder, pixels: &Pixels, pair: V, i: i64) -> TilePosition {
        // If their number is odd, the last tile is computed twice.
        let number = b.min(b.plus(b.times(pair, 2), i), b.index(pixels.count() - 1), false);
        let (line, tile) = b.div_rem(number, pixels.tiles);
        let first = b.min(b.times(tile, pixels.width), b.index(pixels.length - pixels.width), false);
        TilePosition { line, first }
    }

    /// Computes a block of sums.
    fn multiply(
        &self,
        b: &Builder,
        signature: &Signature<'_>,
        block: &TileBlock,
        image: V,
        (panel, pair): (V, V),
        tiles: &[TilePosition],
    ) {
        let (geometry, source) = (self.geometry, self.source);
        let (blocks, chunks) = (self.channel_blocks(), chunks(geometry, source.lanes));
        let first_plane = match geometry.groups {
            1 => b.times(image, blocks),
            _ if self.is_diagonal() => b.add(b.times(image, self.panels()), panel),
            groups => {
                let (group, _) = b.div_rem(panel, self.panels() / groups);
                b.times(b.add(b.times(image, groups), group), blocks)
            }
        };
        let corner = source.origin() - geometry.padding.0 * source.row() - geometry.padding.1 * source.lanes;
        let plane = b.plus(b.times(first_plane, source.plane()), corner);
        let pixel = source.lanes * geometry.strides.1;
        let starts: Vec<_> = tiles
            .iter()
            .map(|tile| {
                let line = b.times(tile.line, source.row() * geometry.strides.0);
                b.add(plane, b.add(line, b.times(tile.first, pixel)))
            })
            .collect();
        let weights = b.times(panel, self.steps() * BLOCK * BLOCK);
        let chunk = if source.lanes == BLOCK { BLOCK * geometry.dilations.1 } else { BLOCK };
        let prefetch = self.panels_are_outermost().then(|| {
            let is_last = b.equal(panel, b.index(self.panels() - 1));
            let pairs = self.pixels().blocks();
            PanelPrefetch::new(b, signature.buffers[1], weights, is_last, self.steps(), pair, pairs)
        });
        block.clear(b);
        b.for_each(b.index(0), b.index(blocks), 1, |channels| {
            b.for_each(b.index(0), b.index(geometry.kernel.0), 1, |row| {
                let step = b.times(b.add(b.times(channels, geometry.kernel.0), row), chunks);
                prefetch.iter().flatten().for_each(|prefetch| prefetch.emit(b, step, chunks));
                let packed = b.add(weights, b.times(step, BLOCK * BLOCK));
                let rows = b.times(row, source.row() * geometry.dilations.0);
                let offset = b.add(b.times(channels, source.plane()), rows);
                for i in 0..chunks {
                    let starts = [0, 1].map(|tile| {
                        let start = starts[tile.min(starts.len() - 1)];
                        b.plus(b.add(start, offset), i * chunk)
                    });
                    let packed = b.plus(packed, i * BLOCK * BLOCK);
                    block.add(b, signature.buffers[0], starts, pixel, signature.buffers[1], packed);
                }
            });
        });
    }

    /// Applies the epilogue to the sums of a pixel of a tile and stores the result.
    #[allow(clippy::too_many_arguments)]
    fn store(
        &self,
        b: &Builder,
        signature: &Signature<'_>,
        pixels: &Pixels,
        (image, panel): (V, V),
        tile: &TilePosition,
        pixel: V,
        sums: V,
    ) {
        let at = b.add(tile.first, pixel);
        let Some(pitch) = pixels.pitch else { return self.store_at(b, signature, image, panel, (tile.line, at), sums) };
        if pitch == self.geometry.output.1
            && self.target.halo.is_empty()
            && self.accesses.iter().all(OperandAccess::is_flat)
        {
            return self.store_at(b, signature, image, panel, (b.index(0), at), sums);
        }
        let (y, x) = b.div_rem(at, pitch);
        let is_inside = b.compare(Compare::Less, x, b.index(self.geometry.output.1), true);
        b.if_then(is_inside, || self.store_at(b, signature, image, panel, (y, x), sums));
    }

    fn store_at(&self, b: &Builder, signature: &Signature<'_>, image: V, panel: V, (y, x): (V, V), sums: V) {
        let operands = &signature.buffers[3..3 + self.accesses.len()];
        let result = signature.buffers[3 + self.accesses.len()];
        let bias = b.load_vector(signature.buffers[2], b.times(panel, BLOCK), b.vector());
        let values = self.accesses.iter().zip(operands);
        let values: Vec<_> = values.map(|(access, &pointer)| access.load(b, pointer, image, panel, y, x)).collect();
        let value = self.fused.emit(b, b.add(sums, bias), &values);
        let plane = b.add(b.times(image, self.panels()), panel);
        b.store_aligned(value, result, self.target.at(b, plane, y, x));
    }
}

/// Position of a tile of pixels.
struct TilePosition {
    line: V,
    /// First pixel in the line.
    first: V,
}

#[cfg(test)]
mod tests {
    use super::Pixels;

    #[test]
    fn tiles_cover_all_pixels() {
        for (size, pitch) in [((7, 7), 9), ((1, 1), 1), ((14, 14), 16), ((56, 56), 58), ((3, 17), 17), ((1, 16), 16)] {
            for pixels in [Pixels::by_rows(size), Pixels::flat(size, pitch)] {
                assert!(pixels.width <= 16 && pixels.width * pixels.tiles >= pixels.length, "{pixels:?}");
                assert!(pixels.width * (pixels.tiles - 2) < pixels.length, "{pixels:?}");
            }
        }
        assert_eq!(Pixels::flat((14, 14), 14).width, 14);
    }
}
