//! Products of attention in vector registers, in `f32`.

use super::{
    super::matrix::Matrices,
    kernel::{KeyBlock, Products, QueryBlock},
    pattern::Attention,
};
use crate::{
    emit::{Builder, Mask, V},
    graph::Id,
    lowering::Lowering,
};
use divi_onnx::DType;

/// Queries of a block.
const ROWS: i64 = 32;
/// Steps of the inner loop that are unrolled.
const UNROLL: i64 = 4;
/// Most vectors of a row of a register tile.
const MOST_VECTORS: i64 = 4;

/// Keys are transposed into panels of a tile's columns; queries and values are read in place.
pub(super) struct RegisterProducts<'a> {
    attention: &'a Attention,
    lanes: i64,
    /// Registers for sums.
    sums: i64,
    /// Vectors of a panel of keys.
    key_vectors: i64,
    /// Vectors of a panel of values.
    value_vectors: i64,
}

/// Number of vectors of each of the panels that `elements` are split into.
fn balanced(elements: i64, lanes: i64) -> i64 {
    let vectors = (elements + lanes - 1) / lanes;
    let panels = (vectors + MOST_VECTORS - 1) / MOST_VECTORS;
    (vectors + panels - 1) / panels
}

/// Tile of sums in registers.
struct Tile {
    rows: i64,
    vectors: i64,
    /// Length of the inner dimension.
    depth: i64,
}

impl<'a> RegisterProducts<'a> {
    pub(super) fn new(attention: &'a Attention, lanes: usize, registers: usize) -> Self {
        let lanes = lanes as i64;
        let (key_vectors, value_vectors) = (balanced(attention.keys, lanes), balanced(attention.columns, lanes));
        let sums = if registers >= 32 { 24 } else { 12 };
        Self { attention, lanes, sums, key_vectors, value_vectors }
    }

    fn panel(&self) -> i64 {
        self.key_vectors * self.lanes
    }

    fn panels(&self) -> i64 {
        (self.attention.keys + self.panel() - 1) / self.panel()
    }

    /// Emits the sums of a tile: of products of `left(row, k)` with the vectors `right(k)`.
    fn multiply(
        b: &Builder,
        tile: &Tile,
        start: &[V],
        left: impl Fn(i64, V, i64) -> V,
        right: impl Fn(V, i64) -> Vec<V>,
    ) -> Vec<V> {
        let step = |k: V, ahead: i64, sums: &mut [V]| {
            let vectors = right(k, ahead);
            for row in 0..tile.rows {
                let element = b.broadcast(left(row, k, ahead), b.vector());
                for (vector, &factor) in vectors.iter().enumerate() {
                    let sum = &mut sums[(row * tile.vectors) as usize + vector];
                    *sum = b.fma(element, factor, *sum);
                }
            }
        };
        let whole = tile.depth / UNROLL * UNROLL;
        let mut sums = b.for_loop_carried(b.index(0), b.index(whole), UNROLL, start, |k, sums| {
            let mut sums = sums.to_vec();
            (0..UNROLL).for_each(|ahead| step(k, ahead, &mut sums));
            sums
        });
        (0..tile.depth - whole).for_each(|ahead| step(b.index(whole), ahead, &mut sums));
        sums
    }

    /// Emits a loop over the tiles of the rows of a block: `code` gets the first row and the number of rows.
    fn for_row_tiles(&self, b: &Builder, rows: i64, vectors: i64, code: impl Fn(V, i64)) {
        let tiles = (rows * vectors + self.sums - 1) / self.sums;
        let height = (rows + tiles - 1) / tiles;
        let tiles = (rows + height - 1) / height;
        let last = rows - (tiles - 1) * height;
        b.repeat(tiles, |tile| {
            let first = b.times(tile, height);
            b.specialize_last(tile, tiles, last != height, |is_last| code(first, if is_last { last } else { height }));
        });
    }

    /// Transposes the keys into `[matrix][panel][element][key of the panel]`. The last key stands for those beyond it.
    fn transposed_keys(&self, cx: &mut Lowering<'_>) -> Id {
        let Attention { keys, depth, key_rows, .. } = self.attention;
        let (lanes, depth, panel) = (self.lanes, *depth, self.panel());
        let groups = self.panels() * self.key_vectors;
        let target = cx.temporary(DType::F32, &[key_rows.count() * self.panels() * depth * panel]);
        let grain = 4096 / (lanes * depth) + 1;
        cx.call(key_rows.count() * groups, grain, &[key_rows.id], &[target], |b, kernel| {
            b.for_each(kernel.begin, kernel.end, 1, |number| {
                let (matrix, group) = b.div_rem(number, groups);
                let from = key_rows.offset(b, matrix);
                let row = |i: i64| {
                    let key = b.min(b.plus(b.times(group, lanes), i), b.index(keys - 1), false);
                    b.add(from, b.times(key, key_rows.row))
                };
                let rows: Vec<_> = (0..lanes).map(row).collect();
                let (panel_number, vector) = b.div_rem(number, self.key_vectors);
                let to = b.add(b.times(panel_number, depth * panel), b.times(vector, lanes));
                let square = |first: V, mask: Option<Mask>| {
                    let load = |&row: &V| match mask {
                        Some(mask) => b.load_masked(kernel.buffers[0], b.add(row, first), mask),
                        None => b.load_vector(kernel.buffers[0], b.add(row, first), b.vector()),
                    };
                    b.transpose(rows.iter().map(load).collect())
                };
                let store = |first: V, values: &[V]| {
                    for (i, &value) in (0..).zip(values) {
                        b.store_vector(value, kernel.buffers[1], b.add(to, b.times(b.plus(first, i), panel)));
                    }
                };
                b.repeat(depth / lanes, |block| {
                    let first = b.times(block, lanes);
                    store(first, &square(first, None));
                });
                let rest = depth % lanes;
                if rest > 0 {
                    let first = b.index(depth - rest);
                    store(first, &square(first, Some(b.mask(rest as usize)))[..rest as usize]);
                }
            });
        });
        target
    }
}

impl Products for RegisterProducts<'_> {
    fn rows(&self) -> i64 {
        ROWS
    }

    fn key_unit(&self) -> i64 {
        self.panel()
    }

    fn rounds(&self) -> bool {
        false
    }

    fn sum_stride(&self) -> i64 {
        (self.attention.columns + self.lanes - 1) / self.lanes * self.lanes
    }

    fn operands(&self, cx: &mut Lowering<'_>) -> [Id; 2] {
        [self.transposed_keys(cx), self.attention.values.id]
    }

    fn begin(&self, _: &Builder, _: i64, _: i64) {}

    fn end(&self, _: &Builder) {}

    fn load_queries(&self, _: &Builder, _: &QueryBlock<'_>) {}

    fn scores(&self, b: &Builder, block: &QueryBlock<'_>, keys: &KeyBlock) {
        let [queries, packed, ..] = block.signature.buffers[..] else { return };
        let Attention { depth, queries: Matrices { row, .. }, .. } = *self.attention;
        let query = b.add(self.attention.queries.offset(b, block.matrix), b.times(block.first, row));
        let panels = (keys.count + self.panel() - 1) / self.panel();
        let (first_panel, _) = b.div_rem(keys.first, self.panel());
        let first_panel = b.add(b.times(block.matrix, self.panels()), first_panel);
        b.repeat(panels, |panel| {
            let from = b.times(b.add(first_panel, panel), depth * self.panel());
            self.for_row_tiles(b, block.rows, self.key_vectors, |first, rows| {
                let tile = Tile { rows, vectors: self.key_vectors, depth };
                let start = vec![b.float(0.0, b.vector()); (rows * self.key_vectors) as usize];
                let query = b.add(query, b.times(first, row));
                let left =
                    |i: i64, k: V, ahead: i64| b.load(queries, DType::F32, b.plus(b.add(query, k), i * row + ahead));
                let right = |k: V, ahead: i64| {
                    let at = b.plus(b.add(from, b.times(k, self.panel())), ahead * self.panel());
                    let load = |vector| b.load_vector(packed, b.plus(at, vector * self.lanes), b.vector());
                    (0..self.key_vectors).map(load).collect()
                };
                let sums = Self::multiply(b, &tile, &start, left, right);
                let to = b.add(b.times(first, block.scratch.width), b.times(panel, self.panel()));
                for (i, &sum) in (0..).zip(&sums) {
                    let (row, vector) = (i / self.key_vectors, i % self.key_vectors);
                    b.store_vector(
                        sum,
                        block.scratch.scores,
                        b.plus(to, row * block.scratch.width + vector * self.lanes),
                    );
                }
            });
        });
    }

    fn sums(&self, b: &Builder, block: &QueryBlock<'_>, keys: &KeyBlock, starts: bool) {
        let Attention { columns, values: Matrices { row, .. }, .. } = *self.attention;
        let source = block.signature.buffers[2];
        let value = b.add(self.attention.values.offset(b, block.matrix), b.times(keys.first, row));
        let all = (columns + self.lanes - 1) / self.lanes;
        let panels = (all + self.value_vectors - 1) / self.value_vectors;
        let last = all - (panels - 1) * self.value_vectors;
        let rest = columns % self.lanes;
        let (stride, width) = (self.sum_stride(), block.scratch.width);
        b.repeat(panels, |panel| {
            b.specialize_last(panel, panels, last != self.value_vectors || rest > 0, |is_last| {
                let vectors = if is_last { last } else { self.value_vectors };
                let mask = (is_last && rest > 0).then(|| b.mask(rest as usize));
                let column = b.times(panel, self.value_vectors * self.lanes);
                let value = b.add(value, column);
                self.for_row_tiles(b, block.rows, vectors, |first, rows| {
                    let tile = Tile { rows, vectors, depth: keys.count };
                    let place = |i: i64| {
                        let at = b.add(b.times(first, stride), column);
                        b.plus(at, i / vectors * stride + i % vectors * self.lanes)
                    };
                    let start = |i| match starts {
                        true => b.float(0.0, b.vector()),
                        false => b.load_vector(block.scratch.sums, place(i), b.vector()),
                    };
                    let start: Vec<_> = (0..rows * vectors).map(start).collect();
                    let share = b.times(first, width);
                    let left = |i: i64, k: V, ahead: i64| {
                        b.load(block.scratch.shares, DType::F32, b.plus(b.add(share, k), i * width + ahead))
                    };
                    let right = |k: V, ahead: i64| {
                        let at = b.plus(b.add(value, b.times(k, row)), ahead * row);
                        let load = |vector: i64| {
                            let at = b.plus(at, vector * self.lanes);
                            match mask.filter(|_| vector == vectors - 1) {
                                Some(mask) => b.load_masked(source, at, mask),
                                None => b.load_vector(source, at, b.vector()),
                            }
                        };
                        (0..vectors).map(load).collect()
                    };
                    let sums = Self::multiply(b, &tile, &start, left, right);
                    (0..).zip(&sums).for_each(|(i, &sum)| b.store_vector(sum, block.scratch.sums, place(i)));
                });
            });
        });
    }
}
