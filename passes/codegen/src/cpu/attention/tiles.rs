//! Products of attention on tile registers (AMX), of `bf16` with sums in `f32`.

use super::{
    super::{
        matmul::pack_rows,
        tile_block::{BLOCK, SIDE, TileBlock},
    },
    kernel::{KeyBlock, Products, QueryBlock},
    pattern::Attention,
};
use crate::{
    emit::{Builder, V},
    graph::Id,
    lowering::Lowering,
};
use divi_onnx::DType;
use std::cell::Cell;

/// Keys and values are packed into tiles; a block of queries is copied to the stack.
pub(super) struct TileProducts<'a> {
    attention: &'a Attention,
    lanes: i64,
    /// Queries of a block, padded to whole steps.
    queries: Cell<Option<V>>,
    /// Configurations for a whole block of queries and for the last one.
    configurations: Cell<Option<[V; 2]>>,
}

impl<'a> TileProducts<'a> {
    pub(super) fn new(attention: &'a Attention, lanes: usize) -> Self {
        let lanes = lanes as i64;
        Self { attention, lanes, queries: Cell::default(), configurations: Cell::default() }
    }

    /// Returns the number of steps over the elements of a query.
    fn depth_steps(&self) -> i64 {
        (self.attention.depth + BLOCK - 1) / BLOCK
    }

    fn key_panels(&self) -> i64 {
        (self.attention.keys + BLOCK - 1) / BLOCK
    }

    fn value_panels(&self) -> i64 {
        (self.attention.columns + BLOCK - 1) / BLOCK
    }

    /// Packs the keys as right tiles: `[matrix][panel][step][2 tiles][pairs of elements][keys of a tile][2]`. The last key stands for those
    /// beyond it.
    fn packed_keys(&self, cx: &mut Lowering<'_>) -> Id {
        let Attention { keys, depth, key_rows, .. } = self.attention;
        let (depth, steps, panels) = (*depth, self.depth_steps(), self.key_panels());
        let target = cx.temporary(DType::BF16, &[key_rows.count() * panels * steps * BLOCK * BLOCK]);
        let grain = 4096 / (SIDE * depth) + 1;
        cx.call(key_rows.count() * panels * 2, grain, &[key_rows.id], &[target], |b, kernel| {
            b.for_each(kernel.begin, kernel.end, 1, |number| {
                let (matrix, group) = b.div_rem(number, panels * 2);
                let (panel, tile) = b.div_rem(number, 2);
                let from = key_rows.offset(b, matrix);
                let row = |i: i64| {
                    let key = b.min(b.plus(b.times(group, SIDE), i), b.index(keys - 1), false);
                    b.add(from, b.times(key, key_rows.row))
                };
                let rows: Vec<_> = (0..SIDE).map(row).collect();
                let to = b.add(b.times(panel, steps * BLOCK * BLOCK), b.times(tile, SIDE * BLOCK));
                b.repeat(steps, |step| {
                    b.specialize_last(step, steps, depth % BLOCK > 0, |is_last| {
                        let first = b.times(step, BLOCK);
                        let pairs = rows.iter().map(|&row| {
                            let at = b.add(row, first);
                            b.half_pairs(match is_last {
                                true => b.load_masked(kernel.buffers[0], at, b.mask((depth % BLOCK) as usize)),
                                false => b.load_vector(kernel.buffers[0], at, b.vector()),
                            })
                        });
                        let to = b.add(to, b.times(step, BLOCK * BLOCK));
                        for (pair, keys) in (0..).zip(b.transpose(pairs.collect())) {
                            b.store_half_pairs(keys, kernel.buffers[1], b.plus(to, pair * BLOCK));
                        }
                    });
                });
            });
        });
        target
    }
}

impl Products for TileProducts<'_> {
    fn rows(&self) -> i64 {
        BLOCK
    }

    fn key_unit(&self) -> i64 {
        BLOCK
    }

    fn rounds(&self) -> bool {
        true
    }

    fn sum_stride(&self) -> i64 {
        self.value_panels() * BLOCK
    }

    fn operands(&self, cx: &mut Lowering<'_>) -> [Id; 2] {
        let Attention { keys, columns, values, .. } = self.attention;
        [self.packed_keys(cx), pack_rows(cx, values, *keys, *columns)]
    }

    fn begin(&self, b: &Builder, rows: i64, last: i64) {
        self.queries.set(Some(b.half_alloca(rows * self.depth_steps() * BLOCK)));
        let configurations = [rows, last].map(|rows| TileBlock::of_rows(rows).configuration(b));
        self.configurations.set(Some(configurations));
    }

    fn end(&self, b: &Builder) {
        b.release_tiles();
    }

    fn load_queries(&self, b: &Builder, block: &QueryBlock<'_>) {
        let (Some(copy), Some([whole, last])) = (self.queries.get(), self.configurations.get()) else { return };
        b.configure_tiles(if block.is_last { last } else { whole });
        let Attention { depth, queries, .. } = self.attention;
        let from = b.add(queries.offset(b, block.matrix), b.times(block.first, queries.row));
        b.repeat(block.rows, |row| {
            let from = b.add(from, b.times(row, queries.row));
            let to = b.times(row, self.depth_steps() * BLOCK);
            for vector in 0..self.depth_steps() * BLOCK / self.lanes {
                let left = depth - vector * self.lanes;
                let at = b.plus(from, vector * self.lanes);
                let value = match left {
                    ..=0 => b.float(0.0, b.vector()),
                    _ if left < self.lanes => b.load_masked(block.signature.buffers[0], at, b.mask(left as usize)),
                    _ => b.load_vector(block.signature.buffers[0], at, b.vector()),
                };
                b.store_vector(value, copy, b.plus(to, vector * self.lanes));
            }
        });
    }

    fn scores(&self, b: &Builder, block: &QueryBlock<'_>, keys: &KeyBlock) {
        let (Some(queries), packed) = (self.queries.get(), block.signature.buffers[1]) else { return };
        let (steps, tiles) = (self.depth_steps(), TileBlock::of_rows(block.rows));
        let stride = steps * BLOCK;
        let (first_panel, _) = b.div_rem(keys.first, BLOCK);
        let first_panel = b.add(b.times(block.matrix, self.key_panels()), first_panel);
        b.repeat((keys.count + BLOCK - 1) / BLOCK, |panel| {
            let from = b.times(b.add(first_panel, panel), steps * BLOCK * BLOCK);
            tiles.clear(b);
            b.repeat(steps, |step| {
                let left = b.times(step, BLOCK);
                let starts = [left, b.plus(left, SIDE * stride)];
                tiles.add(b, queries, starts, stride, packed, b.add(from, b.times(step, BLOCK * BLOCK)));
            });
            tiles.store(b, block.scratch.scores, b.times(panel, BLOCK), block.scratch.width);
        });
    }

    fn sums(&self, b: &Builder, block: &QueryBlock<'_>, keys: &KeyBlock, starts: bool) {
        let (tiles, packed) = (TileBlock::of_rows(block.rows), block.signature.buffers[2]);
        let (width, stride) = (block.scratch.width, self.sum_stride());
        let (first_step, _) = b.div_rem(keys.first, BLOCK);
        b.repeat(self.value_panels(), |panel| {
            let matrix = b.add(b.times(block.matrix, self.value_panels()), panel);
            let from = b.times(b.add(b.times(matrix, self.key_panels()), first_step), BLOCK * BLOCK);
            let column = b.times(panel, BLOCK);
            if starts {
                tiles.clear(b);
            } else {
                tiles.load(b, block.scratch.sums, column, stride);
            }
            b.repeat((keys.count + BLOCK - 1) / BLOCK, |step| {
                let left = b.times(step, BLOCK);
                let rows = [left, b.plus(left, SIDE * width)];
                tiles.add(b, block.scratch.shares, rows, width, packed, b.add(from, b.times(step, BLOCK * BLOCK)));
            });
            tiles.store(b, block.scratch.sums, column, stride);
        });
    }
}
