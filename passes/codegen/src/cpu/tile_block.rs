//! Block of 32 x 32 sums in four tile registers: kernels on tile registers (AMX) add products of tiles of `bf16` to it.

use crate::emit::{Builder, TILE_COLUMNS, TileShape, V};
use divi_onnx::DType;

/// Rows of a tile, and columns of a tile of sums.
pub(super) const SIDE: i64 = 16;
/// Rows and columns of a block of sums, and elements of the inner dimension per step.
pub(super) const BLOCK: i64 = 2 * SIDE;

const _: () = assert!(BLOCK == TILE_COLUMNS as i64);

/// Tile registers: sums, by row and column of the block, then the left and the right operand.
const SUMS: [[u8; 2]; 2] = [[0, 1], [2, 3]];
const LEFT: [u8; 2] = [4, 5];
const RIGHT: [u8; 2] = [6, 7];

/// Block of sums with one or two tiles of rows.
#[derive(Clone, Copy, Debug)]
pub(super) struct TileBlock {
    /// Rows of the first and of the second tile; the second has none if there is only one.
    rows: [i64; 2],
}

impl TileBlock {
    pub(super) fn new(first: i64, second: i64) -> Self {
        Self { rows: [first, second] }
    }

    /// Returns the block of adjacent rows, at most [`BLOCK`].
    pub(super) fn of_rows(rows: i64) -> Self {
        Self::new(rows.min(SIDE), (rows - SIDE).max(0))
    }

    /// Returns the number of tiles of rows.
    fn count(&self) -> usize {
        if self.rows[1] > 0 { 2 } else { 1 }
    }

    /// Returns the configuration of the tile registers.
    pub(super) fn configuration(&self, b: &Builder) -> V {
        let mut shapes = [TileShape { rows: SIDE as u8, bytes: 64 }; 8];
        for (tile, &rows) in self.rows.iter().enumerate() {
            // A tile without rows is not used, and an empty configuration would be a fault.
            let rows = if rows > 0 { rows } else { self.rows[0] };
            for register in [SUMS[tile][0], SUMS[tile][1], LEFT[tile]] {
                shapes[register as usize].rows = rows as u8;
            }
        }
        b.tile_configuration(&shapes)
    }

    pub(super) fn clear(&self, b: &Builder) {
        SUMS[..self.count()].iter().flatten().for_each(|&register| b.zero_tile(register));
    }

    /// Adds a product over [`BLOCK`] elements of the inner dimension. The tiles of the left operand start at offsets and have rows at a
    /// distance of `stride` elements; those of the right operand are packed, at an offset.
    pub(super) fn add(&self, b: &Builder, left: V, starts: [V; 2], stride: i64, right: V, packed: V) {
        for (&register, at) in LEFT[..self.count()].iter().zip(starts) {
            b.load_tile(register, left, DType::BF16, at, stride);
        }
        for (half, &register) in RIGHT.iter().enumerate() {
            b.load_tile(register, right, DType::BF16, b.plus(packed, half as i64 * SIDE * BLOCK), BLOCK);
        }
        for (sums, &left) in SUMS[..self.count()].iter().zip(&LEFT) {
            sums.iter().zip(RIGHT).for_each(|(&sum, right)| b.multiply_tiles(sum, left, right));
        }
    }

    /// Loads the sums from a matrix in memory, whose rows have a distance of `stride` elements.
    pub(super) fn load(&self, b: &Builder, memory: V, first: V, stride: i64) {
        for (register, at) in self.places(b, first, stride) {
            b.load_tile(register, memory, DType::F32, at, stride);
        }
    }

    /// Stores the sums in a matrix in memory, whose rows have a distance of `stride` elements. The second tile follows [`SIDE`] rows after
    /// the first.
    pub(super) fn store(&self, b: &Builder, memory: V, first: V, stride: i64) {
        for (register, at) in self.places(b, first, stride) {
            b.store_tile(register, memory, at, stride);
        }
    }

    /// Returns the registers of sums, and the offset of each in memory.
    fn places(&self, b: &Builder, first: V, stride: i64) -> Vec<(u8, V)> {
        let place = |row: usize, column: usize| b.plus(first, (row as i64 * stride + column as i64) * SIDE);
        let rows = (0..self.count()).flat_map(|row| [(row, 0), (row, 1)]);
        rows.map(|(row, column)| (SUMS[row][column], place(row, column))).collect()
    }
}

/// Prefetch of a packed right operand: of the next panel during the blocks of the current one, each of which prefetches its share, or of the
/// steps ahead if the panel has one block.
#[derive(Clone, Copy)]
pub(super) struct PanelPrefetch {
    panels: V,
    /// Offset of the first element that the block prefetches.
    first: V,
    /// Cache lines per step.
    lines: i64,
    /// True if the next panel is prefetched, which is read too late to stay in the L1 cache.
    is_next: bool,
}

impl PanelPrefetch {
    /// Elements of a cache line.
    const LINE: i64 = 32;
    /// Elements between the current position and the prefetched one in panels that are read once: 16 KiB.
    const AHEAD: i64 = 8 * 1024;

    /// Returns the prefetch of block number `block` of `blocks` of the panel at offset `packed`, which has `steps` steps. `None` if the
    /// panel is used so often that loading it hardly matters.
    pub(super) fn new(
        b: &Builder,
        panels: V,
        packed: V,
        is_last: V,
        steps: i64,
        block: V,
        blocks: i64,
    ) -> Option<Self> {
        let per_step = BLOCK * BLOCK / Self::LINE;
        let lines = (per_step + blocks - 1) / blocks;
        let panel = steps * BLOCK * BLOCK;
        // A panel that only one block uses is read once, ahead of which is enough. Addresses beyond the last one are not accessed.
        let next = match blocks {
            1 => b.index(panel.min(Self::AHEAD)),
            _ => b.select(is_last, b.index(0), b.index(panel)),
        };
        let share = b.times(block, steps * lines * Self::LINE);
        let first = b.add(b.add(packed, next), share);
        (blocks <= per_step).then_some(Self { panels, first, lines, is_next: blocks > 1 })
    }

    /// Prefetches the share of some steps.
    pub(super) fn emit(&self, b: &Builder, step: V, steps: i64) {
        let first = b.add(self.first, b.times(step, self.lines * Self::LINE));
        for line in 0..steps * self.lines {
            let at = b.plus(first, line * Self::LINE);
            if self.is_next { b.prefetch_l2(self.panels, at) } else { b.prefetch(self.panels, at) }
        }
    }
}
